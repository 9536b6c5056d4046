// A whole scheduler over a simulated Slurm, in one thread: the real engine, policies, gates,
// supervisor, journal writer and SlurmHost over a simulated clock, disk and slurmctld. People act by
// a script; the scheduler may be killed at any named point and is begun again on what is left.
// Deterministic by its seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/clock.h"
#include "daemon/scheduler_options.h"
#include "model/cluster.h"
#include "slurm_host/run_track.h"
#include "store/record.h"
#include "support/sim_disk.h"
#include "support/sim_slurm.h"

namespace berth::test {

struct SlurmWorldOptions {
  SimSlurm::Options slurm{};
  SchedulerOptions scheduling{};
  TrackRules rules{};
  std::uint64_t seed = 1;
  double deadline = 50'000;  // seconds after which everybody must be over
  bool keeps_log = false;
};

class SlurmWorld final : public ClockSource {
 public:
  explicit SlurmWorld(SlurmWorldOptions options);
  ~SlurmWorld() override;

  /// Somebody does this after so many seconds of the world, whether the scheduler lives or not.
  void at(double seconds, std::function<void(SimSlurm&)> act);
  /// The scheduler dies when it passes the n-th crash point of its life, and is away for a while.
  void crash_at(std::uint64_t point, double away = 1);
  void crash_at_time(double seconds, double away = 1);
  /// A person asks the scheduler itself, at that time; not if it is dead.
  void wish_at(double seconds, WishRecord wish);
  /// Lives until everybody is over in Slurm and with us.
  void run(int most_crashes = 100);

  [[nodiscard]] SimSlurm& slurm() noexcept { return slurm_; }
  [[nodiscard]] double seconds() const noexcept;
  /// How each job of ours ended, by its name in Slurm; the last that had it.
  [[nodiscard]] const std::map<std::string, Outcome>& over() const noexcept { return over_; }
  [[nodiscard]] std::vector<std::string>& violations() noexcept { return violations_; }
  [[nodiscard]] const std::vector<std::string>& log() const noexcept { return log_; }
  [[nodiscard]] std::uint64_t points_passed() const noexcept { return points_; }
  [[nodiscard]] const std::set<std::string>& deaths_at() const noexcept { return deaths_at_; }
  [[nodiscard]] int lives() const noexcept { return lives_; }
  [[nodiscard]] int intents() const noexcept { return intents_; }

  [[nodiscard]] std::int64_t boot_micros() const override { return micros_; }
  [[nodiscard]] std::int64_t wall_micros() const override;
  [[nodiscard]] std::string boot_id() const override { return "boot"; }

 private:
  struct Life;
  class Queue;
  class DirectJournal;
  [[nodiscard]] bool live();
  void begin_life();
  /// Time passes up to then; what is due in Slurm and in the script happens.
  void pass(std::int64_t until);
  void note(std::string line);
  void check_place(const slurm::Job& job, const slurm::Placement& placement);
  [[nodiscard]] bool is_done() const;

  SlurmWorldOptions options_;
  SimSlurm slurm_;
  Cluster cluster_;
  SimDisk disk_;
  Rng rng_;
  std::int64_t micros_ = 1'000'000;
  std::multimap<std::int64_t, std::function<void()>> script_;
  std::unique_ptr<Life> life_;
  std::uint64_t points_ = 0;
  std::optional<std::uint64_t> crash_at_;
  double away_ = 1;
  bool is_killed_ = false;
  std::set<std::string> deaths_at_;
  std::map<std::string, Outcome> over_;
  std::set<JobNumber> ended_;
  std::vector<std::string> violations_;
  std::vector<std::string> log_;
  std::pair<std::int64_t, Time> last_life_{};
  int lives_ = 0;
  int intents_ = 0;
};

}  // namespace berth::test
