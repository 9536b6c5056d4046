// What is known of a Slurm at one moment: jobs and nodes as last read, and what changes seldom. It
// never changes once it is made, so that threads share it without locks; a later picture shares
// what has not changed with the one before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_spec.h"
#include "slurm/facts.h"

namespace berth::advise {

inline constexpr std::int64_t kMicro = 1'000'000;  // of a second

struct Sight {
  std::int64_t at = 0;  // Unix microseconds when jobs were last told; 0: never
  std::shared_ptr<const std::vector<slurm::Job>> jobs{};  // by id; with those that ended lately
  std::shared_ptr<const std::vector<slurm::Node>> nodes{};
  std::vector<slurm::Partition> partitions{};
  std::vector<slurm::Switch> topology{};
  std::vector<slurm::Reservation> reservations{};
  slurm::Config config{};
  std::optional<slurm::Version> version{};

  [[nodiscard]] std::span<const slurm::Job> all_jobs() const noexcept;
  [[nodiscard]] std::span<const slurm::Node> all_nodes() const noexcept;
  [[nodiscard]] const slurm::Node* node(std::string_view name) const noexcept;
  /// Nothing: there is none of this name. A job may name several ("a,b"): the first is meant.
  [[nodiscard]] const slurm::Partition* partition(std::string_view names) const noexcept;
  [[nodiscard]] const slurm::Reservation* reservation(std::string_view name) const noexcept;
};
using SightPtr = std::shared_ptr<const Sight>;

/// Tasks of an array have numbers of their own: the array's id above, the index below.
[[nodiscard]] constexpr JobNumber task_number(std::uint32_t array, std::uint32_t index) noexcept {
  return (JobNumber{array} << 32U) | index;
}

struct FoundJob {
  const slurm::Job* job = nullptr;     // nothing: there is none
  std::optional<std::int32_t> task{};  // it waits together with others of its array
};
/// By Slurm's id, by the id of an array of which something is left, or by task_number().
[[nodiscard]] FoundJob find_job(const Sight& sight, JobNumber number);

/// Indices of the tasks that a record stands for; empty: no array, or too long a list.
[[nodiscard]] std::vector<std::int32_t> tasks_of(const slurm::Job& job);

/// "a,b" without blanks and empty parts.
[[nodiscard]] std::vector<std::string> names_in(std::string_view list);

}  // namespace berth::advise
