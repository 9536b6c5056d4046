// Processes without processes: shims that claim, run and leave exit records in simulated time, and
// go on while the scheduler is dead. Keeps its own books of who was alive when and where, fed by
// nothing but what it was told to do; a second attempt of a job beside a living one, or a device
// with more than its limit, is written down as a violation.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "exec/host.h"

namespace berth::test {

class SimHost final : public Host {
 public:
  using Micros = std::int64_t;
  /// Orders say what a job does by its command: "run SECONDS [EXIT]", "stubborn SECONDS" (ignores
  /// warnings), "flaky SECONDS FAILURES" (fails so often first), "anew SECONDS" (saves nothing:
  /// each attempt begins at the beginning).
  struct Options {
    Micros claim_delay = 500;
    Micros start_delay = 1'000;
    std::int32_t device_limit = 1;  // jobs on a device
    // What goes wrong by itself, each so often (0 to 1).
    double dies_unclaimed = 0, dies_claimed = 0, dies_unrecorded = 0;  // shims
    double told_twice = 0;                                             // events
    Micros told_late = 0;  // up to so much; a later one may overtake an earlier one
    std::uint64_t seed = 1;
  };
  explicit SimHost(Options options) : options_(options), rng_(options.seed) {}
  SimHost() : SimHost(Options{}) {}

  // The world.
  void set_sink(std::function<void(HostEvent)> sink) {
    sink_ = std::move(sink);
    post_.clear();  // it was on its way to a scheduler that is dead
  }
  /// Hears the name of each fault that strikes here ("late-claims", "flaky" …).
  void set_fault_counter(std::function<void(std::string_view)> count) { count_ = std::move(count); }
  [[nodiscard]] std::optional<Micros> next() const;
  /// Lets the earliest thing happen that is due by then.
  void step(Micros now);
  void set_now(Micros now) { now_ = now; }
  void power_off();  // all processes are gone; claims and exit records stay
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }
  [[nodiscard]] std::size_t alive() const;
  [[nodiscard]] double seconds_done(JobNumber job) const;
  /// With what its attempt has done so far.
  [[nodiscard]] double seconds_worked(JobNumber job) const;
  /// Nothing: it does not run, or stands still.
  [[nodiscard]] std::optional<Micros> runs_since(JobNumber job) const;
  [[nodiscard]] Micros now() const noexcept { return now_; }
  [[nodiscard]] std::uint64_t launches() const noexcept { return launches_; }
  /// Who lives now, by job.
  [[nodiscard]] const std::map<JobNumber, AttemptId>& living() const noexcept { return living_; }
  /// Seconds times devices that an attempt held, if it left an exit record.
  [[nodiscard]] std::optional<double> held(AttemptId attempt) const;
  /// How often look() found what, by Found.
  [[nodiscard]] const std::array<std::uint64_t, 4>& found() const noexcept { return found_; }
  /// How often attempts of this job were told to stop or to stand still.
  [[nodiscard]] int disturbances(JobNumber job) const {
    const auto found = disturbances_.find(job);
    return found == disturbances_.end() ? 0 : found->second;
  }
  /// How much of the time this job runs, in thousandths.
  [[nodiscard]] std::int32_t rate_of(JobNumber job) const;
  /// The next launches fail.
  void refuse_launches(int count) { refusals_ = count; }

  // The host.
  [[nodiscard]] Result<void> launch(const LaunchOrder& order) override;
  void stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) override;
  void suspend(AttemptId attempt) override;
  void resume(AttemptId attempt) override;
  void signal(AttemptId, int) override {}
  void signal_shell(AttemptId, int) override {}
  void set_cores(AttemptId, const std::vector<std::int32_t>&) override {}
  void set_rate(AttemptId attempt, std::int32_t milli) override { rates_[attempt] = milli; }
  void set_limit(AttemptId attempt, std::int64_t seconds) override;
  [[nodiscard]] Result<Finding> look(JobNumber job, AttemptId attempt) override;
  void forget(AttemptId attempt) override;

 private:
  enum class Stage : std::uint8_t { Forked, Claimed, Running };
  enum class Fate : std::uint8_t { Lives, DiesUnclaimed, DiesClaimed, DiesUnrecorded };
  struct Shim {
    LaunchOrder order;
    Stage stage = Stage::Forked;
    Fate fate = Fate::Lives;
    Micros next = 0;  // when something happens to it
    Micros begun = 0;
    Micros left = 0;  // of its work
    Micros resumed = 0;
    int exit_code = 0;
    bool stubborn = false;
    bool suspended = false;
    Stopped stopped = Stopped::No;
    std::optional<Micros> kill_at;
    std::optional<Micros> limit_at;
    std::vector<std::string> devices;
  };
  void begin(AttemptId id, Shim& shim);
  void end(AttemptId id, Shim& shim, bool by_kill);
  void check(const Shim& shim);
  void check_devices(const Shim& shim);
  void plan(Shim& shim) const;
  void claim(AttemptId id, Shim& shim);
  void leave(AttemptId id);
  void die(AttemptId id);
  [[nodiscard]] Fate draw_fate();
  void tell(HostEvent event);
  [[nodiscard]] Finding find(AttemptId attempt);

  Options options_;
  Rng rng_;
  std::function<void(HostEvent)> sink_;
  Micros now_ = 0;
  std::map<AttemptId, Shim> shims_;
  std::map<AttemptId, bool> claims_;  // true: a tombstone of recovery
  std::map<AttemptId, ExitRecord> exits_;
  std::multimap<Micros, HostEvent> post_;  // on its way to the scheduler
  std::map<AttemptId, double> held_;
  std::map<AttemptId, std::int32_t> rates_;
  std::map<JobNumber, int> disturbances_;
  std::map<JobNumber, Micros> done_;  // work behind a job, over its attempts
  std::map<JobNumber, int> failed_;
  std::map<JobNumber, AttemptId> living_;
  std::map<std::string, std::set<AttemptId>> on_device_;
  std::vector<std::string> violations_;
  std::set<AttemptId> used_;  // launched or asked for: never to be launched (again)
  std::function<void(std::string_view)> count_ = [](std::string_view) {};
  std::uint64_t launches_ = 0;
  std::array<std::uint64_t, 4> found_{};
  int refusals_ = 0;
};

}  // namespace berth::test
