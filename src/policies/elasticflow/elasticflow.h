// ElasticFlow (ASPLOS 2023): elastic jobs with deadlines get the fewest GPUs with which they are in
// time; a new one is admitted only if everybody promised before stays so.
//
// Sizes are powers of two. Shares (promises.h) are made in order of deadline, slot by slot; GPUs left
// in the current slot go to jobs without a deadline and to whoever saves most GPU time by doubling.
// Sizes change where a slot begins; in between, jobs that wait start on idle GPUs. The whole batch
// of a job stays what it is: on more GPUs each has less of it. Jobs are placed in aligned blocks
// (common/buddy_servers.h) and move when nothing else makes one free.
//
// Assumes: run times and how models scale are known; what changing the size costs is within
// `slack`. A pass costs O(promised jobs x steps of what is free) and the running jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/common/buddy_servers.h"
#include "policies/elasticflow/promises.h"
#include "policies/kit/pass.h"
#include "policies/policy_entry.h"

namespace berth::elasticflow {

/// What becomes of a job with a strict deadline that cannot be promised.
enum class Unmet : std::uint8_t { Refuse, BestEffort };

struct Options {
  Duration slot = std::chrono::seconds{60};
  double slack = 1.05;
  Unmet unmet = Unmet::Refuse;
  ElasticRule elastic;
};

class ElasticFlow final : public Policy {
 public:
  explicit ElasticFlow(const Options& options)
      : unmet_(options.unmet),
        rounds_(options.slot),
        curves_(options.elastic),
        promises_(options.slot, options.slack, curves_) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "elasticflow"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Deadline | Need::Profile,
            .preempts = true,
            .resizes = true,
            .also_uses = Ability::Batch | Ability::SubBatch,
            .may_refuse = unmet_ == Unmet::Refuse};
  }
  void begin(const View& view) override;
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    return rounds_.wakeup(view.now);
  }

 private:
  struct Choice {
    JobId job;
    std::int32_t gpus = 0;
    std::optional<BuddyBlocks> place = {};
  };
  [[nodiscard]] Refusal refusal(const View& view, JobId job);
  enum class Holds : std::uint8_t { Nothing, Devices };
  void set_holding(JobId job, Holds holds);

  void begin_slot(Pass& pass);
  void choose_sizes(Pass& pass, PoolId pool);
  void withdraw_late(Pass& pass);
  [[nodiscard]] std::vector<JobId> unpromised(const Pass& pass, PoolId pool,
                                              std::int64_t left) const;
  void stop(Plan& plan, JobId job);
  void place(Pass& pass, PoolId pool);
  void start(Pass& pass, PoolId pool, const Choice& choice);
  void fill(Pass& pass);
  [[nodiscard]] bool start_small(Pass& pass, JobId job, PoolId pool);

  Unmet unmet_;
  Rounds rounds_;  // slots; settled until something happens or a share becomes another
  Curves curves_;
  Promises promises_;
  Column<PoolId, BuddyServers> servers_;
  std::set<JobId> running_;  // without a promise
  std::set<JobId> waiting_;  // without a promise
  std::set<JobId> idle_;     // promised and without devices

  std::vector<Choice> choices_;  // scratch of a pass: who runs in a pool, with how many
  std::vector<Grower> growers_;  // scratch, as choices_
};

}  // namespace berth::elasticflow

namespace berth {

[[nodiscard]] PolicyEntry elasticflow_entry();

}  // namespace berth
