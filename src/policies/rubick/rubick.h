// Rubick-like (D2 of the hybrid workloads): jobs that may run under several execution plans are
// promised the speed of what they asked for, not its GPUs. Each gets the fewest GPUs with which its
// best plan is as fast; what is left goes to whoever gains most, and is taken back for jobs that
// wait (allocation.h).
//
// The best plan for a number of GPUs is what the model's profile says of that number: its whole
// batch stays what it is, accumulated where it does not fit. A change of size is a restart, so what
// it would gain is discounted by what restarting costs.
//
// Assumes: profiles, checkpoints. Knows no run times. A pass costs the jobs that run and those
// that wait in front of the first who cannot be served.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/common/elastic.h"
#include "policies/common/speed_curve.h"
#include "policies/kit/memo.h"
#include "policies/kit/pass.h"
#include "policies/policy_entry.h"
#include "policies/rubick/allocation.h"

namespace berth::rubick {

struct Options {
  double guarantee = 1;  // share of the speed at the requested size that is promised
  Duration restart = std::chrono::seconds{180};
  Waiting waiting = Waiting::Strict;
  ElasticRule elastic;
  std::vector<std::pair<std::string, double>> quotas;  // shares of the cluster by queue
};

class Rubick final : public Policy {
 public:
  explicit Rubick(Options options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "rubick"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile,
            .preempts = true,
            .resizes = true,
            .also_uses = Ability::Batch | Ability::SubBatch};
  }
  void begin(const View& view) override { rows_.resize(view.jobs.size()); }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId) override { rounds_.stir(view.now); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Row {
    std::uint32_t restarts = 0;   // changes of its size
    std::int32_t guaranteed = 0;  // GPUs that count for its queue, while it holds any
  };
  struct Target {
    JobId job;
    std::int32_t before = 0;
    std::int32_t gpus = 0;
  };

  [[nodiscard]] Terms terms_for(const View& view, JobId job, std::int32_t gpus) const;
  [[nodiscard]] double speed(const View& view, JobId job, PoolId pool, std::int32_t gpus) const;
  [[nodiscard]] const SpeedCurve& curve(const View& view, JobId job, PoolId pool);
  [[nodiscard]] SpeedCurve make_curve(const View& view, JobId job, PoolId pool) const;
  [[nodiscard]] bool fits_quota(const View& view, JobId job, std::int32_t gpus);
  [[nodiscard]] Demand demand(const Pass& pass, JobId job, PoolId pool);
  void serve_pool(Pass& pass, PoolId pool);
  void carry_out(Pass& pass, PoolId pool);
  [[nodiscard]] bool start(Pass& pass, PoolId pool, JobId job, std::int32_t gpus);
  [[nodiscard]] bool start_waiting(Pass& pass, PoolId pool, const Target& target);
  void change_size(Pass& pass, PoolId pool, const Target& target);
  void note_start(const Pass& pass, JobId job, PoolId pool);
  void note_stop(const View& view, JobId job);

  Options options_;
  Column<JobId, Row> rows_;
  std::set<JobId> waiting_;
  std::set<JobId> running_;
  std::set<JobId> unsized_;  // waiting for a part of a GPU, or for none
  Memo<KindId, Memo<PoolId, SpeedCurve>> curves_;
  std::map<NameId, std::int64_t> used_;   // guaranteed GPUs by queue
  std::map<NameId, std::int64_t> asked_;  // and what those who wait ask for, in a pass
  Rounds rounds_{Duration::zero()};       // due on events, and while a gain is put off
  bool may_gain_later_ = false;           // in this pass: a restart would eat somebody's gain

  std::vector<Demand> demands_;            // scratch of a pool
  std::vector<JobId> jobs_;                // scratch, as demands_
  std::vector<std::size_t> sizes_before_;  // scratch, as demands_
  std::vector<Target> targets_;            // scratch
};

}  // namespace berth::rubick

namespace berth {

[[nodiscard]] PolicyEntry rubick_entry();

}  // namespace berth
