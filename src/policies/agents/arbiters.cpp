#include "policies/agents/arbiters.h"

#include <algorithm>

namespace berth::agents {

void Arbiters::begin(const ClusterState& state, std::int64_t pod_devices) {
  pods_ = Pods(state, pod_devices);
  all_ = Column<PodId, Arbiter>(pods_.root().value + std::size_t{1});
}

Arbiters::Row& Arbiters::row(JobId job) {
  if (job.value >= rows_.size())
    rows_.resize(std::max<std::size_t>(job.value + std::size_t{1}, rows_.size() * 2));
  return rows_[job];
}

void Arbiters::enqueue(const View& view, JobId job) {
  Arbiter& arbiter = all_[row(job).pod];
  if (!arbiter.waiting[view.jobs.kind[job]].insert(job).second) return;
  arbiter.changed = true;
  ++arbiter.waiting_jobs;
  ++waiting_jobs_;
}

void Arbiters::dequeue(const View& view, JobId job) {
  Arbiter& arbiter = all_[row(job).pod];
  const auto found = arbiter.waiting.find(view.jobs.kind[job]);
  if (found == arbiter.waiting.end() || found->second.erase(job) == 0) return;
  --arbiter.waiting_jobs;
  --waiting_jobs_;
  if (found->second.empty()) arbiter.waiting.erase(found);
}

bool Arbiters::waits_with(const View& view, JobId job, PodId pod) const {
  const auto& waiting = all_[pod].waiting;
  const auto found = waiting.find(view.jobs.kind[job]);
  return found != waiting.end() && found->second.contains(job);
}

void Arbiters::arrive(const View& view, JobId job) {
  row(job).pod = pods_.home(job, view.shape(job));
  enqueue(view, job);
}

void Arbiters::wait(const View& view, JobId job) {
  end_lease(job);
  if (row(job).pod == pods_.root()) row(job).pod = pods_.home(job, view.shape(job));
  enqueue(view, job);
}

void Arbiters::move_to(const View& view, JobId job, PodId pod) {
  dequeue(view, job);
  row(job).pod = pod;
  enqueue(view, job);
}

void Arbiters::grant(const View& view, JobId job, PodId pod, Duration lease) {
  dequeue(view, job);
  end_lease(job);
  row(job).pod = pod;
  row(job).end = view.now + lease;
  all_[pod].ends.emplace(row(job).end, job);
}

void Arbiters::transfer(JobId job, PodId pod) {
  const Time end = row(job).end;
  end_lease(job);
  row(job).pod = pod;
  row(job).end = end;
  all_[pod].ends.emplace(end, job);
}

void Arbiters::end_lease(JobId job) {
  Row& mine = row(job);
  if (mine.end == kNever) return;
  all_[mine.pod].ends.erase({mine.end, job});
  mine.end = kNever;
}

void Arbiters::leave(const View& view, JobId job) {
  dequeue(view, job);
  end_lease(job);
}

void Arbiters::renew_ended(const View& view, Duration lease) {
  for (std::uint32_t pod = 0; pod < size(); ++pod) {
    Arbiter& arbiter = all_[PodId{pod}];
    while (arbiter.has_ended_lease(view.now))
      grant(view, arbiter.ends.begin()->second, PodId{pod}, lease);
  }
}

void Arbiters::mark_changed(PodId pod) {
  root().changed = true;
  if (pod != pods_.root()) {
    all_[pod].changed = true;
    return;
  }
  for (std::uint32_t i = 0; i < size(); ++i) all_[PodId{i}].changed = true;
}

void Arbiters::holders(std::vector<JobId>& jobs) const {
  jobs.clear();
  for (const Arbiter& arbiter : all_) {
    for (const auto& [end, job] : arbiter.ends) jobs.push_back(job);
  }
  std::ranges::sort(jobs);
}

}  // namespace berth::agents
