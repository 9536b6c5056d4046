// Who gets how many tasks: everyone its first ones in order of arrival, then one task at a time to
// the job whose remaining time it shortens most per unit of that task's dominant resource.
//
// Promises: never more than there is of any resource; each granted gain is the largest among the
// moves that fit then; at the end no move that fits gains. The order of the input does not matter.
// O(T log J) for T tasks granted to J jobs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "policies/optimus/tasks.h"

namespace berth::optimus {

struct AllocatedJob {
  JobId id;  // in order of arrival
  JobDemand demand;
  TaskCounts least{1, 1};  // it runs with these or not at all
  TaskCounts most{1, 1};
  TaskCounts held{};     // what it runs with now
  double work = 0;       // left
  double eagerness = 1;  // its gains count so much: less than 1 while little is known of it
  bool is_ready = true;  // false: its speed is not known, so it stays as it is
};

/// Work per second of the job at this position with so many tasks.
class JobSpeeds {
 public:
  virtual ~JobSpeeds() = default;
  [[nodiscard]] virtual double speed(std::size_t job, TaskCounts tasks) const = 0;
};

class Allocator {
 public:
  /// A job that gains nothing by one task more is asked about two, and so on up to `look_ahead`:
  /// where speed falls and rises again, as at the edge of a machine, it goes on beyond.
  explicit Allocator(std::int32_t look_ahead = 1) : look_ahead_(look_ahead) {}

  /// Tasks by position of the job; none: it waits. Valid until the next call.
  [[nodiscard]] std::span<TaskCounts> allocate(std::span<const std::int64_t> capacity,
                                               std::span<const AllocatedJob> jobs,
                                               const JobSpeeds& speeds);

  /// In order of arrival, a job keeps what it holds if the change would save it less than
  /// `overhead` seconds and everything still fits. Works on the answer of allocate().
  void keep_small_changes(std::span<const AllocatedJob> jobs, const JobSpeeds& speeds,
                          double overhead);

  /// What allocate() and keep_small_changes() left over.
  [[nodiscard]] std::span<const std::int64_t> left_over() const noexcept { return free_; }

 private:
  struct Move {
    double gain = 0;
    TaskKind kind = TaskKind::Worker;
    std::int32_t tasks = 1;
    std::uint32_t job = 0;
    JobId id{};
  };
  struct Open {
    bool ps = true;
    bool worker = true;
  };
  void grant_first(std::span<const AllocatedJob> jobs);
  void grow(std::span<const AllocatedJob> jobs, const JobSpeeds& speeds);
  void push_best(std::span<const AllocatedJob> jobs, const JobSpeeds& speeds, std::uint32_t job);
  [[nodiscard]] Move best_step(const AllocatedJob& job, const JobSpeeds& speeds, std::uint32_t at,
                               TaskKind kind) const;
  [[nodiscard]] double gain(const AllocatedJob& job, const JobSpeeds& speeds, std::uint32_t at,
                            TaskCounts more) const;
  [[nodiscard]] double dominant_amount(const TaskDemand& demand) const noexcept;

  std::int32_t look_ahead_;
  std::vector<std::int64_t> capacity_;
  std::vector<std::int64_t> free_;
  std::vector<TaskCounts> granted_;
  std::vector<Open> open_;              // scratch: moves that may still fit
  std::vector<std::uint32_t> arrival_;  // scratch: positions in order of arrival
  std::vector<Move> heap_;              // scratch: one per job
};

}  // namespace berth::optimus
