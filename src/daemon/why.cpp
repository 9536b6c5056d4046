#include "daemon/why.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/trial.h"
#include "daemon/forked.h"
#include "policies/placements/placements.h"

namespace berth {

namespace {

constexpr std::size_t kMostRounds = 200;  // of decisions, to find a place in the order
constexpr std::size_t kMostTries = 12;

std::string_view who_opens(GateKind kind) {
  switch (kind) {
    case GateKind::Hold: return "user";
    case GateKind::Suspension: return "operator";
    case GateKind::Quota: return "admin";
    case GateKind::Begin:
    case GateKind::Dependency:
    case GateKind::Array: return "user";
    case GateKind::Pace: break;
  }
  return "nobody";
}

/// What the copies say.
struct Findings {
  bool starts_if_room = false;   // all running jobs gone
  bool starts_if_alone = false;  // all other waiting jobs gone
  bool starts_if_both = false;
  bool starts_later = false;         // … and at the policy's next turn
  std::optional<double> turn_alone;  // seconds, with the cluster for itself
  std::optional<double> turn_anew;   // … and if it came only now
  double next_turn = 0;              // seconds from now
  std::size_t place = 0;
  std::vector<std::uint32_t> ahead;  // slots
};

bool contains(const std::vector<JobId>& jobs, JobId job) {
  return std::ranges::find(jobs, job) != jobs.end();
}

std::optional<nlohmann::json> ask(const std::function<nlohmann::json()>& work) {
  const auto text = in_a_copy([&] { return work().dump(); });
  if (!text) return std::nullopt;
  auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

bool starts(Engine& engine, JobId job, bool without_running, bool without_waiting) {
  const auto answer = ask([&]() -> nlohmann::json {
    Trial trial{engine};
    if (without_waiting) trial.clear_waiting(job);
    if (without_running) trial.clear_running();
    if (without_running) trial.put_all_nodes_up();
    return contains(trial.decide(), job);
  });
  return answer && answer->is_boolean() && answer->get<bool>();
}

/// Seconds until its policy would start it if it had the cluster for itself, from now on or, with
/// `anew`, as a job that comes only now and takes this slot.
std::optional<double> turn_alone(Engine& engine, JobId job, Trace& slots,
                                 std::optional<JobId> anew) {
  const auto answer = ask([&]() -> nlohmann::json {
    Trial trial{engine};
    trial.clear_waiting(job);
    trial.clear_running();
    trial.put_all_nodes_up();
    JobId asked = job;
    if (anew) {
      const std::array own{job};
      trial.clear(own);
      slots.jobs[anew->value] = slots.jobs[job.value];
      trial.arrive(*anew);
      asked = *anew;
    }
    const Time now = engine.now();
    Time at = now;
    for (std::size_t round = 0; round < kMostRounds; ++round) {
      if (contains(trial.decide(at), asked)) return to_seconds(at - now);
      const auto next = trial.next_wakeup();
      if (!next || *next <= at) break;
      at = *next;
    }
    return nullptr;
  });
  if (!answer || !answer->is_number()) return std::nullopt;
  return answer->get<double>();
}

Findings find_out(Engine& engine, JobId job, Trace& slots, std::optional<JobId> spare) {
  Findings findings;
  findings.starts_if_room = starts(engine, job, true, false);
  findings.starts_if_alone = starts(engine, job, false, true);
  findings.starts_if_both = findings.starts_if_room || starts(engine, job, true, true);
  if (!findings.starts_if_both) {
    findings.turn_alone = turn_alone(engine, job, slots, std::nullopt);
    if (!findings.turn_alone && spare) findings.turn_anew = turn_alone(engine, job, slots, spare);
  }
  const auto answer = ask([&]() -> nlohmann::json {
    Trial trial{engine};
    const Time now = engine.now();
    trial.clear_running();
    trial.put_all_nodes_up();
    nlohmann::json ahead = nlohmann::json::array();
    Time at = now;
    for (std::size_t round = 0; round < kMostRounds; ++round) {
      const auto started = trial.decide(at);
      for (const JobId other : started) {
        if (other == job) return {{"ahead", ahead}, {"turn", to_seconds(at - now)}};
        ahead.push_back(other.value);
      }
      if (started.empty()) {  // its policy decides at its own times
        const auto next = trial.next_wakeup();
        if (!next || *next <= at) break;
        at = *next;
      }
      trial.clear(started);
    }
    return {{"ahead", ahead}};
  });
  if (!answer) return findings;
  for (const auto& slot : (*answer)["ahead"]) findings.ahead.push_back(slot.get<std::uint32_t>());
  if (answer->contains("turn")) {
    findings.place = findings.ahead.size() + 1;
    findings.starts_later = true;
    findings.next_turn = (*answer)["turn"].get<double>();
  }
  return findings;
}

}  // namespace

/// What is free for a shape, and what stands in the way.
struct Explainer::Room {
  std::int64_t free = 0;    // devices of acceptable types
  std::int64_t out = 0;     // on nodes that are down or drained
  std::int64_t others = 0;  // free devices of other types
  bool fits = false;        // right now
  bool fits_without_side = false;
  std::int32_t best = 0;  // most free devices on one node
  std::string best_node;
  std::vector<std::string> nodes_out;
};

Explainer::Room Explainer::room_for(const Shape& shape) const {
  const ClusterState& state = parts_.engine.cluster();
  Room room;
  std::set<PoolId> accepted{shape.pools.begin(), shape.pools.end()};
  for (const PoolId pool : accepted) room.free += state.free_gpus(pool);
  room.others = state.free_gpus() - room.free;
  for (std::uint32_t i = 0; i < state.cluster().nodes.size(); ++i) {
    const Node& node = state.cluster().nodes[i];
    if (!accepted.contains(node.pool)) continue;
    if (!state.is_up(NodeId{i})) {
      room.out += node.gpus;
      room.nodes_out.push_back(node.name);
    } else if (state.free_on(NodeId{i}) > room.best) {
      room.best = state.free_on(NodeId{i});
      room.best_node = node.name;
    }
  }
  Shape bare = shape;
  bare.cpus_milli_per_gpu = 0;
  bare.memory_mib_per_gpu = 0;
  room.fits = parts_.engine.has_place(shape);
  room.fits_without_side = room.fits || parts_.engine.has_place(bare);
  return room;
}

void Explainer::add_gates(const JobView& job, Why& why) const {
  const Time now = parts_.clock.now();
  for (const ShutGate& gate : parts_.gates.shut(job.number, now)) {
    WhyReason reason;
    reason.kind = to_string(gate.kind);
    const bool by_name = gate.kind == GateKind::Hold || gate.kind == GateKind::Suspension;
    reason.text = by_name && !job.reason.empty() ? job.reason : gate.text;
    reason.who = who_opens(gate.kind);
    if (gate.need != 0 || gate.have != 0)
      reason.numbers = {{"have", gate.have}, {"need", gate.need}};
    for (const JobNumber other : gate.jobs) reason.entities.push_back(fmt::format("job {}", other));
    if (gate.until) {
      reason.when = "until";
      reason.until = parts_.clock.wall() + (*gate.until - now).count();
    }
    why.reasons.push_back(std::move(reason));
  }
}

void Explainer::add_room(const JobView& job, const Shape& shape, const Room& room, Why& why) const {
  if (room.fits) return;
  const auto need = static_cast<double>(shape.gpus);
  const std::string types = job.spec->gpu_type.empty() ? "" : " of " + job.spec->gpu_type;
  const bool is_short = room.free < shape.gpus;
  if (is_short && room.out > 0 && room.free + room.out >= shape.gpus) {
    why.reasons.push_back(
        {.kind = "node state",
         .text = fmt::format("{} GPUs are on nodes that are down or drained ({}): with them there "
                             "would be enough",
                             room.out, fmt::join(room.nodes_out, ", ")),
         .numbers = {{"nodes", static_cast<double>(room.nodes_out.size())},
                     {"gpus", static_cast<double>(room.out)}},
         .entities = room.nodes_out,
         .who = "operator"});
  }
  if (is_short) {
    why.reasons.push_back(
        {.kind = "capacity",
         .text = fmt::format("{} GPUs{} are free, it asks for {}", room.free, types, shape.gpus),
         .numbers = {{"free", static_cast<double>(room.free)},
                     {"need", need},
                     {"free_of_other_types", static_cast<double>(room.others)}},
         .who = "user"});
  }
  const bool together = shape.locality == Locality::Consolidated && room.best < shape.gpus;
  if (together || (!is_short && !room.fits_without_side)) {
    why.reasons.push_back(
        {.kind = "shape",
         .text =
             fmt::format("not together as asked: at most {} of {} GPUs are free on {}", room.best,
                         shape.gpus, room.best_node.empty() ? "any node" : room.best_node),
         .numbers = {{"best", static_cast<double>(room.best)}, {"need", need}},
         .who = "user"});
  }
  if (is_short || !room.fits_without_side) return;
  why.reasons.push_back(
      {.kind = "side resource",
       .text = fmt::format("{} GPUs{} are free, but not with {:.1f} cores and {:.1f} GiB beside "
                           "each of {}",
                           room.free, types, shape.cpus_milli_per_gpu / 1000.0,
                           shape.memory_mib_per_gpu / 1024.0, shape.gpus),
       .numbers = {{"cores_needed", shape.cpus_milli_per_gpu / 1000.0},
                   {"memory_needed_mib", static_cast<double>(shape.memory_mib_per_gpu)}},
       .who = "user"});
}

void Explainer::add_order(const JobView& job, JobId slot, const Room& room, bool may_see_all,
                          Why& why) const {
  const Findings findings =
      find_out(parts_.engine, slot, parts_.slots, parts_.executor.spare_slot());
  const bool is_capacity = !why.reasons.empty();
  for (WhyReason& reason : why.reasons) reason.sole = findings.starts_if_room;
  why.place = findings.place;
  for (std::uint32_t i = 0; i < parts_.engine.jobs().size(); ++i)
    why.of += parts_.engine.jobs().is_waiting(JobId{i}) ? 1U : 0U;
  double gpus_ahead = 0;
  for (const std::uint32_t other : findings.ahead) gpus_ahead += parts_.slots.jobs[other].gpus;
  const bool behind = !findings.ahead.empty() && (!findings.starts_if_room || room.fits);
  if (behind) {
    WhyReason reason;
    reason.kind = room.fits && !findings.starts_if_alone ? "protection" : "order";
    if (room.fits && findings.starts_if_alone) reason.kind = "order";
    reason.text = fmt::format("{} jobs with {:.0f} GPUs in all come before it",
                              findings.ahead.size(), gpus_ahead);
    reason.numbers = {{"place", static_cast<double>(findings.place)}, {"gpus_ahead", gpus_ahead}};
    reason.sole = findings.starts_if_alone;
    for (std::size_t i = 0; i < findings.ahead.size() && i < 5; ++i) {
      const JobNumber number = parts_.executor.number_of(JobId{findings.ahead[i]});
      const auto& other = parts_.slots.jobs[findings.ahead[i]];
      const bool mine = parts_.slots.text(other.user) == job.spec->user;
      if (may_see_all || mine) reason.entities.push_back(fmt::format("job {}", number));
    }
    why.reasons.push_back(std::move(reason));
  } else if (findings.starts_if_alone && !findings.starts_if_room && !is_capacity) {
    why.reasons.push_back({.kind = "reservation",
                           .text = "its start would delay a job that has devices reserved",
                           .sole = true});
  }
  if (why.reasons.empty() && findings.starts_if_both) {
    why.reasons.push_back({.kind = "reservation",
                           .text =
                               "there is room, but the policy keeps it free while others run or "
                               "wait",
                           .sole = findings.starts_if_room || findings.starts_if_alone});
  }
  if (findings.starts_if_both && !why.reasons.empty()) return;
  const double turn = findings.starts_later && findings.next_turn > 0
                          ? findings.next_turn
                          : findings.turn_alone.value_or(0);
  if (turn > 0) {
    why.reasons.push_back(
        {.kind = "pace",
         .text = fmt::format("the policy decides at its own times: alone it would "
                             "start in {}",
                             human_duration(turn)),
         .numbers = {{"seconds_left", turn}},
         .when = "until",
         .until = parts_.clock.wall() + static_cast<std::int64_t>(turn * 1e6),
         .sole = why.reasons.empty()});
    return;
  }
  if (!findings.starts_if_both && findings.turn_anew) {
    why.reasons.push_back({.kind = "reservation",
                           .text =
                               "the policy has planned it for later, after jobs it has promised "
                               "devices to",
                           .sole = why.reasons.empty()});
    return;
  }
  if (why.reasons.empty() || !findings.starts_if_both) {
    why.reasons.push_back({.kind = "unexplained", .text = "the policy does not start it"});
  }
}

/// Smaller requests that the policy would start now, smallest change first; each was tried.
void Explainer::add_suggestions(const JobView& job, JobId slot, Why& why) const {
  const JobSpec& spec = *job.spec;
  struct Change {
    TraceJob request;
    std::string text;
  };
  std::vector<Change> changes;
  const TraceJob& asked = parts_.slots.jobs[slot.value];
  if (!spec.gpu_type.empty() && parts_.engine.cluster().pools() > 1) {
    TraceJob any = asked;
    any.gpu_type = NameId{};
    changes.push_back(
        {any, fmt::format("take any type of GPU: berth change {} gpu_type=", job.number)});
  }
  if (asked.cpus_milli > 0) {
    TraceJob lean = asked;
    lean.cpus_milli = std::max(1, asked.gpus) * 1000;
    if (lean.cpus_milli < asked.cpus_milli)
      changes.push_back(
          {lean, fmt::format("ask for {} cores: berth change {} cpus={}", lean.cpus_milli / 1000,
                             job.number, lean.cpus_milli / 1000)});
  }
  for (std::int32_t gpus = asked.gpus - 1; gpus >= 1; gpus = std::min(gpus - 1, gpus * 3 / 4)) {
    TraceJob fewer = asked;
    fewer.gpus = gpus;
    changes.push_back({fewer, fmt::format("ask for {} GPU{}: berth change {} gpus={}", gpus,
                                          gpus == 1 ? "" : "s", job.number, gpus)});
  }
  std::size_t tries = 0;
  for (const Change& change : changes) {
    if (tries++ == kMostTries || why.would_start.size() == 2) break;
    const auto answer = ask([&]() -> nlohmann::json {
      const auto free_slot = parts_.executor.spare_slot();
      if (!free_slot) return false;
      Trial trial{parts_.engine};
      const std::array own{slot};
      trial.clear(own);
      parts_.slots.jobs[free_slot->value] = change.request;
      trial.arrive(*free_slot);
      return contains(trial.decide(), *free_slot);
    });
    if (answer && answer->is_boolean() && answer->get<bool>())
      why.would_start.push_back(change.text);
  }
}

Why Explainer::explain(const JobView& job, bool may_see_all) const {
  Why why{.job = job.number, .state = job.state, .summary = {}, .reasons = {}, .would_start = {}};
  if (is_over(job.state)) {
    why.summary =
        fmt::format("is over: {}", job.reason.empty() ? to_string(job.state) : job.reason);
    return why;
  }
  if (job.granted > 0) {
    const std::string gpus = fmt::format("{} GPU{}", job.granted, job.granted == 1 ? "" : "s");
    why.summary = job.state == LiveState::Suspended
                      ? fmt::format("is asleep on {}: {}", gpus, job.reason)
                      : fmt::format("runs on {}", gpus);
    if (parts_.gates.is_frozen(job.number)) {
      why.reasons.push_back(
          {.kind = "suspension", .text = job.reason, .who = "operator", .sole = true});
      why.would_start.push_back(fmt::format("berth resume {}", job.number));
    }
    return why;
  }
  add_gates(job, why);
  const auto slot = parts_.executor.slot_of(job.number);
  if (slot && parts_.engine.jobs().is_waiting(*slot)) {
    const Shape& shape = parts_.engine.shapes()[parts_.engine.jobs().shape[*slot]];
    const Room room = room_for(shape);
    add_room(job, shape, room, why);
    add_order(job, *slot, room, may_see_all, why);
    add_suggestions(job, *slot, why);
  } else if (slot) {
    why.reasons.push_back({.kind = "capacity",
                           .text = "its devices are being vacated by the job before it",
                           .when = "until",
                           .sole = true});
  } else if (why.reasons.size() == 1) {
    why.reasons.front().sole = true;
  }
  why.summary = why.reasons.empty() ? "starts with the next pass" : why.reasons.front().text;
  return why;
}

std::string to_json(const Why& why) {
  nlohmann::json reasons = nlohmann::json::array();
  for (const WhyReason& reason : why.reasons) {
    nlohmann::json numbers = nlohmann::json::object();
    for (const auto& [key, value] : reason.numbers) numbers[key] = value;
    nlohmann::json row{{"kind", reason.kind},        {"text", reason.text}, {"numbers", numbers},
                       {"who", reason.who},          {"when", reason.when}, {"sole", reason.sole},
                       {"entities", reason.entities}};
    row["until"] = reason.until ? nlohmann::json(*reason.until) : nlohmann::json();
    reasons.push_back(std::move(row));
  }
  return nlohmann::json{{"job", why.job},
                        {"state", to_string(why.state)},
                        {"summary", why.summary},
                        {"reasons", reasons},
                        {"would_start", why.would_start},
                        {"place", why.place},
                        {"of", why.of},
                        {"age_seconds", 0}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace berth
