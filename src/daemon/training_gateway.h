// Connects training code with the daemon: which attempt may talk to the hub and with which token,
// what of its reports the status board shows, and how the engine learns that something changed.
// Owns the hub; the hub's thread calls back here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "core/engine_log.h"
#include "cpu/measured_speeds.h"
#include "daemon/live_executor.h"
#include "daemon/status_board.h"
#include "training/hub.h"

namespace berth {

class TrainingGateway {
 public:
  struct Parts {
    StatusBoard& board;
    const LiveClock& clock;
    std::function<void()> wake;  // the engine: some job's speed is known better
    const Cluster& cluster;
    /// Code has answered a request for another size.
    std::function<void(JobNumber, const Resized&)> resized = {};
    std::function<void()> wake_for_rates = {};  // the same, and nobody need decide because of it
    Logger* log = nullptr;
  };
  /// `key_file` is made if it is not there. The tokens of attempts follow from it, so that jobs
  /// that were started by an earlier life can go on speaking.
  [[nodiscard]] static Result<std::unique_ptr<TrainingGateway>> open(const std::string& socket,
                                                                     const std::string& key_file,
                                                                     Parts parts);
  [[nodiscard]] TrainingHub& hub() noexcept { return *hub_; }
  /// What an attempt finds in its environment.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment(
      JobNumber job, AttemptId attempt) const;

 private:
  TrainingGateway(std::string socket, std::string key, Parts parts)
      : socket_(std::move(socket)), key_(std::move(key)), parts_(std::move(parts)) {}
  [[nodiscard]] std::string token(JobNumber job, AttemptId attempt) const;
  [[nodiscard]] std::optional<ExpectedAttempt> expected(JobNumber job) const;
  void show(JobNumber job, const TrainingFigures& figures);
  void log_nonsense(JobNumber job, std::string_view why) const;

  const std::string socket_;
  const std::string key_;
  Parts parts_;
  std::unique_ptr<TrainingHub> hub_;
};

/// What a tuner may know of running jobs: by slot, as the engine names them. Without a hub nobody
/// says anything.
class SpeedsBySlot final : public MeasuredSpeeds {
 public:
  explicit SpeedsBySlot(TrainingHub* hub) : hub_(hub) {}
  /// What it answers goes into the engine's log.
  void watch(const LiveExecutor& executor, const EngineLog& log) noexcept {
    executor_ = &executor;
    log_ = &log;
  }

  void take_changed(std::vector<JobId>& jobs) override;
  [[nodiscard]] bool speeds(JobId job, std::int32_t most, std::vector<double>& f) override;
  [[nodiscard]] std::optional<std::int32_t> probe(JobId job, std::int32_t most) override;

 private:
  TrainingHub* hub_;
  const LiveExecutor* executor_ = nullptr;
  const EngineLog* log_ = nullptr;
};

}  // namespace berth
