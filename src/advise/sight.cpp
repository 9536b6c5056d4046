#include "advise/sight.h"

#include <algorithm>

#include "base/split.h"

namespace berth::advise {

std::span<const slurm::Job> Sight::all_jobs() const noexcept {
  return jobs ? std::span<const slurm::Job>{*jobs} : std::span<const slurm::Job>{};
}

std::span<const slurm::Node> Sight::all_nodes() const noexcept {
  return nodes ? std::span<const slurm::Node>{*nodes} : std::span<const slurm::Node>{};
}

const slurm::Node* Sight::node(std::string_view name) const noexcept {
  const auto all = all_nodes();
  const auto found = std::ranges::find(all, name, &slurm::Node::name);
  return found == all.end() ? nullptr : &*found;
}

const slurm::Partition* Sight::partition(std::string_view names) const noexcept {
  const std::string_view name = names.substr(0, names.find(','));
  const auto found = std::ranges::find(partitions, name, &slurm::Partition::name);
  return found == partitions.end() ? nullptr : &*found;
}

const slurm::Reservation* Sight::reservation(std::string_view name) const noexcept {
  const auto found = std::ranges::find(reservations, name, &slurm::Reservation::name);
  return found == reservations.end() ? nullptr : &*found;
}

namespace {

FoundJob find_task(const Sight& sight, std::uint32_t array, std::int32_t index) {
  for (const slurm::Job& job : sight.all_jobs()) {
    if (job.array != array) continue;
    const auto tasks = tasks_of(job);
    if (!std::ranges::binary_search(tasks, index)) continue;
    if (tasks.size() == 1) return {.job = &job};
    return {.job = &job, .task = index};
  }
  return {};
}

}  // namespace

FoundJob find_job(const Sight& sight, JobNumber number) {
  const auto array = static_cast<std::uint32_t>(number >> 32U);
  if (array != 0) return find_task(sight, array, static_cast<std::int32_t>(number & 0x7fffffffU));
  const auto all = sight.all_jobs();
  const auto found = std::ranges::lower_bound(
      all, number, {}, [](const slurm::Job& job) { return JobNumber{job.key.job}; });
  if (found != all.end() && found->key.job == number) return {.job = &*found};
  // The record of an array's first id is that of its last task: it may be over and forgotten.
  const auto of_array =
      std::ranges::find(all, number, [](const slurm::Job& job) { return JobNumber{job.array}; });
  return {.job = of_array == all.end() || number == 0 ? nullptr : &*of_array};
}

std::vector<std::int32_t> tasks_of(const slurm::Job& job) {
  if (job.array == 0 || job.array_tasks.empty()) return {};
  auto array = parse_array(job.array_tasks);
  if (!array) return {};
  return std::move(array->indices);
}

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string_view part : split(list, ','))
    if (!part.empty()) names.emplace_back(part);
  return names;
}

}  // namespace berth::advise
