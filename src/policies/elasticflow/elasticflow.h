// ElasticFlow (ASPLOS 2023): elastic jobs with deadlines get the fewest GPUs with which they are in
// time; a new one is admitted only if everybody promised before stays so.
//
// Sizes are powers of two. Shares (shares.h) are made in order of deadline, slot by slot; GPUs left
// in the current slot go to jobs without a deadline and to whoever saves most GPU time by doubling.
// Sizes change where a slot begins; in between, jobs that wait start on idle GPUs. The whole batch
// of a job stays what it is: on more GPUs each has less of it. Jobs are placed in aligned blocks
// (common/buddy_servers.h) and move when nothing else makes one free.
//
// Assumes: run times and how models scale are known; what changing the size costs is within
// `slack`. A pass costs O(promised jobs x steps of what is free) and the running jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/common/buddy_servers.h"
#include "policies/common/elastic.h"
#include "policies/elasticflow/shares.h"
#include "policies/policy_entry.h"

namespace berth::elasticflow {

struct ElasticFlowOptions {
  Duration slot = std::chrono::seconds{60};
  double slack = 1.05;
  bool refuses = true;  // otherwise what cannot be promised runs without a promise
  ElasticRule elastic;
};

class ElasticFlow final : public Policy {
 public:
  explicit ElasticFlow(const ElasticFlowOptions& options)
      : options_(options), rounds_(options.slot) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "elasticflow"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Deadline | Need::Profile,
            .preempts = true,
            .resizes = true,
            .also_uses = Ability::Batch | Ability::SubBatch,
            .may_refuse = options_.refuses};
  }
  void begin(const View& view) override;
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId) override { note_change(view, true); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Row {
    bool is_promised = false;
    PoolId pool;  // of its promise
    Share share;  // that kept the promise when it was last looked at
    Time from{};  // since when
  };
  /// What jobs of one kind have in common: their curve in a pool.
  struct Kind {
    ProfileId profile;
    PoolId pool;
    PoolId reference;
    std::int32_t wanted;
    std::int32_t batch;
    ElasticRange range;
    [[nodiscard]] auto key() const noexcept {
      return std::tuple(profile, pool, reference, wanted, batch, range.least, range.most);
    }
    friend bool operator<(const Kind& a, const Kind& b) noexcept { return a.key() < b.key(); }
  };
  struct Promised {
    JobId job;
    Share share;
  };
  struct Choice {
    JobId job;
    PoolId pool;
    std::int32_t gpus = 0;
    std::optional<BuddyBlocks> place;
  };

  [[nodiscard]] const SpeedCurve& curve(const View& view, JobId job, PoolId pool);
  [[nodiscard]] Terms terms_for(const View& view, JobId job, PoolId pool, std::int32_t gpus) const;
  [[nodiscard]] double work_left(const View& view, JobId job, Time at) const;
  [[nodiscard]] bool make_shares(const View& view, PoolId pool, std::optional<JobId> newcomer);
  [[nodiscard]] bool share_anew(const View& view, PoolId pool, std::optional<JobId> newcomer);
  [[nodiscard]] bool share_as_before(const View& view, PoolId pool, std::optional<JobId> newcomer);
  [[nodiscard]] Demand demand(const View& view, JobId job, PoolId pool);
  [[nodiscard]] bool add_share(const View& view, JobId job, PoolId pool);
  [[nodiscard]] bool add_old_share(const View& view, JobId job, PoolId pool);
  [[nodiscard]] bool keep_shares(const View& view, PoolId pool);
  void commit_shares(const View& view);
  void note_change(const View& view, bool of_promises) {
    rounds_.stir(view.now);
    promises_changed_ = promises_changed_ || of_promises;
  }
  [[nodiscard]] Refusal refusal(const View& view, JobId job);

  void set_holding(JobId job, bool holds);
  void be_late(const View& view, const Plan& plan, JobId job);

  // A pass (slots.cpp).
  void begin_slot(const View& view, Plan& plan);
  void choose_sizes(const View& view, const Plan& plan, PoolId pool);
  [[nodiscard]] std::vector<JobId> unpromised(const View& view, const Plan& plan, PoolId pool,
                                              std::int64_t left) const;
  void note_next_change(const View& view);
  void stop(Plan& plan, JobId job);
  void stop_resized(const View& view, Plan& plan, PoolId pool);
  void place(const View& view, Plan& plan, PoolId pool);
  void start(const View& view, Plan& plan, const Choice& choice);
  void fill(const View& view, Plan& plan);
  [[nodiscard]] bool start_small(const View& view, Plan& plan, JobId job, PoolId pool);

  ElasticFlowOptions options_;
  Rounds rounds_;  // slots; settled until something happens or a share becomes another
  std::map<Kind, SpeedCurve> curves_;
  std::vector<BuddyServers> servers_;          // by PoolId
  std::vector<Row> rows_;                      // by JobId
  std::set<std::pair<Time, JobId>> promised_;  // by deadline
  std::set<JobId> running_;                    // without a promise
  std::set<JobId> waiting_;                    // without a promise
  std::set<JobId> idle_;                       // promised and without devices
  bool promises_changed_ = false;              // shares are to be made anew
  Time next_change_ = kNever;                  // of some share, if nothing happens

  std::vector<Promised> shares_;  // scratch of make_shares()
  std::optional<FreeGpus> free_;  // scratch: what they leave
  std::vector<JobId> late_;       // scratch: no share is enough any more
  std::vector<Choice> choices_;   // scratch of a pass: who runs in a pool, with how many
  std::vector<Grower> growers_;   // scratch, as choices_
};

}  // namespace berth::elasticflow

namespace berth {

[[nodiscard]] PolicyEntry elasticflow_entry();

}  // namespace berth
