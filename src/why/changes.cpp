// What would let a job start now: the smallest changes, each tried by a dry run before it is told.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "why/waiting_job.h"

namespace berth {

namespace {

constexpr std::size_t kMostTries = 16;
constexpr std::size_t kMostSteps = 5;
constexpr std::size_t kMostChanges = 3;

/// Each is tried in the engine's own state before a policy is asked: more would take too long.
constexpr std::size_t kMostPlaces = 512;

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

/// From `most` down, in steps that grow: where room alone does not decide, a little less may.
std::vector<std::int64_t> steps(std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = most; value >= 1 && values.size() < kMostSteps;
       value = std::min(value - 1, value * 3 / 4))
    values.push_back(value);
  return values;
}

std::int64_t per_device(std::int64_t total, std::int64_t devices) {
  return (total + devices - 1) / devices;
}

/// What of a side resource each device of a gang could have: what is free on a node, shared by as
/// many of them as it may hold. One of these is the most with which there is room.
template <class FreeOn>
std::vector<std::int64_t> shares(const ClusterState& state, const Shape& shape, FreeOn free_on) {
  std::vector<std::int64_t> values;
  for (std::uint32_t i = 0; i < state.cluster().nodes.size(); ++i) {
    const NodeId node{i};
    if (!state.is_up(node)) continue;
    const std::int32_t devices = std::max(1, std::min(shape.gpus, state.free_on(node)));
    for (std::int32_t count = 1; count <= devices; ++count) values.push_back(free_on(node) / count);
  }
  std::ranges::sort(values, std::greater{});
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// The largest of `values`, which descend, that is below `asked` and with which there is a place
/// now, and then smaller ones; nothing if there is none.
template <class WithValue>
std::vector<std::int64_t> that_fit(const Engine& engine, const std::vector<std::int64_t>& values,
                                   std::int64_t asked, WithValue shape_with) {
  std::size_t tries = 0;
  for (const std::int64_t value : values) {
    if (value < 1 || tries == kMostPlaces) break;
    if (value >= asked) continue;
    ++tries;
    if (engine.has_place(shape_with(value))) return steps(value);
  }
  return {};
}

Ladder cores_for(const Engine& engine, const JobView& job, const Shape& shape,
                 const TraceJob& asked) {
  if (shape.cpus_milli_per_gpu == 0) return {};
  const std::int64_t devices = std::max(1, shape.gpus);
  const ClusterState& state = engine.cluster();
  std::vector<std::int64_t> each =
      shares(state, shape, [&](NodeId node) { return state.free_cpus_milli(node); });
  for (std::int64_t& value : each) value = value * devices / 1000;  // whole cores of the job
  const auto fitting = that_fit(engine, each, asked.cpus_milli / 1000, [&](std::int64_t cores) {
    Shape lean = shape;
    lean.cpus_milli_per_gpu = static_cast<std::int32_t>(per_device(cores * 1000, devices));
    return lean;
  });
  Ladder ladder;
  for (const std::int64_t cores : fitting) {
    TraceJob lean = asked;
    lean.cpus_milli = static_cast<std::int32_t>(cores * 1000);
    ladder.push_back(
        {lean, fmt::format("ask for {}: berth change {} cpus={}",
                           plural(static_cast<std::size_t>(cores), "core"), job.number, cores)});
  }
  return ladder;
}

Ladder memory_for(const Engine& engine, const JobView& job, const Shape& shape,
                  const TraceJob& asked) {
  if (shape.memory_mib_per_gpu == 0) return {};
  const std::int64_t devices = std::max(1, shape.gpus);
  const ClusterState& state = engine.cluster();
  std::vector<std::int64_t> each =
      shares(state, shape, [&](NodeId node) { return state.free_memory_mib(node); });
  for (std::int64_t& value : each) value *= devices;
  const auto fitting = that_fit(engine, each, asked.memory_mib, [&](std::int64_t mib) {
    Shape lean = shape;
    lean.memory_mib_per_gpu = static_cast<std::int32_t>(per_device(mib, devices));
    return lean;
  });
  Ladder ladder;
  for (const std::int64_t mib : fitting) {
    TraceJob lean = asked;
    lean.memory_mib = static_cast<std::int32_t>(mib);
    ladder.push_back(
        {lean, fmt::format("ask for {} MiB: berth change {} memory_mib={}", mib, job.number, mib)});
  }
  return ladder;
}

Ladder gpus_for(const Engine& engine, const WhyRoom& room, const JobView& job, const Shape& shape,
                const TraceJob& asked) {
  std::vector<std::int64_t> counts;  // no more than are free
  const std::int64_t most = std::min<std::int64_t>(asked.gpus - 1, room.free);
  for (std::int64_t count = most; count >= 1 && counts.size() < kMostPlaces; --count)
    counts.push_back(count);
  auto fitting = that_fit(engine, counts, asked.gpus, [&](std::int64_t count) {
    Shape fewer = shape;
    fewer.gpus = static_cast<std::int32_t>(count);
    fewer.cpus_milli_per_gpu = static_cast<std::int32_t>(per_device(asked.cpus_milli, count));
    fewer.memory_mib_per_gpu = static_cast<std::int32_t>(per_device(asked.memory_mib, count));
    return fewer;
  });
  if (fitting.empty()) fitting = steps(asked.gpus - 1);  // a policy may make room for less
  Ladder ladder;
  for (const std::int64_t gpus : fitting) {
    TraceJob fewer = asked;
    fewer.gpus = static_cast<std::int32_t>(gpus);
    fewer.gpus_min = std::min(asked.gpus_min, fewer.gpus);
    fewer.gpus_max = std::min(asked.gpus_max, fewer.gpus);
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

std::optional<std::int64_t> longest_limit(const WaitingJob& waiting) {
  const TraceJob& asked = waiting.parts.slots.jobs[waiting.slot.value];
  const auto starts_with = [&](std::int64_t seconds) {
    return waiting.would_start_as(with_limit(asked, seconds));
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

void add_changes(const WaitingJob& waiting, Why& why) {
  const JobView& job = waiting.asked.job;
  const TraceJob& asked = waiting.parts.slots.jobs[waiting.slot.value];
  const Engine& engine = waiting.parts.engine;
  const Shape& shape = waiting.shape;
  std::size_t tries = 0;
  for (const Ladder& ladder :
       {types_for(job, asked, engine.cluster().pools()), cores_for(engine, job, shape, asked),
        memory_for(engine, job, shape, asked), gpus_for(engine, waiting.room, job, shape, asked)}) {
    if (why.would_start.size() >= kMostChanges) return;
    for (const Change& change : ladder) {
      if (tries++ == kMostTries) return;
      if (!waiting.would_start_as(change.request)) continue;
      why.would_start.push_back(change.text);
      break;
    }
  }
}

}  // namespace berth
