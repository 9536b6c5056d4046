// What became of each job: one row per job of the trace, detached from the engine, so that a run
// read back from its files is treated like one that has just ended. Derived figures are functions
// of the row.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/time.h"
#include "core/engine.h"

namespace berth {

struct JobOutcome {
  NameId id, user, group, queue, model;
  NameId reason;  // why it was rejected
  JobState state = JobState::Unknown;
  std::int32_t gpus = 1;
  Time submit;
  std::optional<Time> start;   // first held devices
  std::optional<Time> finish;  // over, however it ended
  Duration run_time{};         // held devices, overhead included
  Duration overhead{};         // held them without progress
  Duration service{};          // held time times devices held
  Duration duration{};         // reference seconds the whole job takes
  Duration work{};             // reference seconds done
  std::optional<Time> deadline;
  bool soft_deadline = false;
  std::uint32_t preemptions = 0;
  std::uint32_t migrations = 0;
  std::uint32_t lost_attempts = 0;
  std::uint32_t suspensions = 0;
  std::uint32_t retries = 0;
  Duration wasted{};  // service of failed attempts, its last one among them
  double neighbours =
      1;  // time-average number of jobs in the system during its stay, itself included

  /// Held devices and is over: completed, failed, or killed while or after running. Means are over
  /// these.
  [[nodiscard]] bool ran_to_an_end() const noexcept {
    return is_over(state) && start && finish && state != JobState::Rejected;
  }
  [[nodiscard]] bool missed_deadline() const noexcept {
    return deadline && !(ran_to_an_end() && *finish <= *deadline);
  }
  /// Of jobs that ran to an end:
  [[nodiscard]] Duration jct() const noexcept { return *finish - submit; }
  [[nodiscard]] Duration queue_time() const noexcept {
    return std::max(Duration::zero(), jct() - run_time);
  }
  [[nodiscard]] std::optional<double> slowdown()
      const noexcept;                                      // JCT / work; nothing without work
  [[nodiscard]] double bounded_slowdown() const noexcept;  // max(1, JCT / max(work, 10 s))
  [[nodiscard]] std::optional<double> ftf(
      double cluster_gpus) const noexcept;                   // JCT / time on a 1/N slice
  [[nodiscard]] std::optional<double> rho() const noexcept;  // Themis: JCT / (work x N)
};

/// Devices a job asks for: none if it wants cores and memory alone.
[[nodiscard]] inline std::int32_t devices_of(const JobRequest& job) noexcept {
  return job.gpu_milli == 0 ? 0 : job.gpus;
}

[[nodiscard]] std::string_view status_text(JobState state) noexcept;
[[nodiscard]] std::optional<JobState> status_from(std::string_view text) noexcept;

struct Outcomes {
  Names names;
  std::vector<JobOutcome> rows;  // by JobId
};
[[nodiscard]] Outcomes outcomes_of(const Engine& engine, const Trace& trace);
/// Fills `neighbours` from submit and finish times: O(n log n).
void count_neighbours(std::vector<JobOutcome>& rows);

}  // namespace berth
