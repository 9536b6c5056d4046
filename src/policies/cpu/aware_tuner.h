// `--cpu aware`: the cores of a server go to the jobs that gain most by them. A server is looked at
// again when its set of jobs changed, or when beliefs about one of its jobs did.
//
// Checks and moves do not tick for nothing: speeds are constant between changes, so a job is
// watched from a change on until a sample (every 30 s) agrees with the belief within 15 %; three
// that do not correct the curve of its class. Every 10 min, if some job is starved and something
// changed since, starved one-GPU jobs move to servers with idle cores where gain x remaining time >
// 2 x cost.
//
// Deviations: a contradicted curve is scaled by the measured speed at the cores the job has, a
// neighbouring core count is not tried; remaining time is the time run so far if the policy has no
// estimates; phases of a job are not known here.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "policies/cpu/cpu_beliefs.h"
#include "policies/cpu/cpu_tuner.h"
#include "policies/cpu/server_jobs.h"

namespace berth {

class AwareTuner final : public NodeTuner {
 public:
  explicit AwareTuner(const CpuTunerOptions& options)
      : options_(options), allocator_(options.objective, options.leftover) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "aware"; }
  void begin(const View& view, const RateModel& believed) override;
  void tune(const View& view, std::span<const NodeId> changed, Plan& plan) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  static constexpr double kStarved = 0.95;  // of full speed: below it a job may move
  struct Candidate {
    double loss = 0;
    JobId job;
    NodeId node;
  };
  struct Target {
    std::int64_t free_milli = 0;
    NodeId node;
  };

  void allocate_nodes(const View& view, Plan& plan);             // nodes_
  void gather(const View& view, const Plan& plan, NodeId node);  // fills jobs_ and gangs_
  void allocate_gathered(const Plan& plan, NodeId node);
  [[nodiscard]] std::int32_t most_of(const Plan& plan, JobId job) const;
  void apply_grants(const View& view, Plan& plan);

  enum class Verdict : std::uint8_t { Settled, NotUnderWay, Contradicts };
  void check_speeds(const View& view, const Plan& plan);
  [[nodiscard]] Verdict sample(const View& view, const Plan& plan, JobId job) const;
  /// Relative to having cores enough.
  [[nodiscard]] double measured_speed(const View& view, const Plan& plan, JobId job) const;
  [[nodiscard]] bool has_device_company(const Plan& plan, JobId job) const;

  void reschedule(const View& view, Plan& plan);
  void find_candidates(const View& view, const Plan& plan);
  [[nodiscard]] std::int64_t free_milli(const Plan& plan, NodeId node);
  [[nodiscard]] double objective(const CpuServer& server);
  [[nodiscard]] double gain_of_move(const View& view, const Plan& plan, const Candidate& candidate,
                                    NodeId to);
  [[nodiscard]] bool try_move(const View& view, Plan& plan, const Candidate& candidate,
                              Target& target);
  [[nodiscard]] double seconds_left(const View& view, JobId job) const;

  CpuTunerOptions options_;
  bool knows_devices_ = false;
  CpuBeliefs beliefs_;
  CpuAllocator allocator_;
  std::map<JobId, int> watched_;  // samples so far that contradict the belief
  Time next_check_ = kNever;
  bool may_move_ = false;  // somebody is starved, and something changed since the last round
  Time next_round_ = kNever;
  std::vector<NodeId> nodes_;             // scratch: to be allocated
  std::vector<JobId> on_node_;            // scratch
  std::vector<ServerJob> jobs_;           // scratch: of one server
  std::vector<CpuGang> gangs_;            // scratch: in step with jobs_
  std::vector<std::int32_t> cores_;       // scratch: in step with jobs_
  std::map<JobId, std::int32_t> caps_;    // scratch: gangs over several servers, whole cores
  std::map<JobId, std::int32_t> grants_;  // scratch: thousandths
  std::vector<Candidate> candidates_;     // scratch
  std::vector<Target> targets_;           // scratch
};

}  // namespace berth
