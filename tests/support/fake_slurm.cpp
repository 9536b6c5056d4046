#include "support/fake_slurm.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/check.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"

namespace berth::test {

using slurm::HeldNode;
using slurm::Job;
using slurm::JobPhase;
using slurm::JobRef;
using slurm::Linked;
using slurm::Node;
using slurm::Refusal;

namespace {

constexpr std::uint32_t kReleased = 4'294'901'000;  // priority/basic counts down from here

tl::unexpected<slurm::LinkError> refuse(Refusal refusal, std::string text) {
  return tl::unexpected<slurm::LinkError>(slurm::LinkError{refusal, std::move(text)});
}

std::int64_t count_of(const std::vector<slurm::GresCount>& all, std::string_view name) {
  std::int64_t count = 0;
  for (const slurm::GresCount& gres : all)
    if (gres.name == name) count += gres.count;
  return count;
}

bool holds_nodes(const Job& job) { return !job.held.empty(); }

}  // namespace

// --- the link

Linked<void> FakeSlurm::reach(const std::string& command) {
  if (!is_reachable) return refuse(Refusal::Unreachable, "Unable to contact slurm controller");
  log.push_back(command);
  return {};
}

Linked<void> FakeSlurm::answer() {
  if (lost_answers == 0) return {};
  --lost_answers;
  return refuse(Refusal::Unreachable, "Socket timed out on send/recv operation");
}

Linked<slurm::Version> FakeSlurm::version() {
  if (!is_reachable) return refuse(Refusal::Unreachable, "Unable to contact slurm controller");
  return slurm::Version{24, 11, 5};
}

Linked<std::optional<std::vector<Job>>> FakeSlurm::jobs() {
  if (!is_reachable) return refuse(Refusal::Unreachable, "Unable to contact slurm controller");
  std::vector<Job> all;
  for (const auto& entry : jobs_) all.push_back(entry.second.job);
  return std::optional(std::move(all));
}

Linked<std::optional<std::vector<Node>>> FakeSlurm::nodes() {
  if (!is_reachable) return refuse(Refusal::Unreachable, "Unable to contact slurm controller");
  count_held();
  return std::optional(nodes_);
}

Linked<std::vector<slurm::Partition>> FakeSlurm::partitions() {
  if (!is_reachable) return refuse(Refusal::Unreachable, "Unable to contact slurm controller");
  slurm::Partition main{.name = "main", .is_default = true};
  for (const Node& node : nodes_) main.nodes.push_back(node.name);
  return std::vector{main};
}

Linked<std::vector<slurm::Switch>> FakeSlurm::topology() {
  if (!is_reachable) return refuse(Refusal::Unreachable, "Unable to contact slurm controller");
  return switches;
}

Linked<std::vector<slurm::Reservation>> FakeSlurm::reservations() {
  if (!is_reachable) return refuse(Refusal::Unreachable, "Unable to contact slurm controller");
  return std::vector<slurm::Reservation>{};
}

Linked<slurm::Config> FakeSlurm::config() {
  if (!is_reachable) return refuse(Refusal::Unreachable, "Unable to contact slurm controller");
  return configuration;
}

Linked<FakeSlurm::Entry*> FakeSlurm::at(const JobRef& ref) {
  const std::size_t line = ref.find('_');
  const auto id = static_cast<std::uint32_t>(std::stoul(ref.substr(0, line)));
  if (line == std::string::npos) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return refuse(Refusal::NoSuchJob, "Invalid job id specified");
    return &found->second;
  }
  const auto task = static_cast<std::int32_t>(std::stoul(ref.substr(line + 1)));
  for (auto& [number, entry] : jobs_) {
    if (entry.job.array != id) continue;
    const std::string tasks = entry.job.array_tasks.substr(0, entry.job.array_tasks.find('%'));
    std::vector<std::int32_t> waiting = slurm::parse_indices(tasks);
    const auto found = std::ranges::find(waiting, task);
    if (found == waiting.end()) continue;
    if (waiting.size() == 1) return &entry;
    waiting.erase(found);
    Entry alone = entry;
    alone.job.key.job = next_id_++;
    alone.job.array_tasks = fmt::format("{}", task);
    entry.job.array_tasks = fmt::format("{}", fmt::join(waiting, ","));
    return &jobs_.emplace(alone.job.key.job, alone).first->second;
  }
  return refuse(Refusal::NoSuchJob, "Invalid job id specified");
}

Linked<void> FakeSlurm::place(const JobRef& ref, const slurm::Placement& placement) {
  if (auto reached =
          reach(fmt::format("place {} {}", ref, slurm::compress_hostlist(placement.nodes)));
      !reached)
    return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  Entry& entry = **found;
  if (entry.job.phase != JobPhase::Pending || entry.job.completing)
    return refuse(Refusal::WrongState, "Job is no longer pending execution");
  for (const std::string& name : placement.nodes)
    if (std::ranges::find(nodes_, name, &Node::name) == nodes_.end())
      return refuse(Refusal::Other, "Invalid node name specified");
  entry.job.required_nodes = placement.nodes;
  entry.job.min_nodes = entry.job.max_nodes = static_cast<std::int32_t>(placement.nodes.size());
  if (placement.tasks > 0) entry.job.tasks = placement.tasks;
  if (placement.cpus > 0) entry.job.cpus = placement.cpus;
  if (placement.begin_now) entry.more.begins = now;
  if (!placement.qos.empty()) entry.job.qos = placement.qos;
  entry.job.priority = kReleased - entry.job.key.job;
  entry.job.reason = "None";
  return answer();
}

Linked<void> FakeSlurm::hold(const JobRef& ref) {
  if (auto reached = reach("hold " + ref); !reached) return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  Entry& entry = **found;
  if (slurm::is_over(entry.job.phase))
    return refuse(Refusal::WrongState, "Job has already finished");
  entry.job.priority = 0;
  if (entry.job.phase == JobPhase::Pending) entry.job.reason = "JobHeldAdmin";
  return answer();
}

Linked<void> FakeSlurm::release(const JobRef& ref) {
  if (auto reached = reach("release " + ref); !reached) return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  Entry& entry = **found;
  if (slurm::is_over(entry.job.phase))
    return refuse(Refusal::WrongState, "Job has already finished");
  entry.job.priority = kReleased - entry.job.key.job;
  if (entry.job.phase == JobPhase::Pending) entry.job.reason = "None";
  return answer();
}

Linked<void> FakeSlurm::requeue_held(const JobRef& ref) {
  if (auto reached = reach("requeue_held " + ref); !reached) return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  Entry& entry = **found;
  if (entry.job.phase == JobPhase::Pending)
    return refuse(Refusal::WrongState, "Job is pending execution");
  if (slurm::is_over(entry.job.phase)) {
    requeue(entry, true);  // also a job that is over comes back
  } else {
    begin_end(entry, true, JobPhase::Pending);
  }
  return answer();
}

Linked<void> FakeSlurm::cancel(const JobRef& ref) {
  if (auto reached = reach("cancel " + ref); !reached) return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  Entry& entry = **found;
  if (slurm::is_over(entry.job.phase))
    return refuse(Refusal::WrongState, "Job/step already completing or completed");
  if (holds_nodes(entry.job)) {
    begin_end(entry, false, JobPhase::Cancelled);
  } else {
    finish(entry, JobPhase::Cancelled);
  }
  return answer();
}

Linked<void> FakeSlurm::signal(const JobRef& ref, int number) {
  if (auto reached = reach(fmt::format("signal {} {}", ref, number)); !reached) return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  if ((*found)->job.phase != JobPhase::Running)
    return refuse(Refusal::WrongState, "Job/step already completing or completed");
  return answer();
}

Linked<void> FakeSlurm::signal_script(const JobRef& ref, int number) { return signal(ref, number); }

Linked<void> FakeSlurm::suspend(const JobRef& ref) {
  if (auto reached = reach("suspend " + ref); !reached) return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  if ((*found)->job.phase != JobPhase::Running || (*found)->job.completing)
    return refuse(Refusal::WrongState, "Job is pending execution");
  (*found)->job.phase = JobPhase::Suspended;
  return answer();
}

Linked<void> FakeSlurm::resume(const JobRef& ref) {
  if (auto reached = reach("resume " + ref); !reached) return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  if ((*found)->job.phase != JobPhase::Suspended)
    return refuse(Refusal::WrongState, "Job is not suspended");
  (*found)->job.phase = JobPhase::Running;
  return answer();
}

Linked<void> FakeSlurm::set_time_limit(const JobRef& ref, std::int64_t seconds) {
  if (auto reached = reach(fmt::format("set_time_limit {} {}", ref, seconds)); !reached)
    return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  (*found)->job.time_limit = (seconds + 59) / 60 * 60;
  return answer();
}

Linked<void> FakeSlurm::set_admin_comment(const JobRef& ref, const std::string& text) {
  if (auto reached = reach("set_admin_comment " + ref); !reached) return reached;
  auto found = at(ref);
  if (!found) return tl::unexpected(found.error());
  (*found)->job.admin_comment = text;
  return answer();
}

Linked<void> FakeSlurm::resume_node(const std::string& node) {
  if (auto reached = reach("resume_node " + node); !reached) return reached;
  return_node(node);
  return answer();
}

// --- what happens to a cluster

void FakeSlurm::add_nodes(int count, const std::string& gpu_type, int gpus, int cpus) {
  for (int i = 0; i < count; ++i)
    nodes_.push_back({.name = fmt::format("n{}", nodes_.size() + 1),
                      .state = "IDLE",
                      .partitions = {"main"},
                      .features = {gpu_type},
                      .cpus = cpus,
                      .sockets = 2,
                      .memory_mib = 256'000,
                      .gres = {{"gpu", gpu_type, gpus, {}}, {"shard", gpu_type, gpus * 4, {}}}});
}

std::uint32_t FakeSlurm::submit(Job job) {
  job.key = {next_id_++, 0, now};
  if (!job.array_tasks.empty()) job.array = job.key.job;
  if (job.user.empty()) job.user = "user1";
  if (job.partition.empty()) job.partition = "main";
  job.phase = JobPhase::Pending;
  job.tasks = std::max(job.tasks, 1);
  job.cpus = std::max(job.cpus, job.tasks);
  job.priority = settings_.holds ? 0 : kReleased - job.key.job;
  job.reason = settings_.holds ? "JobHeldUser" : "None";
  const std::uint32_t id = job.key.job;
  jobs_.emplace(id, Entry{std::move(job)});
  return id;
}

std::optional<HeldNode> FakeSlurm::room_on(const Node& node, const Job& job) const {
  if (!node.is_usable()) return std::nullopt;
  std::set<std::int32_t> taken;
  std::int64_t shards = 0;
  std::int32_t cpus = 0;
  for (const auto& entry : jobs_) {
    for (const HeldNode& held : entry.second.job.held) {
      if (held.node != node.name) continue;
      cpus += held.cpus;
      shards += count_of(held.gres, "shard");
      for (const slurm::GresCount& gres : held.gres)
        if (gres.name == "gpu") taken.insert(gres.indices.begin(), gres.indices.end());
    }
  }
  const std::int32_t nodes = std::max(job.min_nodes, 1);
  HeldNode room{.node = node.name, .cpus = (job.cpus + nodes - 1) / nodes};
  if (cpus + room.cpus > node.cpus) return std::nullopt;
  const std::string type = node.gres.empty() ? "" : node.gres.front().type;
  if (!job.gpu_type().empty() && job.gpu_type() != type) return std::nullopt;
  const std::int64_t gpus = (job.gpus() + nodes - 1) / nodes;
  const std::int64_t has = count_of(node.gres, "gpu");
  slurm::GresCount devices{"gpu", type, gpus, {}};
  for (std::int32_t i = 0; i < has && std::ssize(devices.indices) < gpus; ++i)
    if (!taken.contains(i)) devices.indices.push_back(i);
  if (std::ssize(devices.indices) < gpus) return std::nullopt;
  if (gpus > 0) room.gres.push_back(std::move(devices));
  if (job.shards() > 0) {
    const std::int64_t free = count_of(node.gres, "shard") - shards - std::ssize(taken) * 4;
    if (job.shards() > free) return std::nullopt;
    room.gres.push_back({"shard", type, job.shards(), {}});
  }
  return room;
}

bool FakeSlurm::try_start(Entry& entry) {
  std::vector<HeldNode> held;
  for (const Node& node : nodes_) {
    const auto& wanted = entry.job.required_nodes;
    const bool is_wanted = std::ranges::find(wanted, node.name) != wanted.end();
    if (!wanted.empty() && !is_wanted) continue;
    if (auto room = room_on(node, entry.job)) held.push_back(std::move(*room));
    if (std::ssize(held) == std::max(entry.job.min_nodes, 1)) break;
  }
  const std::size_t needed = std::max(entry.job.required_nodes.size(),
                                      static_cast<std::size_t>(std::max(entry.job.min_nodes, 1)));
  if (held.size() != needed) return false;
  entry.job.held = std::move(held);
  entry.job.phase = JobPhase::Running;
  entry.job.reason = "None";
  entry.job.started = now;
  entry.job.ended = 0;
  if (entry.more.ends > 0) entry.more.ends += now;
  return true;
}

void FakeSlurm::begin_end(Entry& entry, bool requeues, JobPhase phase) {
  entry.job.completing = true;
  entry.more.requeues = requeues;
  entry.more.becomes = phase;
  entry.more.ends = now + settings_.kill_wait;
}

void FakeSlurm::finish(Entry& entry, JobPhase phase) {
  entry.job.phase = phase;
  entry.job.completing = false;
  entry.job.ended = now;
  entry.job.held.clear();
  entry.more = {};
}

void FakeSlurm::requeue(Entry& entry, bool held) {
  entry.job.phase = JobPhase::Pending;
  entry.job.completing = false;
  entry.job.key.restarts += 1;
  entry.job.key.submitted = now;  // every requeue resets it
  entry.job.held.clear();
  entry.job.started = entry.job.ended = 0;
  entry.job.priority = held ? 0 : kReleased - entry.job.key.job;
  entry.job.reason = held ? "job requeued in held state" : "BeginTime";
  entry.more = {.begins = now + settings_.begin_delay};
}

void FakeSlurm::advance(std::int64_t seconds) {
  for (std::int64_t second = 0; second < seconds; ++second) {
    ++now;
    for (auto& [id, entry] : jobs_) {
      const bool ends = holds_nodes(entry.job) && entry.more.ends > 0 && entry.more.ends <= now;
      const bool is_stopped = entry.job.phase == JobPhase::Suspended && !entry.job.completing;
      if (!ends || is_stopped) continue;
      if (entry.more.requeues) {
        requeue(entry, true);
      } else {
        finish(entry, entry.more.becomes.value_or(JobPhase::Completed));
      }
    }
    for (auto& [id, entry] : jobs_) {
      const bool may_start = entry.job.phase == JobPhase::Pending && entry.job.priority > 0 &&
                             entry.more.begins <= now;
      if (may_start && !try_start(entry)) entry.job.reason = "Resources";
    }
    std::erase_if(jobs_, [&](const auto& entry) {
      const Job& job = entry.second.job;
      return slurm::is_over(job.phase) && job.ended + settings_.min_job_age < now;
    });
  }
}

void FakeSlurm::end(std::uint32_t job, JobPhase phase, std::int32_t exit_code) {
  Entry& entry = jobs_.at(job);
  BERTH_CHECK(holds_nodes(entry.job), "only a run can end");
  entry.job.exit_code = exit_code;
  finish(entry, phase);
}

void FakeSlurm::end_after(std::uint32_t job, std::int64_t seconds) {
  Entry& entry = jobs_.at(job);
  entry.more.ends = holds_nodes(entry.job) ? now + seconds : seconds;
}

void FakeSlurm::lose_node(const std::string& name) {
  for (Node& node : nodes_)
    if (node.name == name) node.state = "DOWN*";
  for (auto& [id, entry] : jobs_) {
    const auto& held = entry.job.held;
    if (std::ranges::find(held, name, &HeldNode::node) == held.end()) continue;
    if (entry.job.may_requeue) {
      requeue(entry, false);
    } else {
      finish(entry, JobPhase::NodeFailed);
    }
  }
}

void FakeSlurm::return_node(const std::string& name) {
  for (Node& node : nodes_)
    if (node.name == name) node.state = "IDLE";
}

void FakeSlurm::forget() {
  jobs_ = kept_.first;
  next_id_ = kept_.second;
}

const Job* FakeSlurm::find(std::uint32_t job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second.job;
}

void FakeSlurm::count_held() {
  for (Node& node : nodes_) {
    node.cpus_held = 0;
    node.gres_held = {};
    for (const auto& entry : jobs_) {
      for (const HeldNode& held : entry.second.job.held) {
        if (held.node != node.name) continue;
        node.cpus_held += held.cpus;
        std::ranges::copy(held.gres, std::back_inserter(node.gres_held));
      }
    }
    if (!node.is_usable()) continue;
    const bool is_full = node.cpus_held >= node.cpus;
    node.state = node.cpus_held == 0 ? "IDLE" : is_full ? "ALLOCATED" : "MIXED";
  }
}

}  // namespace berth::test
