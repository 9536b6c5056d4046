#include "why/waiting_job.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace berth {

namespace {

constexpr std::size_t kMostNamed = 5;

}  // namespace

bool WaitingJob::may_be_named(JobId other) const {
  return asked.may_see_all ||
         parts.slots.text(parts.slots.jobs[other.value].user) == asked.job.spec->user;
}

std::vector<std::string> WaitingJob::named(const std::vector<JobId>& jobs) const {
  struct Holder {
    JobId slot;
    double gpu_seconds = 0;
    std::int32_t gpus = 0;
  };
  const JobTable& table = parts.engine.jobs();
  std::vector<Holder> seen;
  std::size_t hidden = 0;
  std::int64_t hidden_gpus = 0;
  for (const JobId other : jobs) {
    const TraceJob& job = parts.slots.jobs[other.value];
    const std::int32_t gpus = table.is_running(other) ? table.granted[other] : job.gpus;
    if (!may_be_named(other)) {
      ++hidden;
      hidden_gpus += gpus;
      continue;
    }
    seen.push_back({other, to_seconds(table.attained(other, parts.engine.now())) * gpus, gpus});
  }
  std::ranges::stable_sort(seen, [](const Holder& a, const Holder& b) {
    return std::tuple(-a.gpu_seconds, a.slot) < std::tuple(-b.gpu_seconds, b.slot);
  });
  std::vector<std::string> names;
  std::int64_t more_gpus = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (i < kMostNamed) {
      names.push_back(fmt::format("job {} ({})", parts.scheduler.number_of(seen[i].slot),
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

bool WaitingJob::would_start_as(const TraceJob& request) const {
  const auto spare = parts.scheduler.spare_slot();
  return spare && starts_as(parts.engine, slot, parts.slots, *spare, request);
}

std::string plural(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string devices_text(std::int64_t count, const std::string& type) {
  if (!type.empty()) return fmt::format("{} {}", count, type);
  return plural(static_cast<std::size_t>(std::max<std::int64_t>(0, count)), "GPU");
}

std::string gib_text(std::int64_t mib) {
  return fmt::format("{:.4g} GiB", static_cast<double>(mib) / 1024);
}

std::string asked_text(const JobSpec& spec, const Shape& shape) {
  std::string text = devices_text(shape.gpus, spec.gpu_type);
  if (spec.cpus > 0)
    text += fmt::format(" with {}", plural(static_cast<std::size_t>(spec.cpus), "core"));
  if (spec.memory_mib > 0)
    text += fmt::format(" {} {}", spec.cpus > 0 ? "and" : "with", gib_text(spec.memory_mib));
  if (shape.locality == Locality::Consolidated && shape.gpus > 1) text += " on one node";
  return text;
}

}  // namespace berth
