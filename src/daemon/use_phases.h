// What a job does, seen from outside, of code that does not tell: one whose GPUs are busy less than
// half of the time while its cores are all in use validates; otherwise it trains. Only where the
// driver says how busy devices are, and only while somebody lends cores.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/status_board.h"
#include "exec/gpu_energy.h"
#include "model/cluster.h"
#include "perf/terms.h"

namespace berth {

struct JobUse {
  double cores = 0;       // that it may use
  double cores_used = 0;  // or waited for, in the mean since the last look
  double gpus_busy = 0;   // the mean of its devices, 0 to 1
};

/// The judgement alone: three looks in a row that agree make a phase. Who validates does so until
/// its GPUs are busy again, or its cores rest.
class PhaseGuess {
 public:
  /// Nothing: as it was.
  [[nodiscard]] std::optional<Phase> update(JobNumber job, const JobUse& use);
  /// Others are over.
  void keep_only(const std::vector<JobNumber>& running);

 private:
  struct Row {
    std::optional<Phase> phase{};  // nothing: whoever decides may know it from before a restart
    std::optional<Phase> looks_like{};
    int looks = 0;  // in a row
  };
  std::map<JobNumber, Row> rows_;
};

/// Looks every second, in a thread of its own. Without a driver there is none.
class UsePhases {
 public:
  struct Parts {
    const StatusBoard& board;
    const Cluster& cluster;
    GpuEnergy gpus;
    std::function<bool()> is_wanted;
    std::function<void(JobNumber, Phase)> tell;
  };
  explicit UsePhases(Parts parts);
  ~UsePhases();
  UsePhases(const UsePhases&) = delete;
  UsePhases& operator=(const UsePhases&) = delete;

 private:
  void look(double seconds);

  Parts parts_;
  PhaseGuess guess_;
  std::map<JobNumber, double> used_;  // core seconds at the last look
  std::mutex mutex_;
  std::condition_variable leaving_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace berth
