#include "policies/optimus/allocation.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace berth::optimus {

namespace {

double remaining_time(double work, double speed) noexcept {
  return speed > 0 ? work / speed : std::numeric_limits<double>::infinity();
}

}  // namespace

std::span<TaskCounts> Allocator::allocate(std::span<const std::int64_t> capacity,
                                          std::span<const AllocatedJob> jobs,
                                          const JobSpeeds& speeds) {
  capacity_.assign(capacity.begin(), capacity.end());
  free_ = capacity_;
  granted_.assign(jobs.size(), {});
  open_.assign(jobs.size(), {});
  arrival_.resize(jobs.size());
  std::iota(arrival_.begin(), arrival_.end(), 0U);
  std::ranges::sort(arrival_, {}, [&](std::uint32_t job) { return jobs[job].id; });
  grant_first(jobs);
  grow(jobs, speeds);
  return granted_;
}

/// A job nobody can predict keeps what it has, as long as there is room for that.
void Allocator::grant_first(std::span<const AllocatedJob> jobs) {
  for (const std::uint32_t at : arrival_) {
    const AllocatedJob& job = jobs[at];
    const bool keeps = !job.is_ready && job.held.total() > 0;
    if (keeps && try_take(free_, job.demand, job.held)) {
      granted_[at] = job.held;
    } else if (try_take(free_, job.demand, job.least)) {
      granted_[at] = job.least;
    }
  }
}

void Allocator::grow(std::span<const AllocatedJob> jobs, const JobSpeeds& speeds) {
  heap_.clear();
  const auto is_worse = [](const Move& a, const Move& b) {
    return a.gain != b.gain ? a.gain < b.gain : a.id > b.id;
  };
  for (const std::uint32_t at : arrival_) {
    if (granted_[at].total() > 0 && jobs[at].is_ready) push_best(jobs, speeds, at);
  }
  std::ranges::make_heap(heap_, is_worse);
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, is_worse);
    const Move move = heap_.back();
    heap_.pop_back();
    TaskCounts more;
    more.of(move.kind) = move.tasks;
    if (try_take(free_, jobs[move.job].demand, more)) {
      granted_[move.job].of(move.kind) += move.tasks;
    } else {
      // What is free only shrinks: this move will never fit again.
      (move.kind == TaskKind::Worker ? open_[move.job].worker : open_[move.job].ps) = false;
    }
    // Its gain at the new size; what others would gain has not changed.
    const std::size_t before = heap_.size();
    push_best(jobs, speeds, move.job);
    if (heap_.size() > before) std::ranges::push_heap(heap_, is_worse);
  }
}

/// Appends the job's better move, if one gains anything.
void Allocator::push_best(std::span<const AllocatedJob> jobs, const JobSpeeds& speeds,
                          std::uint32_t job) {
  const AllocatedJob& of = jobs[job];
  Move ps{.kind = TaskKind::ParameterServer};
  Move worker{.kind = TaskKind::Worker};
  if (open_[job].ps) ps = best_step(of, speeds, job, TaskKind::ParameterServer);
  if (open_[job].worker) worker = best_step(of, speeds, job, TaskKind::Worker);
  Move best = ps.gain >= worker.gain ? ps : worker;
  best.job = job;
  best.id = of.id;
  if (best.gain > 0) heap_.push_back(best);
}

/// The fewest tasks more that gain anything.
Allocator::Move Allocator::best_step(const AllocatedJob& job, const JobSpeeds& speeds,
                                     std::uint32_t at, TaskKind kind) const {
  Move step{.kind = kind};
  TaskCounts more;
  for (step.tasks = 1; step.tasks <= look_ahead_; ++step.tasks) {
    if (granted_[at].of(kind) + step.tasks > job.most.of(kind)) break;
    more.of(kind) = step.tasks;
    step.gain = gain(job, speeds, at, more) / (step.tasks * dominant_amount(job.demand.of(kind)));
    if (step.gain > 0) return step;
  }
  step.gain = 0;
  return step;
}

double Allocator::gain(const AllocatedJob& job, const JobSpeeds& speeds, std::uint32_t at,
                       TaskCounts more) const {
  const double now = remaining_time(job.work, speeds.speed(at, granted_[at]));
  more.ps += granted_[at].ps;
  more.workers += granted_[at].workers;
  const double then = remaining_time(job.work, speeds.speed(at, more));
  return then < now ? job.eagerness * (now - then) : 0;
}

/// Of the resource of which the task takes the largest share of the cluster.
double Allocator::dominant_amount(const TaskDemand& demand) const noexcept {
  double share = -1;
  double dominant = 1;
  for (const auto& [resource, amount] : demand.amounts()) {
    const double capacity = static_cast<double>(std::max<std::int64_t>(capacity_[resource], 1));
    const double mine = static_cast<double>(amount) / capacity;
    if (mine <= share) continue;
    share = mine;
    dominant = static_cast<double>(amount);
  }
  return dominant;
}

void Allocator::keep_small_changes(std::span<const AllocatedJob> jobs, const JobSpeeds& speeds,
                                   double overhead) {
  for (const std::uint32_t at : arrival_) {
    const AllocatedJob& job = jobs[at];
    TaskCounts& granted = granted_[at];
    if (job.held.total() == 0 || granted == job.held) continue;
    const double before = remaining_time(job.work, speeds.speed(at, job.held));
    const double after = granted.total() > 0 ? remaining_time(job.work, speeds.speed(at, granted))
                                             : std::numeric_limits<double>::infinity();
    if (before - after >= overhead) continue;
    // What it holds may be taken by now: others grew into it.
    take(free_, job.demand, {-granted.ps, -granted.workers});
    if (try_take(free_, job.demand, job.held)) {
      granted = job.held;
    } else {
      take(free_, job.demand, granted);
    }
  }
}

}  // namespace berth::optimus
