#include "daemon/life_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth {

namespace {

/// "n1:0,1 n2:3"
std::string devices_of(const std::vector<HeldDevices>& where) {
  std::string text;
  for (const HeldDevices& held : where)
    text +=
        fmt::format("{}{}:{}", text.empty() ? "" : " ", held.node, fmt::join(held.devices, ","));
  return text;
}

struct Writer {
  Logger& log;
  const Committed& committed;
  const StatusBoard& board;

  void operator()(const SubmitRecord& submit) const {
    BERTH_LOG(log, Info, "job", "submitted", {"job", submit.first},
              {"count", committed.change.count}, {"user", submit.spec.user},
              {"name", submit.spec.name}, {"gpus", submit.spec.gpus});
  }
  void operator()(const StartedRecord& started) const {
    const auto job = board.find(started.job);
    const std::string devices = job && job->attempt ? devices_of(job->attempt->where) : "";
    BERTH_LOG(log, Info, "job", "started", {"job", started.job},
              {"attempt", to_text(started.attempt)}, {"devices", devices}, {"pid", started.pid});
  }
  void operator()(const ResizeRecord& resize) const {
    BERTH_LOG(log, Info, "job", "goes on with other devices", {"job", resize.job},
              {"attempt", to_text(resize.attempt)}, {"devices", devices_of(resize.where)},
              {"why", resize.reason});
  }
  void operator()(const WishRecord& wish) const {
    // Slices of time come and go; what a person wants, and every preemption, is an event.
    const bool is_slice = wish.by == kSchedulerName && wish.wish != Wish::Preempt;
    if (is_slice && !log.is_on(LogLevel::Debug)) return;
    log.write(is_slice ? LogLevel::Debug : LogLevel::Info, "job", done_word(wish.wish),
              {{"job", wish.job}, {"by", wish.by}, {"why", wish.why}});
  }
  void operator()(const EndRecord& end) const {
    BERTH_LOG(log, Info, "job", end.is_final ? "ended" : "attempt ended", {"job", end.job},
              {"outcome", to_string(end.outcome)}, {"exit", end.exit_code}, {"signal", end.signal},
              {"seconds", end.run_seconds}, {"why", end.why});
  }
  void operator()(const ChangeRecord& change) const {
    BERTH_LOG(log, Info, "job", "changed", {"job", change.job}, {"by", change.by},
              {"changes", change.changes});
  }
  template <class Other>
  void operator()(const Other&) const {}
};

}  // namespace

void log_life(Logger& log, const Committed& committed, const StatusBoard& board) {
  if (log.is_on(LogLevel::Info)) std::visit(Writer{log, committed, board}, committed.record.body);
}

}  // namespace berth
