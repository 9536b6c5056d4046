#include "daemon/why.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "core/trial.h"
#include "daemon/why_waiting.h"

namespace berth {

namespace {

constexpr std::size_t kMostNamed = 5;

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

/// Seconds since the pass after which the policy is asked: what it says counts from there.
double age_of(const Explainer::Parts& parts) {
  return to_seconds(parts.clock.now() - parts.engine.now());
}

/// What was said when the job in this slot was refused; a slot is used again, so the last word
/// counts.
const RejectedJob* rejection_of(const Engine& engine, JobId slot) {
  const auto all = engine.rejected();
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    if (one->job == slot) return &*one;
  return nullptr;
}

bool is_gate_of_time(const WhyReason& reason) { return reason.when == "until"; }

}  // namespace

bool Explainer::may_be_named(const Waiting& waiting, JobId job) const {
  return waiting.asked.may_see_all ||
         parts_.slots.text(parts_.slots.jobs[job.value].user) == waiting.asked.job.spec->user;
}

std::vector<std::string> Explainer::named(const Waiting& waiting,
                                          const std::vector<JobId>& jobs) const {
  struct Holder {
    JobId slot;
    double gpu_seconds = 0;
    std::int32_t gpus = 0;
  };
  const JobTable& table = parts_.engine.jobs();
  std::vector<Holder> seen;
  std::size_t hidden = 0;
  std::int64_t hidden_gpus = 0;
  for (const JobId slot : jobs) {
    const TraceJob& other = parts_.slots.jobs[slot.value];
    const std::int32_t gpus = table.is_running(slot) ? table.granted[slot] : other.gpus;
    if (!may_be_named(waiting, slot)) {
      ++hidden;
      hidden_gpus += gpus;
      continue;
    }
    seen.push_back({slot, to_seconds(table.attained(slot, parts_.engine.now())) * gpus, gpus});
  }
  std::ranges::stable_sort(seen, [](const Holder& a, const Holder& b) {
    return std::tuple(-a.gpu_seconds, a.slot) < std::tuple(-b.gpu_seconds, b.slot);
  });
  std::vector<std::string> names;
  std::int64_t more_gpus = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (i < kMostNamed) {
      names.push_back(fmt::format("job {} ({})", parts_.executor.number_of(seen[i].slot),
                                  devices_text(seen[i].gpus, {})));
    } else {
      more_gpus += seen[i].gpus;
    }
  }
  if (seen.size() > kMostNamed)
    names.push_back(
        fmt::format("{} more, {}", seen.size() - kMostNamed, devices_text(more_gpus, {})));
  if (hidden > 0)
    names.push_back(
        fmt::format("{} of other users, {}", plural(hidden, "job"), devices_text(hidden_gpus, {})));
  return names;
}

void Explainer::add_gates(const Asked& asked, Why& why) const {
  const JobView& job = asked.job;
  const Time now = parts_.clock.now();
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
      reason.until = parts_.clock.wall() + (*gate.until - now).count();
    }
    reason.fix = key_to(gate, job);
    why.reasons.push_back(std::move(reason));
  }
}

/// It would start if it asked for less time: devices are reserved for the first of those ahead.
void Explainer::add_reservation(const Waiting& waiting, std::int64_t limit, Why& why) const {
  const JobId reserved = waiting.findings.ahead.front();
  const auto name = named(waiting, {reserved});
  const std::string time = human_duration(static_cast<double>(limit));
  const std::string fix = fmt::format("run at most {}: berth change {} time_limit={}s", time,
                                      waiting.asked.job.number, limit);
  WhyReason reason{
      .kind = "reservation",
      .text = fmt::format("there is room, but its start would delay {}, for which devices are "
                          "reserved in {}",
                          name.front(), time),
      .numbers = {{"longest_limit", limit}, {"at", parts_.clock.wall() + limit * 1'000'000}},
      .entities = name,
      .fix = fix,
      .who = "user",
      .sole = !waiting.is_gated};
  if (may_be_named(waiting, reserved))
    reason.numbers.emplace_back("job",
                                static_cast<std::int64_t>(parts_.executor.number_of(reserved)));
  why.reasons.push_back(std::move(reason));
  if (!waiting.is_gated) why.would_start.push_back(fix);
}

void Explainer::add_order(const Waiting& waiting, Why& why) const {
  const Findings& found = waiting.findings;
  const WhyRoom& room = waiting.room;
  if (found.starts_now || found.ahead.empty() || (found.starts_if_room && !room.fits)) return;
  if (room.fits && !found.starts_if_alone) return;  // said by add_policy
  if (room.fits) {
    const std::int64_t limit =
        longest_limit(waiting).value_or(0) - static_cast<std::int64_t>(std::ceil(age_of(parts_)));
    if (limit > 0) return add_reservation(waiting, limit, why);
  }
  std::int64_t gpus_ahead = 0;
  for (const JobId other : found.ahead) gpus_ahead += parts_.slots.jobs[other.value].gpus;
  why.reasons.push_back(
      {.kind = "order",
       .text = fmt::format("{} with {} in all come{} before it", plural(found.ahead.size(), "job"),
                           devices_text(gpus_ahead, {}), found.ahead.size() == 1 ? "s" : ""),
       .numbers = {{"place", static_cast<std::int64_t>(found.place)}, {"gpus_ahead", gpus_ahead}},
       .entities = named(waiting, found.ahead),
       .sole = found.starts_if_alone && !waiting.is_gated});
}

/// What the policy wants beyond room and turn: devices kept free, jobs that may not be stopped yet,
/// times of its own.
void Explainer::add_policy(const Waiting& waiting, Why& why) const {
  const Findings& found = waiting.findings;
  const std::int64_t wall = parts_.clock.wall();
  const auto at = [&](double seconds) { return wall + static_cast<std::int64_t>(seconds * 1e6); };
  const bool ungated = !waiting.is_gated;
  if (found.starts_now) return;
  const double protection = found.turn_among.value_or(0);
  if (!waiting.room.fits && protection > 0) {
    const double left = std::max(0.0, protection - age_of(parts_));
    why.reasons.push_back(
        {.kind = "protection",
         .text = fmt::format("room comes only by stopping others, in {} at the earliest",
                             human_duration(left)),
         .numbers = {{"seconds_left", left}, {"gpus", std::int64_t{waiting.shape.gpus}}},
         .when = "until",
         .until = at(left)});
  }
  const bool is_told = !std::ranges::all_of(why.reasons, is_gate_of_time);
  if (waiting.room.fits && !is_told && found.starts_if_both) {
    why.reasons.push_back(
        {.kind = "reservation",
         .text = "there is room, but the policy keeps it free while others run or wait",
         .sole = ungated && (found.starts_if_room || found.starts_if_alone)});
  }
  if (found.starts_if_both && !why.reasons.empty()) return;
  const double turn =
      found.next_turn.value_or(0) > 0 ? *found.next_turn : found.turn_alone.value_or(0);
  if (turn > 0) {
    const double left = std::max(0.0, turn - age_of(parts_));
    why.reasons.push_back({.kind = "pace",
                           .text = fmt::format("the policy decides at its own times: alone it "
                                               "would start in {}",
                                               human_duration(left)),
                           .numbers = {{"seconds_left", left}},
                           .when = "until",
                           .until = at(left),
                           .sole = ungated && why.reasons.empty()});
  } else if (!found.starts_if_both && found.turn_anew) {
    why.reasons.push_back(
        {.kind = "reservation",
         .text = "the policy has planned it for later, after jobs it has promised devices to",
         .sole = ungated && why.reasons.empty()});
  } else if (why.reasons.empty() || !found.starts_if_both) {
    why.reasons.push_back({.kind = "unexplained", .text = "the policy does not start it"});
  }
}

void Explainer::add_competition(const Asked& asked, Why& why) {
  auto slot = parts_.executor.slot_of(asked.job.number);
  const bool is_gated = !why.reasons.empty();
  if (!slot && asked.record) {
    slot = parts_.executor.suppose(*asked.record);
    if (!slot) return;  // all slots are taken: the gates have been told
    Trial{parts_.engine}.arrive(*slot);
  }
  if (!slot) return;
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
      reason.until = parts_.clock.wall() + (*start.until - parts_.clock.now()).count();
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
  Waiting waiting{
      .asked = asked,
      .slot = *slot,
      .shape = parts_.engine.shapes()[shape],
      .room = room_for(parts_.engine, parts_.engine.shapes()[shape]),
      .findings = find_out(parts_.engine, *slot, parts_.slots, parts_.executor.spare_slot()),
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

Why Explainer::explain(const Asked& asked) {
  const JobView& job = asked.job;
  Why why{.job = job.number, .state = job.state, .summary = {}, .reasons = {}, .would_start = {}};
  if (is_over(job.state)) {
    why.summary =
        fmt::format("is over: {}", job.reason.empty() ? to_string(job.state) : job.reason);
    return why;
  }
  if (job.granted > 0) {
    const std::string gpus = devices_text(job.granted, {});
    why.summary = job.state == LiveState::Suspended
                      ? fmt::format("is asleep on {}: {}", gpus, job.reason)
                      : fmt::format("runs on {}", gpus);
    if (parts_.gates.is_frozen(job.number)) {
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
