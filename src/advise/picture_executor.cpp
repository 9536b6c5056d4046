#include "advise/picture_executor.h"

#include <algorithm>

namespace berth::advise {

PictureExecutor::PictureExecutor(Picture picture) : picture_(std::move(picture)) {
  for (std::size_t i = 0; i < picture_.running.size(); ++i) at_[picture_.running[i].slot] = i;
}

const PictureExecutor::Running* PictureExecutor::running(JobId slot) const {
  const auto found = at_.find(slot);
  return found == at_.end() ? nullptr : &picture_.running[found->second];
}

/// One instant for the nodes, one for each job that runs; the last of them is now. So a policy can
/// keep each where it is before it hears of the next.
std::optional<Time> PictureExecutor::advance(Time) {
  const std::size_t instants = picture_.running.size() + 1;
  if (steps_ == instants) return std::nullopt;
  ++steps_;
  return picture_.now - Duration{static_cast<std::int64_t>(instants - steps_)};
}

void PictureExecutor::collect(Time, std::vector<Event>& due) {
  if (steps_ > 1) {
    due.push_back(
        {.kind = EventKind::Arrival, .job = picture_.running[steps_ - 2].slot, .node = {}});
    return;
  }
  for (const NodeId node : picture_.out_of_service)
    due.push_back({.kind = EventKind::NodeDown, .job = {}, .node = node});
  due.push_back({.kind = EventKind::Shares, .job = {}, .node = {}});
}

StartReceipt PictureExecutor::start(Time now, const Action& action, const JobTable&) {
  const Running* known = running(action.job);
  const Time since = known != nullptr ? std::min(now, known->since) : now;
  return {.held_from = since, .work_from = since};
}

JobPast PictureExecutor::past(JobId job) const {
  JobPast past;
  if (const Running* known = running(job)) {
    past.first_start = known->since;
    past.slices = known->slices;
  }
  return past;
}

}  // namespace berth::advise
