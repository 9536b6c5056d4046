// What would let a job start now: the smallest changes, each tried by a dry run before it is told.
#include <algorithm>

#include <fmt/format.h>

#include "daemon/why_waiting.h"

namespace berth {

namespace {

constexpr std::size_t kMostTries = 16;
constexpr std::size_t kMostChanges = 3;

/// From what is asked down to `least`, in steps that grow.
std::vector<std::int32_t> fewer_than(std::int32_t asked, std::int32_t least) {
  std::vector<std::int32_t> values;
  for (std::int32_t value = asked - 1; value >= least; value = std::min(value - 1, value * 3 / 4))
    values.push_back(value);
  return values;
}

struct Change {
  TraceJob request;
  std::string text;
};

/// Of one kind of thing, smallest change first: the first that helps is enough.
using Ladder = std::vector<Change>;

Ladder types_for(const JobView& job, const TraceJob& asked, std::size_t pools) {
  if (job.spec->gpu_type.empty() || pools < 2) return {};
  TraceJob any = asked;
  any.gpu_type = NameId{};
  return {{any, fmt::format("take any type of GPU: berth change {} gpu_type=", job.number)}};
}

Ladder cores_for(const JobView& job, const TraceJob& asked) {
  Ladder ladder;
  for (const std::int32_t cores : fewer_than(asked.cpus_milli / 1000, 1)) {
    TraceJob lean = asked;
    lean.cpus_milli = cores * 1000;
    ladder.push_back(
        {lean, fmt::format("ask for {}: berth change {} cpus={}",
                           plural(static_cast<std::size_t>(cores), "core"), job.number, cores)});
  }
  return ladder;
}

Ladder memory_for(const JobView& job, const TraceJob& asked) {
  Ladder ladder;
  for (const std::int32_t eighths : {6, 4, 2, 1}) {
    TraceJob lean = asked;
    lean.memory_mib = asked.memory_mib * eighths / 8;
    if (lean.memory_mib < 1) break;
    ladder.push_back({lean, fmt::format("ask for {} MiB: berth change {} memory_mib={}",
                                        lean.memory_mib, job.number, lean.memory_mib)});
  }
  return ladder;
}

Ladder gpus_for(const JobView& job, const TraceJob& asked) {
  Ladder ladder;
  for (const std::int32_t gpus : fewer_than(asked.gpus, 1)) {
    TraceJob fewer = asked;
    fewer.gpus = gpus;
    fewer.gpus_min = std::min(asked.gpus_min, gpus);
    fewer.gpus_max = std::min(asked.gpus_max, gpus);
    ladder.push_back(
        {fewer, fmt::format("ask for {}: berth change {} gpus={}",
                            devices_text(gpus, job.spec->gpu_type), job.number, gpus)});
  }
  return ladder;
}

TraceJob with_limit(const TraceJob& asked, std::int64_t seconds) {
  TraceJob shorter = asked;
  shorter.estimate = std::chrono::seconds{seconds};
  shorter.duration = shorter.estimate;
  return shorter;
}

}  // namespace

bool Explainer::would_start(const Waiting& waiting, const TraceJob& request) const {
  const auto spare = parts_.executor.spare_slot();
  return spare && starts_as(parts_.engine, waiting.slot, parts_.slots, *spare, request);
}

/// The longest time limit found with which it would start now, in seconds. Every value that counts
/// was tried; policies need not be monotone, so a longer one may exist.
std::optional<std::int64_t> Explainer::longest_limit(const Waiting& waiting) const {
  const TraceJob& asked = parts_.slots.jobs[waiting.slot.value];
  const auto starts_with = [&](std::int64_t seconds) {
    return would_start(waiting, with_limit(asked, seconds));
  };
  if (!starts_with(1)) return std::nullopt;
  std::int64_t good = 1;
  std::int64_t bad = asked.estimate > Duration::zero()
                         ? std::chrono::ceil<std::chrono::seconds>(asked.estimate).count()
                         : std::int64_t{30} * 86'400;
  while (bad - good > std::max<std::int64_t>(1, good / 100)) {
    const std::int64_t middle = good + (bad - good) / 2;
    (starts_with(middle) ? good : bad) = middle;
  }
  return good;
}

void Explainer::add_changes(const Waiting& waiting, Why& why) const {
  const JobView& job = waiting.asked.job;
  const TraceJob& asked = parts_.slots.jobs[waiting.slot.value];
  std::size_t tries = 0;
  for (const Ladder& ladder :
       {types_for(job, asked, parts_.engine.cluster().pools()), cores_for(job, asked),
        memory_for(job, asked), gpus_for(job, asked)}) {
    if (why.would_start.size() >= kMostChanges) return;
    for (const Change& change : ladder) {
      if (tries++ == kMostTries) return;
      if (!would_start(waiting, change.request)) continue;
      why.would_start.push_back(change.text);
      break;
    }
  }
}

}  // namespace berth
