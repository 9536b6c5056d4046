#include "advise/job_views.h"

#include <algorithm>
#include <limits>

#include "advise/reasons.h"

namespace berth::advise {

namespace {

std::int32_t clamped(std::int64_t number) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max()));
}

std::int64_t micros(std::int64_t seconds) { return seconds > 0 ? seconds * kMicro : 0; }

/// The words of a dependency that Berth has too; those of Slurm alone are left out.
void add_dependencies(const slurm::Job& job, JobSpec& spec) {
  std::string plain;  // "afterok:12(unfulfilled)" without what Slurm thinks of it
  bool is_remark = false;
  for (const char c : job.dependency) {
    is_remark = (is_remark || c == '(') && c != ')';
    if (!is_remark && c != ')') plain += c;
  }
  if (const auto parsed = parse_dependencies(plain)) {
    spec.dependencies = parsed->all;
    spec.any_dependency = parsed->any;
  }
}

/// Shards are parts of one GPU: how large a part depends on the nodes that have such.
std::int32_t part_of_gpu(std::int32_t shards, const Sight& sight) {
  for (const slurm::Node& node : sight.all_nodes()) {
    if (const std::int32_t each = shards_per_gpu(node); each > 0)
      return std::clamp(shards * 1'000 / each, 1, 1'000);
  }
  return 1'000;
}

std::vector<HeldDevices> held_by(const slurm::Job& job) {
  std::vector<HeldDevices> where;
  for (const slurm::HeldNode& held : job.held) {
    HeldDevices here;
    here.node = held.node;
    for (const slurm::GresCount& gres : held.gres)
      if (gres.name == "gpu" || gres.name == "shard")
        here.devices.insert(here.devices.end(), gres.indices.begin(), gres.indices.end());
    std::ranges::sort(here.devices);
    here.devices.erase(std::unique(here.devices.begin(), here.devices.end()), here.devices.end());
    where.push_back(std::move(here));
  }
  return where;
}

LiveState waiting_state(const slurm::Job& job) {
  switch (explain_word(job.reason).family) {
    case ReasonFamily::Hold: return LiveState::Held;
    case ReasonFamily::Dependency:
    case ReasonFamily::Begin: return LiveState::Blocked;
    default: return job.priority == 0 ? LiveState::Held : LiveState::Pending;
  }
}

}  // namespace

std::int32_t shards_per_gpu(const slurm::Node& node) noexcept {
  std::int64_t gpus = 0, shards = 0;
  for (const slurm::GresCount& gres : node.gres) {
    gpus += gres.name == "gpu" ? gres.count : 0;
    shards += gres.name == "shard" ? gres.count : 0;
  }
  return gpus > 0 ? static_cast<std::int32_t>(shards / gpus) : 0;
}

LiveState live_state(const slurm::Job& job) noexcept {
  using slurm::JobPhase;
  if (job.completing) return LiveState::Stopping;
  switch (job.phase) {
    case JobPhase::Pending: return waiting_state(job);
    case JobPhase::Running: return job.configuring ? LiveState::Starting : LiveState::Running;
    case JobPhase::Suspended: return LiveState::Suspended;
    case JobPhase::Completed: return LiveState::Completed;
    case JobPhase::Cancelled: return LiveState::Cancelled;
    case JobPhase::Failed: return LiveState::Failed;
    case JobPhase::TimedOut:
    case JobPhase::Deadline: return LiveState::TimedOut;
    case JobPhase::NodeFailed:
    case JobPhase::BootFailed: return LiveState::NodeFailed;
    case JobPhase::Preempted: return LiveState::Preempted;
    case JobPhase::OutOfMemory: return LiveState::OutOfMemory;
    case JobPhase::Unknown: break;
  }
  return LiveState::Unknown;
}

WaitCode wait_code(const slurm::Job& job) noexcept {
  if (job.phase != slurm::JobPhase::Pending) return WaitCode::None;
  return explain_word(job.reason).code;
}

bool competes(const slurm::Job& job) noexcept {
  if (live_state(job) != LiveState::Pending) return false;
  const ReasonWord word = explain_word(job.reason);
  const bool is_kept_out = word.family == ReasonFamily::Limit ||
                           word.family == ReasonFamily::Array ||
                           word.family == ReasonFamily::Reservation;
  return !is_kept_out && !word.is_never;
}

JobSpec spec_of(const slurm::Job& job, const Sight& sight) {
  JobSpec spec;
  spec.name = job.name;
  spec.user = job.user.empty() ? std::to_string(job.uid) : job.user;
  spec.group = job.account;
  spec.queue = job.partition;
  spec.qos = job.qos;
  spec.comment = job.comment;
  spec.gpus = job.gpus();
  spec.gpu_type = job.gpu_type();
  if (const std::int32_t shards = job.shards(); spec.gpus == 0 && shards > 0) {
    spec.gpus = 1;
    spec.gpu_milli = part_of_gpu(shards, sight);
  }
  spec.cpus = job.cpus;
  spec.memory_mib = clamped(job.memory_mib);
  spec.tasks = std::max(1, job.tasks);
  spec.nodes = job.required_nodes;
  spec.exclude = job.excluded_nodes;
  spec.exclusive = job.exclusive;
  spec.time_limit = job.time_limit > 0 ? job.time_limit : kUnlimitedTime;
  spec.requeue = job.may_requeue;
  spec.preemptible = job.may_requeue;
  spec.kind = job.is_batch ? JobKind::Training : JobKind::Interactive;
  spec.hold = live_state(job) == LiveState::Held;
  if (wait_code(job) == WaitCode::BeginTime) spec.begin = job.eligible;
  add_dependencies(job, spec);
  return spec;
}

JobView view_of(const slurm::Job& job, const Sight& sight, std::int64_t wall) {
  JobView view;
  view.number = job.key.job;
  view.array = job.array;
  const std::vector<std::int32_t> tasks = tasks_of(job);
  if (!tasks.empty()) view.array_index = tasks.front();
  if (tasks.size() > 1) view.folded = tasks;
  if (const auto array = job.array != 0 ? parse_array(job.array_tasks) : Result<ArraySpec>{})
    view.array_at_once = array->at_once;
  view.spec = std::make_shared<const JobSpec>(spec_of(job, sight));
  view.state = live_state(job);
  view.code = wait_code(job);
  const bool is_told = !job.reason.empty() && job.reason != "None";
  if (is_waiting(view.state))
    view.reason = is_told ? job.reason : "Slurm has not said why yet";
  else if (is_over(view.state) && is_told)
    view.reason = job.reason;
  view.submitted = micros(job.key.submitted);
  view.attempts = clamped(job.key.restarts);
  view.exit_code = job.exit_code;
  view.signal = job.signal;
  if (is_waiting(view.state)) return view;  // its start is expected at best
  view.attempts += job.started > 0 ? 1 : 0;
  view.started = view.last_started = micros(job.started);
  view.ended = is_over(view.state) ? micros(job.ended) : 0;
  view.where = held_by(job);
  const std::int64_t until = view.ended > 0 ? view.ended : wall;
  if (view.started > 0)
    view.run_seconds = static_cast<double>(std::max<std::int64_t>(0, until - view.started)) /
                       static_cast<double>(kMicro);
  view.gpu_seconds = view.run_seconds * job.gpus();
  if (!is_over(view.state)) view.granted = job.gpus();
  return view;
}

}  // namespace berth::advise
