#include "daemon/decision_batch.h"

#include <iterator>

#include "base/crash_point.h"

namespace berth {

void DecisionBatch::note_pass(EngineRecord pass) {
  const std::lock_guard lock{unwritten_->mutex};
  unwritten_->passes.emplace_back(std::move(pass));
  has_passes_ = true;
}

Result<void> DecisionBatch::write(Journal& journal) {
  std::vector<RecordBody> batch = unwritten_->take();
  has_passes_ = false;
  batch.insert(batch.end(), std::make_move_iterator(records_.begin()),
               std::make_move_iterator(records_.end()));
  records_.clear();
  BERTH_TRY_VOID(journal.write(std::move(batch)));
  return {};
}

void DecisionBatch::write_passes_later(Journal& journal) {
  if (!std::exchange(has_passes_, false)) return;
  journal.write_later(
      {.make = [passes = unwritten_](const Ledger&) -> Result<std::vector<RecordBody>> {
         return passes->take();
       },
       .done = {}});
}

void send(const Signal& signal, Host& host, const SupervisorRules& rules) {
  switch (signal.kind) {
    case Signal::Kind::Stop:
      if (signal.is_for_good)
        host.stop_for_good(signal.attempt, signal.grace);
      else
        host.stop(signal.attempt, Host::Stop::Warn, signal.grace);
      break;
    case Signal::Kind::Suspend: host.suspend(signal.attempt); break;
    case Signal::Kind::Resume: host.resume(signal.attempt); break;
    case Signal::Kind::Cores: host.set_cores(signal.attempt, signal.cores); break;
    case Signal::Kind::Limit: host.set_limit(signal.attempt, signal.limit); break;
    case Signal::Kind::Rate: host.set_rate(signal.attempt, signal.rate); break;
    case Signal::Kind::Leave:
      if (rules.training != nullptr)
        rules.training->ask_checkpoint(signal.job, to_seconds(rules.answer), AfterCheckpoint::Stop);
      break;
    case Signal::Kind::Resize:
      crash_point("supervisor.asking");
      if (rules.training != nullptr) rules.training->ask_resize(signal.job, signal.ask);
      break;
  }
}

}  // namespace berth
