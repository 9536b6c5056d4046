// `--cpu aware`: the cores of a server go to the jobs that gain most by them. A server is looked at
// again when its set of jobs changed, when a job there came to another phase, or when beliefs about
// one of its jobs did.
//
// A job that fits one server starts where its cores are: on the server with the least left over,
// measured by whichever of GPUs and cores has the larger part left, of those that have all the
// cores it wants; if none has, jobs wait for one for 60 s at most, and then take the server where
// the jobs together gain most. A job that validates borrows cores that are left over.
//
// Checks and moves do not tick for nothing: speeds are constant between changes, so a job is
// watched from a change on until a sample (every 30 s) agrees with the belief within 15 %; three
// that do not correct the curve of its class. Every 10 min, if some job is starved and something
// changed since, starved one-GPU jobs move to servers with idle cores where gain x remaining time >
// 2 x cost.
//
// Live, jobs that report iterations are measured instead (measured_speeds.h): a job is bound to a
// few core counts in turn, within what it has and nobody holds, and to its sweet point once its
// curve is known. One of which nothing is known, neither measured nor by its profile, gets its
// share by GPUs.
//
// To place a job costs a look at every server with a free device, but for empty ones, of which the
// first will do; to place one that finds no cores 32 allocations beyond that.
//
// Deviations: a contradicted curve is scaled by the measured speed at the cores the job has, a
// neighbouring core count is not tried; remaining time is the time run so far if the policy has no
// estimates; gangs over several servers stand where the placement puts them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "cpu/cpu_beliefs.h"
#include "cpu/cpu_tuner.h"
#include "cpu/server_jobs.h"

namespace berth {

class AwareTuner final : public NodeTuner {
 public:
  explicit AwareTuner(const CpuTunerOptions& options)
      : options_(options), allocator_(options.objective, options.leftover) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "aware"; }
  void begin(const View& view, const RateModel& believed) override;
  void begin_instant(Time now) override { now_ = now; }
  [[nodiscard]] bool place(const Plan& plan, JobId job, PoolId pool,
                           std::vector<Slice>& slices) override;
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
  /// A server a job could start on.
  struct Site {
    double rest = 0;         // of GPUs or cores, whichever is more
    double other_rest = 0;   // breaks ties
    std::int64_t spare = 0;  // cores nobody there wants, in thousandths, once the job is there
    Slice slice;
  };

  void list_sites(const Plan& plan, JobId job, PoolId pool, const Slice& placed);
  void add_site(const Plan& plan, JobId job, const Slice& slice);
  [[nodiscard]] std::int64_t claimed_milli(const Plan& plan, NodeId node) const;
  [[nodiscard]] const Site* tightest_fit() const;
  [[nodiscard]] const Site* best_objective(const Plan& plan, JobId job, PoolId pool);
  [[nodiscard]] bool is_patient(const Plan& plan, JobId job);
  enum class Cores : std::uint8_t { Enough, TooFew };
  void end_wait(JobId job, Cores cores);

  void allocate_nodes(Plan& plan);             // nodes_
  void gather(const Plan& plan, NodeId node);  // fills jobs_ and gangs_
  void allocate_gathered(const Plan& plan, NodeId node);
  [[nodiscard]] std::int32_t most_of(const Plan& plan, JobId job) const;
  void apply_grants(Plan& plan);
  void lend_to_validating(Plan& plan);

  /// Jobs that said something new, and if it is time those whose measurement takes long.
  void hear_measured(const Plan& plan, Time now);
  void bind_to_probes(Plan& plan);
  /// Of a job on that server.
  [[nodiscard]] std::span<const double> speeds_of(const Plan& plan, JobId job, NodeId node);

  enum class Verdict : std::uint8_t { Settled, NotUnderWay, Contradicts };
  void check_speeds(const Plan& plan);
  [[nodiscard]] Verdict sample(const Plan& plan, JobId job) const;
  /// Relative to having cores enough.
  [[nodiscard]] double measured_speed(const Plan& plan, JobId job) const;
  [[nodiscard]] bool has_device_company(const Plan& plan, JobId job) const;

  void reschedule(const View& view, Plan& plan);
  void find_candidates(const Plan& plan);
  [[nodiscard]] std::int64_t free_milli(const Plan& plan, NodeId node);
  [[nodiscard]] double objective(const CpuServer& server);
  [[nodiscard]] double gain_of_move(const Plan& plan, const Candidate& candidate, NodeId to);
  [[nodiscard]] bool try_move(const View& view, Plan& plan, const Candidate& candidate,
                              Target& target);
  [[nodiscard]] double seconds_left(const View& view, JobId job) const;

  CpuTunerOptions options_;
  bool knows_devices_ = false;
  Time now_{};
  Column<JobId, std::int32_t> demand_;  // cores per GPU, in thousandths; of jobs seen so far
  Column<JobId, Time> held_back_;       // the last instant at which it was
  std::set<JobId> waits_;               // held back now
  std::optional<Time> patient_since_;   // jobs wait for cores, or did until their patience ended
  CpuBeliefs beliefs_;
  CpuAllocator allocator_;
  std::map<JobId, int> watched_;  // samples so far that contradict the belief
  Time next_check_ = kNever;
  std::set<JobId> probing_;  // bound to cores at which they are measured
  std::map<std::int32_t, std::vector<double>> even_shares_;  // speeds that ask for so many cores
  bool may_move_ = false;  // somebody is starved, and something changed since the last round
  Time next_round_ = kNever;
  std::vector<NodeId> nodes_;             // scratch: to be allocated
  std::vector<JobId> news_;               // scratch
  std::vector<JobId> on_node_;            // scratch
  std::vector<ServerJob> jobs_;           // scratch: of one server
  std::vector<CpuGang> gangs_;            // scratch: in step with jobs_
  std::vector<std::int32_t> cores_;       // scratch: in step with jobs_
  std::map<JobId, std::int32_t> caps_;    // scratch: gangs over several servers, whole cores
  std::map<JobId, std::int32_t> grants_;  // scratch: thousandths
  std::vector<Candidate> candidates_;     // scratch
  std::vector<Target> targets_;           // scratch
  std::vector<Site> sites_;               // scratch
};

}  // namespace berth
