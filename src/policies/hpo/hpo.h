// Studies of trials (hyper-parameter search), training jobs and debug jobs on one cluster.
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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/common/elastic.h"
#include "policies/common/lanes.h"
#include "policies/hpo/debug_pool.h"
#include "policies/hpo/study.h"
#include "policies/policy_entry.h"

namespace berth::hpo {

struct Options {
  StudyRules rules;                           // `whole` 0: as the profile of the model says
  Duration probe = std::chrono::seconds{10};  // until a first look at how fast a trial learns
  bool grow_leader = true;
  bool fluid = false;     // GPUs of a study go to its trials by what they have to do
  std::int32_t fuse = 1;  // trials of a study on one GPU
  ElasticRule elastic{.max_gpus = 8};
  DebugPoolOptions debug;
};

class Hpo final : public Policy {
 public:
  explicit Hpo(const Options& options) : options_(options), debug_(options.debug) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "hpo"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Reports | Need::Profile | Need::Deadline,
            .preempts = true,
            .shares_devices = options_.fuse > 1,
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
  using StudyId = std::uint32_t;
  enum class Kind : std::uint8_t { Alone, Trial, Debug };
  struct JobRow {
    Kind kind = Kind::Alone;
    StudyId study = 0;
    TrialId trial = 0;
    std::int32_t held = 0;
    Time check = kNever;  // when it is looked at whether it has reached its rung
    bool restarts = false;
  };
  struct StudyRow {
    Study study;
    std::vector<JobId> trials;  // by TrialId
    double weight = 1;
    std::int32_t held = 0;  // GPUs of all its trials
    std::size_t unfinished = 0;
    std::optional<Time> deadline;  // a hard one
    double seconds_per_epoch = 0;  // of a trial on its own number of GPUs; 0 = not seen yet
  };
  /// Somebody who would take GPUs now: the head of a lane or the next trial of a study.
  struct Claim {
    double share = 0;  // GPUs held per weight
    int urgency = 0;
    JobId job;
    bool is_study = false;
    std::uint32_t at = 0;  // lane or study
    friend auto operator<=>(const Claim&, const Claim&) = default;
  };

  // hpo.cpp: who is who, who gets what
  [[nodiscard]] StudyId study_of(const View& view, JobId job);
  void note_held(JobId job, std::int32_t gpus);
  void wait_alone(const View& view, JobId job);
  void serve_debug(const View& view, Plan& plan);
  void share_out(const View& view, Plan& plan);
  [[nodiscard]] std::optional<Claim> claim_of_study(const View& view, StudyId id) const;
  [[nodiscard]] std::optional<Claim> claim_of_lane(std::uint32_t at);
  [[nodiscard]] bool serve(const View& view, Plan& plan, const Claim& claim);
  [[nodiscard]] bool start_trials(const View& view, Plan& plan, StudyId id);
  [[nodiscard]] bool start(const View& view, Plan& plan, JobId job);

  // trials.cpp: what becomes of trials
  void judge_trials(const View& view, Plan& plan);
  void judge(const View& view, Plan& plan, JobId job);
  [[nodiscard]] double loss_at(const View& view, JobId job, double epochs, double last) const;
  void set_check(const View& view, JobId job);
  void drop_check(JobId job);
  [[nodiscard]] Horizon horizon(const View& view, const StudyRow& row) const;
  void end_overdue(const View& view, Plan& plan);
  void end_settled(const View& view, Plan& plan);
  void stop_trial(Plan& plan, JobId job, Reason reason);
  void forget_trial(JobId job);
  void grow_leaders(const View& view, Plan& plan);

  // sharing.cpp: GPUs of a study among its trials
  [[nodiscard]] double epochs_left(const View& view, JobId job) const;
  [[nodiscard]] bool fits_by_share(const View& view, JobId job, std::span<const JobId> there) const;
  [[nodiscard]] bool try_join(const View& view, Plan& plan, JobId job);
  void grow_trials(const View& view, Plan& plan);
  void try_grow(const View& view, Plan& plan, JobId job, std::int32_t gpus);

  Options options_;
  DebugPool debug_;
  std::vector<JobRow> jobs_;  // by JobId
  std::vector<StudyRow> studies_;
  std::map<NameId, StudyId> study_of_name_;
  std::set<StudyId> active_;                      // with trials that are not over
  std::set<std::pair<Time, StudyId>> deadlines_;  // of these
  std::set<std::pair<Time, JobId>> checks_;
  std::set<JobId> running_;
  Lanes<ShapeId> alone_;  // waiting jobs outside studies
  struct Place {
    PoolId pool;
    std::vector<Slice> slices;
  };
  std::map<JobId, Place> stopped_;  // trials at a rung in this pass: where they were
  std::vector<Slice> slices_;       // scratch
};

}  // namespace berth::hpo

namespace berth {

[[nodiscard]] PolicyEntry hpo_entry();

}  // namespace berth
