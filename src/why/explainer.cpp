#include "why/explainer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "core/trial.h"
#include "why/waiting_job.h"

namespace berth {

namespace {

std::string_view who_opens(GateKind kind, const JobView& job) {
  switch (kind) {
    case GateKind::Hold: return job.code == WaitCode::HeldByAdmin ? "operator" : "user";
    case GateKind::Suspension: return "operator";
    case GateKind::Quota:
    case GateKind::Fit: return "admin";
    case GateKind::Begin:
    case GateKind::Dependency:
    case GateKind::Array: return "user";
    case GateKind::RetryDelay: break;
  }
  return "nobody";
}

/// What opens this gate at once; empty if only time does.
std::string key_to(const ShutGate& gate, const JobView& job) {
  switch (gate.kind) {
    case GateKind::Hold: return fmt::format("berth release {}", job.number);
    case GateKind::Suspension: return fmt::format("berth resume {}", job.number);
    case GateKind::Begin: return fmt::format("begin now: berth change {} begin=now", job.number);
    case GateKind::Dependency:
      return fmt::format("wait for nobody: berth change {} dependencies=", job.number);
    case GateKind::Quota: return fmt::format("an admin: berth share set {}", gate.change);
    case GateKind::Fit: return fmt::format("ask for less: berth change {} gpus=N", job.number);
    case GateKind::Array:
    case GateKind::RetryDelay: break;
  }
  return {};
}

/// What was said when the job in this slot was refused; a slot is used again, so the last word
/// counts.
const RejectedJob* rejection_of(const Engine& engine, JobId slot) {
  const auto all = engine.rejected();
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    if (one->job == slot) return &*one;
  return nullptr;
}

/// Of a job without a device: what the node with most free cores lacks. Nothing: it fits now.
std::optional<WhyReason> lacks_cores(const Engine& engine, const Shape& shape) {
  const ClusterState& state = engine.cluster();
  const auto& nodes = state.cluster().nodes;
  std::optional<NodeId> best;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeId node{i};
    if (!state.is_up(node) || std::ranges::find(shape.pools, nodes[i].pool) == shape.pools.end())
      continue;
    if (state.has_room_without_device(node, shape)) return std::nullopt;
    if (!best || state.free_cpus_milli(node) > state.free_cpus_milli(*best)) best = node;
  }
  if (!best)
    return WhyReason{.kind = "capacity", .text = "no node is in service", .who = "operator"};
  const double needed = shape.cpus_milli_per_gpu / 1000.0;
  const double free = static_cast<double>(state.free_cpus_milli(*best)) / 1000.0;
  const std::string& name = nodes[best->value].name;
  WhyReason reason{.kind = "side resource",
                   .text = {},
                   .numbers = {{"cores_needed", needed}, {"cores_free", free}, {"node", name}},
                   .entities = {name},
                   .who = "user",
                   .sole = true};
  reason.text = fmt::format("needs {:.4g} cores, {} has {:.4g} free", needed, name, free);
  if (shape.memory_mib_per_gpu > state.free_memory_mib(*best)) {
    reason.text = fmt::format("needs {} MiB of memory, {} has {} free", shape.memory_mib_per_gpu,
                              name, state.free_memory_mib(*best));
    reason.numbers.emplace_back("memory_needed_mib", std::int64_t{shape.memory_mib_per_gpu});
    reason.numbers.emplace_back("memory_free_mib", state.free_memory_mib(*best));
  }
  return reason;
}

}  // namespace

void Explainer::add_gates(const AskedJob& asked, Why& why) const {
  const JobView& job = asked.job;
  const Time now = parts_.scheduler.now();
  for (const ShutGate& gate : asked.shut) {
    WhyReason reason;
    reason.kind = to_string(gate.kind);
    const bool by_name = gate.kind == GateKind::Hold || gate.kind == GateKind::Suspension;
    reason.text = by_name && !job.reason.empty() ? job.reason : gate.text;
    reason.who = who_opens(gate.kind, job);
    reason.numbers = gate.numbers;
    constexpr std::string_view kBy = " by ";
    if (const auto by = reason.text.find(kBy); by_name && by != std::string::npos)
      reason.numbers.emplace_back("by", reason.text.substr(by + kBy.size()));
    for (const JobNumber other : gate.jobs) reason.entities.push_back(fmt::format("job {}", other));
    if (gate.until) {
      reason.when = "until";
      reason.until = parts_.scheduler.wall() + (*gate.until - now).count();
    }
    reason.fix = key_to(gate, job);
    why.reasons.push_back(std::move(reason));
  }
}

void Explainer::add_competition(const AskedJob& asked, Why& why) {
  auto slot = parts_.scheduler.slot_of(asked.job.number);
  const bool is_gated = !why.reasons.empty();
  if (!slot) {
    slot = parts_.scheduler.suppose();
    if (!slot) return;  // the gates have been told
    Trial{parts_.engine}.arrive(*slot);
  }
  const JobTable& jobs = parts_.engine.jobs();
  const ShapeId shape = jobs.shape[*slot];
  if (jobs.state[*slot] == JobState::Rejected) {
    const RejectedJob* rejected = rejection_of(parts_.engine, *slot);
    const WhyNumbers numbers{{"need", std::int64_t{asked.job.spec->gpus}},
                             {"largest", parts_.engine.cluster().cluster().total_gpus()}};
    // It was taken, so a state of some cluster could hold it: not for ever, the gate says.
    const auto fit = std::ranges::find(why.reasons, to_string(GateKind::Fit), &WhyReason::kind);
    if (fit != why.reasons.end() && rejected != nullptr && !rejected->by_policy) {
      fit->numbers = numbers;
      return;
    }
    why.reasons.insert(
        why.reasons.begin(),
        {.kind = "request",
         .text = rejected != nullptr && !rejected->reason.empty() ? rejected->reason
                                                                  : "the policy can never run it",
         .numbers = numbers,
         .who = "user",
         .when = "never"});
    return;
  }
  if (!jobs.is_waiting(*slot) && asked.held_start) {
    const HeldStart& start = *asked.held_start;
    WhyReason reason{.kind = "protection",
                     .text = start.why,
                     .numbers = {{"job", static_cast<std::int64_t>(start.behind)}},
                     .entities = {fmt::format("job {}", start.behind)},
                     .sole = true};
    if (start.until) {
      reason.when = "until";
      reason.until = parts_.scheduler.wall() + (*start.until - parts_.scheduler.now()).count();
    }
    why.reasons.push_back(std::move(reason));
    return;
  }
  if (!jobs.is_waiting(*slot)) {
    why.reasons.push_back({.kind = "capacity",
                           .text = "its devices are being vacated by the job before it",
                           .who = "nobody",
                           .when = "now",
                           .sole = true});
    return;
  }
  if (parts_.engine.is_beside(*slot)) {
    if (auto reason = lacks_cores(parts_.engine, parts_.engine.shapes()[shape]))
      why.reasons.push_back(*std::move(reason));
    return;
  }
  WaitingJob waiting{
      .parts = parts_,
      .asked = asked,
      .slot = *slot,
      .shape = parts_.engine.shapes()[shape],
      .room = room_for(parts_.engine, parts_.engine.shapes()[shape]),
      .findings = find_out(parts_.engine, *slot, parts_.slots, parts_.scheduler.spare_slot()),
      .is_gated = is_gated};
  if (!is_gated) {  // otherwise it has no place yet
    why.place = waiting.findings.place;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) why.of += jobs.is_waiting(JobId{i}) ? 1U : 0U;
  }
  if (waiting.findings.starts_now) {  // nothing but the gates keeps it
    if (why.reasons.size() != 1) return;
    why.reasons.front().sole = true;
    if (const std::string& fix = why.reasons.front().fix; !fix.empty())
      why.would_start.push_back(fix);
    return;
  }
  Why contest;  // what keeps it once it competes
  add_room(waiting, contest);
  add_order(waiting, contest);
  add_policy(waiting, contest);
  if (!is_gated) {  // otherwise no single change is enough
    add_changes(waiting, contest);
    if (!contest.reasons.empty() && !waiting.room.fits)
      why.summary = fmt::format("waits for {}: {}", asked_text(*asked.job.spec, waiting.shape),
                                contest.reasons.front().text);
  }
  std::ranges::move(contest.reasons, std::back_inserter(why.reasons));
  std::ranges::move(contest.would_start, std::back_inserter(why.would_start));
}

Why Explainer::explain(const AskedJob& asked) {
  const JobView& job = asked.job;
  Why why{.job = job.number, .state = job.state, .summary = {}, .reasons = {}, .would_start = {}};
  if (is_over(job.state)) {
    why.summary =
        fmt::format("is over: {}", job.reason.empty() ? to_string(job.state) : job.reason);
    return why;
  }
  if (job.granted > 0 || (job.spec->gpus == 0 && !is_waiting(job.state))) {
    const std::string gpus =
        job.granted > 0 ? devices_text(job.granted, {})
                        : plural(static_cast<std::size_t>(job.spec->cpus), "core") + " and no GPU";
    why.summary = job.state == LiveState::Suspended
                      ? fmt::format("is asleep on {}: {}", gpus, job.reason)
                      : fmt::format("runs on {}", gpus);
    if (asked.is_frozen) {
      const std::string fix = key_to({.kind = GateKind::Suspension, .text = {}}, job);
      why.reasons.push_back(
          {.kind = "suspension", .text = job.reason, .fix = fix, .who = "operator", .sole = true});
      why.would_start.push_back(fix);
    }
    return why;
  }
  add_gates(asked, why);
  add_competition(asked, why);
  if (why.summary.empty())
    why.summary = why.reasons.empty() ? "starts with the next pass" : why.reasons.front().text;
  return why;
}

}  // namespace berth
