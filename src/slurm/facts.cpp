#include "slurm/facts.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/split.h"
#include "slurm/gres.h"
#include "slurm/numbers.h"

namespace berth::slurm {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

std::int64_t count_of(const std::vector<GresCount>& all, std::string_view name) noexcept {
  std::int64_t count = 0;
  for (const GresCount& gres : all)
    if (gres.name == name) count = std::min(count + std::min(gres.count, kMost), kMost);
  return count;
}

std::int64_t held_of(const Job& job, std::string_view name) noexcept {
  std::int64_t count = 0;
  for (const HeldNode& node : job.held) count += count_of(node.gres, name);
  return count;
}

/// A job may say the same in several ways (--gpus=4 --gpus-per-node=2 -N2): the largest of them.
std::int64_t requested_of(const Job& job, std::string_view name, std::int64_t nodes) noexcept {
  const std::int64_t tasks = std::max(job.tasks, 1);
  return std::max({count_of(job.per_job, name), count_of(job.per_node, name) * nodes,
                   count_of(job.per_task, name) * tasks, count_of(job.per_socket, name) * nodes});
}

std::int32_t total_of(const Job& job, std::string_view name, std::string_view tres_name) noexcept {
  const bool holds = !job.held.empty();
  std::int64_t count = held_of(job, name);
  // Slurm counts gres in TRES only where it has accounting.
  if (count == 0)
    count = tres_count(holds ? job.tres_held : job.tres_requested, tres_name).value_or(0);
  if (count == 0)
    count = requested_of(job, name,
                         holds ? static_cast<std::int64_t>(job.held.size())
                               : std::int64_t{std::max(job.min_nodes, 1)});
  return static_cast<std::int32_t>(std::min(count, kMost));
}

std::string_view type_in(const std::vector<GresCount>& all) noexcept {
  for (const GresCount& gres : all)
    if (gres.name == "gpu" && !gres.type.empty()) return gres.type;
  return {};
}

}  // namespace

std::string_view to_string(JobPhase phase) noexcept {
  switch (phase) {
    case JobPhase::Pending: return "PENDING";
    case JobPhase::Running: return "RUNNING";
    case JobPhase::Suspended: return "SUSPENDED";
    case JobPhase::Completed: return "COMPLETED";
    case JobPhase::Cancelled: return "CANCELLED";
    case JobPhase::Failed: return "FAILED";
    case JobPhase::TimedOut: return "TIMEOUT";
    case JobPhase::NodeFailed: return "NODE_FAIL";
    case JobPhase::Preempted: return "PREEMPTED";
    case JobPhase::BootFailed: return "BOOT_FAIL";
    case JobPhase::Deadline: return "DEADLINE";
    case JobPhase::OutOfMemory: return "OUT_OF_MEMORY";
    case JobPhase::Unknown: break;
  }
  return "UNKNOWN";
}

std::int32_t Job::gpus() const noexcept { return total_of(*this, "gpu", "gres/gpu"); }

std::int32_t Job::shards() const noexcept { return total_of(*this, "shard", "gres/shard"); }

std::string Job::gpu_type() const {
  for (const HeldNode& node : held)
    if (const auto type = type_in(node.gres); !type.empty()) return std::string(type);
  for (const auto* asked : {&per_job, &per_node, &per_task, &per_socket})
    if (const auto type = type_in(*asked); !type.empty()) return std::string(type);
  return std::string(tres_type(tres_held.empty() ? tres_requested : tres_held, "gpu"));
}

bool Node::is_usable() const noexcept {
  static constexpr std::array<std::string_view, 3> kBase{"IDLE", "MIXED", "ALLOCATED"};
  // Whatever else a newer Slurm may say of a node does not keep jobs away, as far as we know.
  static constexpr std::array<std::string_view, 22> kBars{
      "DOWN",         "DRAIN",         "DRAINED",
      "DRAINING",     "FAIL",          "FAILING",
      "ERROR",        "FUTURE",        "UNKNOWN",
      "INVAL",        "INVALID_REG",   "MAINT",
      "MAINTENANCE",  "RESERVED",      "NOT_RESPONDING",
      "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP",
      "POWER_DOWN",   "REBOOT_ISSUED", "REBOOT_REQUESTED",
      "BLOCKED"};
  // `*`: does not answer; the others are sinfo's marks of sleep, boot and maintenance.
  if (state.find_first_of("*~#!%$@^") != std::string::npos) return false;
  const auto words = split(state, '+');
  const auto is_bar = [](std::string_view word) {
    return std::ranges::find(kBars, word) != kBars.end();
  };
  return std::ranges::find(kBase, words.front()) != kBase.end() &&
         std::ranges::none_of(words, is_bar);
}

std::string Config::value(std::string_view key) const {
  const auto found = all.find(std::string(key));
  return found == all.end() ? std::string() : found->second;
}

std::string to_string(Version version) {
  return fmt::format("{:02}.{:02}.{}", version.year, version.month, version.micro);
}

std::optional<Version> parse_version(std::string_view text) {
  // "slurm-wlm 24.11.5", "slurm 23.02.0-rc1": the last word that begins with a digit counts.
  const std::size_t space = text.find_last_of(" \t");
  if (space != std::string_view::npos) text.remove_prefix(space + 1);
  const auto parts = split(text, '.');
  if (parts.size() < 2) return std::nullopt;
  Version version;
  version.year = number_or<std::int32_t>(parts[0], -1);
  version.month = number_or<std::int32_t>(parts[1], -1);
  if (version.year < 0 || version.month < 0) return std::nullopt;
  if (parts.size() > 2)
    version.micro =
        number_or<std::int32_t>(parts[2].substr(0, parts[2].find_first_not_of("0123456789")), 0);
  return version;
}

}  // namespace berth::slurm
