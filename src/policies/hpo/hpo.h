// Studies of trials (hyper-parameter search), training jobs and debug jobs on one cluster: ASHA (Li
// et al., MLSys 2020) with the deadlines of HyperSched, the fused trials of Hydro and the elastic
// ones of Fluid.
//
//   studies   trials of one study are compared at rungs (ASHA, asha.h): whoever is not among the
//             best is paused there, or stopped; a study that has nobody left to go on is over, and
//             its paused trials are stopped. The loss is what the training code reports.
//   shares    free GPUs go to whoever holds the fewest for its weight: a study counts as one,
//             however many trials it has, and so does every other job. On equal shares first
//             trials come before later rungs, and those before restarts.
//   deadline  a study with a deadline starts no trial that cannot reach the second rung and
//             promotes nobody to a rung it cannot reach (HyperSched); idle GPUs go to its leader
//             while that helps; at a hard deadline it is over.
//   trials    by choice small trials of a study share a GPU (Hydro), and idle GPUs go to those with
//             most to do (Fluid).
//   debug     short debug jobs have a pool of nodes of their own (debug_pool.h); by choice jobs
//             without a class begin there, too.
//
// Interrupts only at rungs, where a trial may go on at once on its own devices; best-effort jobs
// make room for the debug pool. Knows nothing of run times. A pass costs the active studies and the
// shapes that wait, not the jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/policy.h"
#include "policies/common/elastic.h"
#include "policies/hpo/debug_pool.h"
#include "policies/hpo/fusing.h"
#include "policies/hpo/trials.h"
#include "policies/kit/pass.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/policy_entry.h"

namespace berth::hpo {

struct Options {
  StudyRules rules;                           // `whole` 0: as the profile of the model says
  Duration probe = std::chrono::seconds{10};  // until a first look at how fast a trial learns
  bool grow_leader = true;
  FusingRules fusing;
  ElasticRule elastic{.max_gpus = 8};
  DebugPoolOptions debug;
};

class Hpo final : public Policy {
 public:
  explicit Hpo(const Options& options)
      : options_(options), trials_(options.rules, options.probe), debug_(options.debug) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "hpo"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Reports | Need::Profile | Need::Deadline,
            .preempts = true,
            .shares_devices = options_.fusing.most > 1,
            .resizes = true};
  }

  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_rate(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  enum class Sort : std::uint8_t { Alone, Trial, Debug };
  struct JobRow {
    Sort sort = Sort::Alone;
    std::int32_t held = 0;
    bool restarts = false;
  };
  /// Somebody who would take GPUs now: the first waiting job of a shape, the next trial of a study.
  struct Claim {
    double share = 0;  // GPUs held per weight
    int urgency = 0;
    JobId job;
    bool is_study = false;
    std::uint32_t at = 0;  // shape or study
    friend auto operator<=>(const Claim&, const Claim&) = default;
  };
  struct Place {
    PoolId pool;
    std::vector<Slice> slices;
  };

  void note_held(JobId job, std::int32_t gpus);
  void wait_again(const View& view, JobId job);
  void judge_trials(Pass& pass);
  void stop_trial(Pass& pass, JobId job, Reason reason);
  void end_overdue(Pass& pass);
  void end_settled(Pass& pass);
  void serve_debug(Pass& pass);
  void share_out(Pass& pass);
  [[nodiscard]] std::optional<Claim> claim_of_study(const View& view, StudyId id) const;
  [[nodiscard]] std::optional<Claim> claim_of_shape(ShapeId shape) const;
  [[nodiscard]] bool serve(Pass& pass, const Claim& claim);
  [[nodiscard]] bool start_trials(Pass& pass, StudyId id);
  [[nodiscard]] bool start(Pass& pass, JobId job);
  [[nodiscard]] bool place(Pass& pass, JobId job);
  void grow_trials(Pass& pass);
  void grow_leaders(Pass& pass);
  void try_grow(Pass& pass, JobId job, std::int32_t gpus);

  Options options_;
  Trials trials_;
  DebugPool debug_;
  Column<JobId, JobRow> jobs_;
  std::set<JobId> running_;
  WaitingByShape alone_;            // outside studies
  std::map<JobId, Place> stopped_;  // trials at a rung in this pass: where they were
};

}  // namespace berth::hpo

namespace berth {

[[nodiscard]] PolicyEntry hpo_entry();

}  // namespace berth
