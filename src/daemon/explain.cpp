#include "daemon/explain.h"

#include "core/trial.h"
#include "why/forked.h"
#include "why/why_json.h"

namespace berth {

namespace {

/// The scheduler as an explanation sees it.
class Copy final : public RunningScheduler {
 public:
  Copy(const CopiedScheduler& scheduler, const std::optional<LedgerJob>& record)
      : scheduler_(scheduler), record_(record) {}

  [[nodiscard]] Time now() const override { return scheduler_.clock.now(); }
  [[nodiscard]] std::int64_t wall() const override { return scheduler_.clock.wall(); }
  [[nodiscard]] std::optional<JobId> slot_of(JobNumber job) const override {
    return scheduler_.executor.slot_of(job);
  }
  [[nodiscard]] JobNumber number_of(JobId slot) const override {
    return scheduler_.executor.number_of(slot);
  }
  [[nodiscard]] std::optional<JobId> spare_slot() const override {
    return scheduler_.executor.spare_slot();
  }
  [[nodiscard]] std::optional<JobId> suppose() override {
    return record_ ? scheduler_.executor.suppose(*record_) : std::nullopt;
  }
  [[nodiscard]] std::optional<Time> ready_about(NodeId node) const override {
    return scheduler_.executor.ready_about(node);
  }

 private:
  const CopiedScheduler& scheduler_;
  const std::optional<LedgerJob>& record_;
};

}  // namespace

Why explain_in_a_copy(const CopiedScheduler& scheduler, const AskedJob& asked,
                      const std::optional<LedgerJob>& record) {
  const auto text = in_a_copy([&] {
    Copy copy{scheduler, record};
    return to_json(Explainer{{scheduler.engine, scheduler.slots, copy}}.explain(asked));
  });
  auto why = text ? why_from_json(*text) : Result<Why>{fail("the copy did not answer")};
  if (why) return *std::move(why);
  return {.job = asked.job.number,
          .state = asked.job.state,
          .summary = "no answer could be found in time: ask again",
          .reasons = {},
          .would_start = {}};
}

std::optional<std::string> refusal_in_a_copy(const CopiedScheduler& scheduler,
                                             const LedgerJob& job) {
  auto said = in_a_copy([&]() -> std::string {
    const auto slot = scheduler.executor.suppose(job);
    if (!slot) return {};
    Trial{scheduler.engine}.arrive(*slot);
    const bool refused = scheduler.engine.jobs().state[*slot] == JobState::Rejected;
    return refused ? scheduler.engine.rejected().back().reason : std::string{};
  });
  if (!said || said->empty()) return std::nullopt;
  return said;
}

}  // namespace berth
