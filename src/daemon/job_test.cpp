// What would become of a request: asked of admission and of a copy of the engine, without making a
// job.
#include <future>

#include <fmt/format.h>

#include "daemon/live_service.h"
#include "daemon/service_fault.h"

namespace berth {

namespace {

/// Gates that a request brings with it.
void add_own_gates(const JobSpec& spec, std::int64_t wall, Foreseen& seen) {
  const auto add = [&](const char* kind, std::string text) -> WhyReason& {
    seen.starts_now = false;
    seen.summary = text;
    return *seen.reasons.insert(seen.reasons.begin(),
                                {.kind = kind, .text = std::move(text), .who = "user"});
  };
  if (!spec.dependencies.empty())
    add("dependency", fmt::format("waits for {}", to_text(spec.dependencies, spec.any_dependency)));
  if (spec.begin > wall / 1'000'000) {
    WhyReason& reason = add(
        "begin", fmt::format("begins in {}",
                             human_duration(static_cast<double>(spec.begin - wall / 1'000'000))));
    reason.when = "until";
    reason.until = spec.begin * 1'000'000;
  }
  if (spec.hold) add("hold", "is held until somebody releases it");
}

}  // namespace

Answer<Foreseen> LiveService::test(const Caller& caller, JobSpec spec) {
  Foreseen seen;
  if (auto fine = submitter_.check(caller, spec, seen.notes); !fine)
    return tl::unexpected<Fault>(std::move(fine).error());
  if (!parts_.foresee) return Service::test(caller, std::move(spec));
  auto promise = std::make_shared<std::promise<Answer<Why>>>();
  auto answer = promise->get_future();
  parts_.ask_engine({.ask =
                         [this, promise, spec] {
                           if (parts_.refusal_of)
                             if (const auto refusal = parts_.refusal_of(spec))
                               return promise->set_value(
                                   fault(FaultKind::Impossible,
                                         fmt::format("the policy refuses it: {}", *refusal)));
                           promise->set_value(parts_.foresee(spec));
                         },
                     .too_late =
                         [promise] {
                           promise->set_value(fault(FaultKind::Unavailable, std::string{kTooLate}));
                         }});
  if (answer.wait_for(std::chrono::seconds{20}) != std::future_status::ready)
    return fault(FaultKind::Unavailable, "the scheduler is busy: ask again");
  Answer<Why> why = answer.get();
  if (!why) return tl::unexpected<Fault>(why.error());
  seen.job = parts_.board.next_number();
  seen.starts_now = why->reasons.empty();
  seen.queue = spec.queue;
  seen.gpus = spec.gpus;
  seen.cpus = spec.cpus;
  seen.time_limit = spec.time_limit;
  seen.summary = why->summary;
  seen.reasons = std::move(why->reasons);
  seen.place = why->place;
  seen.of = why->of;
  if (parts_.cluster.nodes.size() == 1) seen.nodes.push_back(parts_.cluster.nodes.front().name);
  add_own_gates(spec, parts_.clock.wall(), seen);
  return seen;
}

}  // namespace berth
