// Who comes before a job, and what the policy wants beyond room and turn.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "why/waiting_job.h"

namespace berth {

namespace {

/// Seconds since the pass after which the policy is asked: what it says counts from there.
double age_of(const Explainer::Parts& parts) {
  return to_seconds(parts.scheduler.now() - parts.engine.now());
}

bool is_gate_of_time(const WhyReason& reason) { return reason.when == "until"; }

/// It would start if it asked for less time: devices are reserved for the first of those ahead.
void add_reservation(const WaitingJob& waiting, std::int64_t limit, Why& why) {
  const JobId reserved = waiting.findings.ahead.front();
  const auto name = waiting.named({reserved});
  const std::string time = human_duration(static_cast<double>(limit));
  const std::string fix = fmt::format("run at most {}: berth change {} time_limit={}s", time,
                                      waiting.asked.job.number, limit);
  WhyReason reason{
      .kind = "reservation",
      .text = fmt::format("there is room, but its start would delay {}, for which devices are "
                          "reserved in {}",
                          name.front(), time),
      .numbers = {{"longest_limit", limit},
                  {"at", waiting.parts.scheduler.wall() + limit * 1'000'000}},
      .entities = name,
      .fix = fix,
      .who = "user",
      .sole = !waiting.is_gated};
  if (waiting.may_be_named(reserved))
    reason.numbers.emplace_back(
        "job", static_cast<std::int64_t>(waiting.parts.scheduler.number_of(reserved)));
  why.reasons.push_back(std::move(reason));
  if (!waiting.is_gated) why.would_start.push_back(fix);
}

}  // namespace

void add_order(const WaitingJob& waiting, Why& why) {
  const Findings& found = waiting.findings;
  const WhyRoom& room = waiting.room;
  if (found.starts_now || found.ahead.empty() || (found.starts_if_room && !room.fits)) return;
  if (room.fits && !found.starts_if_alone) return;  // said by add_policy
  if (room.fits) {
    const std::int64_t limit = longest_limit(waiting).value_or(0) -
                               static_cast<std::int64_t>(std::ceil(age_of(waiting.parts)));
    if (limit > 0) return add_reservation(waiting, limit, why);
  }
  std::int64_t gpus_ahead = 0;
  for (const JobId other : found.ahead) gpus_ahead += waiting.parts.slots.jobs[other.value].gpus;
  why.reasons.push_back(
      {.kind = "order",
       .text = fmt::format("{} with {} in all come{} before it", plural(found.ahead.size(), "job"),
                           devices_text(gpus_ahead, {}), found.ahead.size() == 1 ? "s" : ""),
       .numbers = {{"place", static_cast<std::int64_t>(found.place)}, {"gpus_ahead", gpus_ahead}},
       .entities = waiting.named(found.ahead),
       .sole = found.starts_if_alone && !waiting.is_gated});
}

void add_policy(const WaitingJob& waiting, Why& why) {
  const Findings& found = waiting.findings;
  const std::int64_t wall = waiting.parts.scheduler.wall();
  const auto at = [&](double seconds) { return wall + static_cast<std::int64_t>(seconds * 1e6); };
  const bool ungated = !waiting.is_gated;
  if (found.starts_now) return;
  const double protection = found.turn_among.value_or(0);
  if (!waiting.room.fits && protection > 0) {
    const double left = std::max(0.0, protection - age_of(waiting.parts));
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
    const double left = std::max(0.0, turn - age_of(waiting.parts));
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

}  // namespace berth
