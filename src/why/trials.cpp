#include "why/trials.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/trial.h"
#include "why/forked.h"

namespace berth {

namespace {

constexpr std::size_t kMostRounds = 200;  // of decisions, to find a place in the order
constexpr Duration kHorizon = std::chrono::hours{24 * 30};

bool contains(const std::vector<JobId>& jobs, JobId job) {
  return std::ranges::find(jobs, job) != jobs.end();
}

/// Seconds until the policy, at times of its own choosing, starts the job; nobody comes or goes.
nlohmann::json turn_of(Trial& trial, const Engine& engine, JobId job) {
  const Time now = engine.now();
  Time at = now;
  for (std::size_t round = 0; round < kMostRounds; ++round) {
    if (contains(trial.decide(at), job)) return to_seconds(at - now);
    const auto next = trial.next_wakeup();
    if (!next || *next <= at || *next - now > kHorizon) break;
    at = *next;
  }
  return nullptr;
}

std::optional<double> seconds_from(const std::optional<nlohmann::json>& answer) {
  if (!answer || !answer->is_number()) return std::nullopt;
  return answer->get<double>();
}

/// With the cluster for itself, from now on or, with `anew`, as a job that comes only now and takes
/// this slot.
std::optional<double> turn_alone(Engine& engine, JobId job, Trace& slots,
                                 std::optional<JobId> anew) {
  return seconds_from(ask_a_copy([&]() -> nlohmann::json {
    Trial trial{engine};
    trial.clear_waiting(job);
    trial.clear_running();
    trial.put_all_nodes_up();
    if (!anew) return turn_of(trial, engine, job);
    const std::array own{job};
    trial.clear(own);
    slots.jobs[anew->value] = slots.jobs[job.value];
    trial.arrive(*anew);
    return turn_of(trial, engine, *anew);
  }));
}

/// Who would start before it if nobody ran, round after round.
void find_place(Engine& engine, JobId job, Findings& findings) {
  const auto answer = ask_a_copy([&]() -> nlohmann::json {
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
  if (!answer) return;
  for (const auto& slot : (*answer)["ahead"])
    findings.ahead.push_back(JobId{slot.get<std::uint32_t>()});
  if (!answer->contains("turn")) return;
  findings.place = findings.ahead.size() + 1;
  findings.next_turn = (*answer)["turn"].get<double>();
}

}  // namespace

std::optional<nlohmann::json> ask_a_copy(const std::function<nlohmann::json()>& work) {
  const auto text = in_a_copy([&] { return work().dump(); });
  if (!text) return std::nullopt;
  auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

bool starts(Engine& engine, JobId job, const Lifted& lifted) {
  const auto answer = ask_a_copy([&]() -> nlohmann::json {
    Trial trial{engine};
    if (lifted.waiting) trial.clear_waiting(job);
    if (lifted.running) trial.clear_running();
    if (lifted.nodes) trial.put_all_nodes_up();
    return contains(trial.decide(), job);
  });
  return answer && answer->is_boolean() && answer->get<bool>();
}

bool starts_as(Engine& engine, JobId job, Trace& slots, JobId spare, const TraceJob& request) {
  const auto answer = ask_a_copy([&]() -> nlohmann::json {
    Trial trial{engine};
    const std::array own{job};
    trial.clear(own);
    slots.jobs[spare.value] = request;
    trial.arrive(spare);
    return contains(trial.decide(), spare);
  });
  return answer && answer->is_boolean() && answer->get<bool>();
}

Findings find_out(Engine& engine, JobId job, Trace& slots, std::optional<JobId> spare) {
  Findings findings;
  findings.starts_now = starts(engine, job, {});
  findings.starts_if_nodes = starts(engine, job, {.nodes = true});
  findings.starts_if_room = starts(engine, job, {.nodes = true, .running = true});
  findings.starts_if_alone = starts(engine, job, {.waiting = true});
  findings.starts_if_both = findings.starts_if_room ||
                            starts(engine, job, {.nodes = true, .running = true, .waiting = true});
  if (!findings.starts_now) {
    findings.turn_among = seconds_from(ask_a_copy([&]() -> nlohmann::json {
      Trial trial{engine};
      return turn_of(trial, engine, job);
    }));
  }
  if (!findings.starts_if_both) {
    findings.turn_alone = turn_alone(engine, job, slots, std::nullopt);
    if (!findings.turn_alone && spare) findings.turn_anew = turn_alone(engine, job, slots, spare);
  }
  find_place(engine, job, findings);
  return findings;
}

}  // namespace berth
