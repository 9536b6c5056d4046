#include "core/trial.h"

#include <algorithm>
#include <unordered_set>

namespace berth {

void Trial::clear(std::span<const JobId> jobs) {
  for (const JobId job : jobs) {
    if (!is_over(engine_.jobs_.state[job])) engine_.withdraw(job);
  }
}

void Trial::clear_running() {
  const auto running = engine_.accounts_.running();
  clear(std::vector<JobId>{running.begin(), running.end()});  // a copy: they leave as we go
}

void Trial::clear_waiting(JobId except) {
  for (std::uint32_t i = 0; i < engine_.jobs_.size(); ++i) {
    const JobId job{i};
    if (job != except && engine_.jobs_.is_waiting(job)) engine_.withdraw(job);
  }
}

void Trial::put_all_nodes_up() {
  for (std::uint32_t i = 0; i < engine_.state_.cluster().nodes.size(); ++i) {
    const NodeId node{i};
    if (engine_.state_.is_up(node)) continue;
    engine_.state_.set_up(node);
    engine_.state_.set_power(node, PowerState::On);
    engine_.policy_.on_capacity_change(engine_.view_, node);
  }
}

void Trial::arrive(JobId slot) { engine_.arrive(slot); }

std::vector<JobId> Trial::decide(std::optional<Time> at) {
  if (at) engine_.view_.now = std::max(engine_.view_.now, *at);
  engine_.plan_.begin();
  if (engine_.tuner_ != nullptr) engine_.tuner_->begin_instant(engine_.view_.now);
  engine_.decide();
  std::vector<JobId> started;
  std::unordered_set<JobId> seen;
  for (const JobId job : engine_.plan_.touched_in_order()) {
    const bool is_new = !engine_.jobs_.is_running(job) && engine_.plan_.holds(job);
    if (is_new && seen.insert(job).second) started.push_back(job);
  }
  // Carried out as far as the engine's own books go: a second decision finds them running.
  const auto actions = engine_.plan_.seal();
  for (const Action& action : actions) {
    if (action.job == kNoJob) continue;
    const bool holds = engine_.plan_.holds(action.job);
    if (holds && !engine_.jobs_.is_running(action.job)) engine_.accounts_.set_running(action.job);
    if (!holds && engine_.jobs_.is_running(action.job))
      engine_.accounts_.set_stopped(action.job, JobState::Waiting);
    if (action.kind == ActionKind::Kill) engine_.jobs_.state[action.job] = JobState::Cancelled;
  }
  engine_.plan_.settle();
  engine_.depart_killed(actions);
  return started;
}

std::optional<Time> Trial::next_wakeup() { return engine_.policy_.next_wakeup(engine_.view_); }

}  // namespace berth
