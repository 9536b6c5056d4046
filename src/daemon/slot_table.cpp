#include "daemon/slot_table.h"

#include <charconv>

#include "model/job_spec_json.h"

namespace berth {

std::optional<JobId> SlotTable::slot_of(JobNumber job) const {
  const auto found = slots_.find(job);
  if (found == slots_.end()) return std::nullopt;
  return found->second;
}

std::optional<JobId> SlotTable::spare() const {
  if (next_ == numbers_.size()) return std::nullopt;
  return JobId{next_};
}

JobId SlotTable::take(const LedgerJob& job, Time now) {
  const JobId slot{next_++};
  numbers_[slot.value] = job.number;
  slots_[job.number] = slot;
  fill(parts_.slots.jobs[slot.value], job, now);
  parts_.beliefs.set_profile(slot, *job.spec);
  return slot;
}

std::optional<JobId> SlotTable::suppose(const LedgerJob& job, Time now) {
  const auto slot = spare();
  if (!slot) return std::nullopt;
  ++next_;
  fill(parts_.slots.jobs[slot->value], job, now);
  return slot;
}

void SlotTable::fill(TraceJob& slot, const LedgerJob& job, Time now) {
  const JobSpec& spec = *job.spec;
  static_cast<JobRequest&>(slot) = request_of(spec, job.number, job.submitted, parts_.slots.names);
  slot.estimate = said_duration(spec);
  slot.duration =
      slot.estimate > Duration::zero() ? slot.estimate : Duration{std::chrono::hours{1}};
  parts_.beliefs.set_length(slot, spec);
  if (spec.deadline)
    slot.deadline = now + Duration{*spec.deadline * 1'000'000 - parts_.clock.wall()};
  slot.soft_deadline = spec.soft_deadline;
}

void SlotTable::recall(const JobTable& table) {
  for (std::uint32_t i = 0; i < numbers_.size(); ++i) {
    const TraceJob& slot = parts_.slots.jobs[i];
    if (slot.id == NameId{}) continue;
    next_ = i + 1;
    const std::string_view text = parts_.slots.names.text(slot.id);
    std::from_chars(text.data(), text.data() + text.size(), numbers_[i]);
    const JobState state = table.state[JobId{i}];
    if (state != JobState::Unknown && !is_over(state)) slots_[numbers_[i]] = JobId{i};
  }
}

bool SlotTable::is_changed(JobId slot, const LedgerJob& job, Time now) {
  constexpr Duration kJitter = std::chrono::seconds{1};  // of one clock against the other
  TraceJob current;
  fill(current, job, now);
  TraceJob then = parts_.slots.jobs[slot.value];
  const bool same_deadline =
      current.deadline.has_value() == then.deadline.has_value() &&
      (!current.deadline || std::chrono::abs(*current.deadline - *then.deadline) < kJitter);
  then.deadline = current.deadline;
  if (job.spec->iterations > 0 && job.spec->estimate == 0) {  // meanwhile more may be known of it
    then.estimate = current.estimate;
    then.duration = current.duration;
  }
  return !same_deadline || current != then;
}

}  // namespace berth
