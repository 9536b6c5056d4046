#include "policies/agents/books.h"

#include <algorithm>

namespace berth::agents {

void Books::begin(const ClusterState& state, std::int64_t pod_devices) {
  pods_ = Pods(state, pod_devices);
  arbiters_.clear();
  arbiters_.resize(pods_.root().value + std::size_t{1});
}

Books::Row& Books::row(JobId job) {
  if (job.value >= rows_.size())
    rows_.resize(std::max<std::size_t>(job.value + std::size_t{1}, rows_.size() * 2));
  return rows_[job.value];
}

void Books::enqueue(const View& view, JobId job) {
  Arbiter& arbiter = (*this)[row(job).pod];
  if (!arbiter.waiting[class_of(view, job)].insert(job).second) return;
  arbiter.changed = true;
  ++arbiter.waiting_jobs;
  ++waiting_jobs_;
}

void Books::dequeue(const View& view, JobId job) {
  Arbiter& arbiter = (*this)[row(job).pod];
  const auto found = arbiter.waiting.find(class_of(view, job));
  if (found == arbiter.waiting.end() || found->second.erase(job) == 0) return;
  --arbiter.waiting_jobs;
  --waiting_jobs_;
  if (found->second.empty()) arbiter.waiting.erase(found);
}

bool Books::waits_with(const View& view, JobId job, PodId pod) const {
  const auto& waiting = arbiters_[pod.value].waiting;
  const auto found = waiting.find(class_of(view, job));
  return found != waiting.end() && found->second.contains(job);
}

void Books::arrive(const View& view, JobId job) {
  row(job).pod = pods_.home(job, view.shape(job));
  enqueue(view, job);
}

void Books::wait(const View& view, JobId job) {
  end_lease(job);
  if (row(job).pod == pods_.root()) row(job).pod = pods_.home(job, view.shape(job));
  enqueue(view, job);
}

void Books::move_to(const View& view, JobId job, PodId pod) {
  dequeue(view, job);
  row(job).pod = pod;
  enqueue(view, job);
}

void Books::grant(const View& view, JobId job, PodId pod, Duration lease) {
  dequeue(view, job);
  end_lease(job);
  row(job).pod = pod;
  row(job).end = view.now + lease;
  (*this)[pod].ends.emplace(row(job).end, job);
}

void Books::transfer(JobId job, PodId pod) {
  const Time end = row(job).end;
  end_lease(job);
  row(job).pod = pod;
  row(job).end = end;
  (*this)[pod].ends.emplace(end, job);
}

void Books::end_lease(JobId job) {
  Row& mine = row(job);
  if (mine.end == kNever) return;
  (*this)[mine.pod].ends.erase({mine.end, job});
  mine.end = kNever;
}

void Books::leave(const View& view, JobId job) {
  dequeue(view, job);
  end_lease(job);
}

void Books::renew_ended(const View& view, Duration lease) {
  for (std::uint32_t pod = 0; pod < arbiters_.size(); ++pod) {
    Arbiter& arbiter = arbiters_[pod];
    while (arbiter.has_ended_lease(view.now))
      grant(view, arbiter.ends.begin()->second, PodId{pod}, lease);
  }
}

void Books::mark_changed(PodId pod) {
  root().changed = true;
  if (pod != pods_.root()) {
    (*this)[pod].changed = true;
    return;
  }
  for (Arbiter& arbiter : arbiters_) arbiter.changed = true;
}

void Books::holders(std::vector<JobId>& jobs) const {
  jobs.clear();
  for (const Arbiter& arbiter : arbiters_) {
    for (const auto& [end, job] : arbiter.ends) jobs.push_back(job);
  }
  std::ranges::sort(jobs);
}

}  // namespace berth::agents
