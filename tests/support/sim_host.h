// Processes without processes: shims that claim, run and leave exit records in simulated time, and
// go on while the scheduler is dead. Keeps its own books of who was alive when and where, fed by
// nothing but what it was told to do; a second attempt of a job beside a living one, or a device
// with more than its limit, is written down as a violation.
#pragma once

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
  /// warnings), "flaky SECONDS FAILURES" (fails so often first).
  struct Options {
    Micros claim_delay = 500;
    Micros start_delay = 1'000;
    std::int32_t device_limit = 1;  // jobs on a device
  };
  explicit SimHost(Options options) : options_(options) {}
  SimHost() : SimHost(Options{}) {}

  // The world.
  void set_sink(std::function<void(HostEvent)> sink) { sink_ = std::move(sink); }
  [[nodiscard]] std::optional<Micros> next() const;
  /// Lets the earliest thing happen that is due by then.
  void step(Micros now);
  void set_now(Micros now) { now_ = now; }
  void power_off();  // all processes are gone; claims and exit records stay
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }
  [[nodiscard]] std::size_t alive() const;
  [[nodiscard]] double seconds_done(JobNumber job) const;
  [[nodiscard]] std::uint64_t launches() const noexcept { return launches_; }
  /// The next launches fail.
  void refuse_launches(int count) { refusals_ = count; }

  // The host.
  [[nodiscard]] Result<void> launch(const LaunchOrder& order) override;
  void stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) override;
  void suspend(AttemptId attempt) override;
  void resume(AttemptId attempt) override;
  void signal(AttemptId, int) override {}
  void set_cores(AttemptId, const std::vector<std::int32_t>&) override {}
  [[nodiscard]] Result<Finding> look(JobNumber job, AttemptId attempt) override;
  void forget(AttemptId attempt) override;

 private:
  enum class Stage : std::uint8_t { Forked, Claimed, Running, Gone };
  struct Shim {
    LaunchOrder order;
    Stage stage = Stage::Forked;
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
  void plan(Shim& shim) const;
  void tell(HostEvent event);

  Options options_;
  std::function<void(HostEvent)> sink_;
  Micros now_ = 0;
  std::map<AttemptId, Shim> shims_;
  std::map<AttemptId, bool> claims_;  // true: a tombstone of recovery
  std::map<AttemptId, ExitRecord> exits_;
  std::map<JobNumber, Micros> done_;  // work behind a job, over its attempts
  std::map<JobNumber, int> failed_;
  std::map<JobNumber, AttemptId> living_;
  std::map<std::string, std::set<AttemptId>> on_device_;
  std::vector<std::string> violations_;
  std::uint64_t launches_ = 0;
  int refusals_ = 0;
};

}  // namespace berth::test
