// Muri (SIGCOMM 2022): up to four jobs of equal size on the same GPUs, their stages (storage, CPU,
// GPU, network) interleaved so that each uses another resource at any moment.
//
//   muri-s  least estimated work left times GPUs first     muri-l  least GPU-seconds held first
//
// Every `interval`, aligned to time zero, the jobs at the front of the order (up to four times the
// GPUs) are grouped until they fit (grouping.h); the best groups run, everybody else waits.
// A group that stays as it is stays where it is, and a job keeps its devices if its new group can
// be formed there. Between two intervals, jobs start alone on free GPUs, and a group whose rest
// gets less done than one job alone is taken apart.
//
// Assumes: preemption is by checkpoint; stages as the profile says (perf/interleave.h has the rule
// for unknown ones); device memory is respected, which the paper does not speak of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/kit/groups.h"
#include "policies/kit/memo.h"
#include "policies/kit/pass.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/muri/grouping.h"
#include "policies/policy_entry.h"

namespace berth::muri {

/// Who comes first: least estimated work left times GPUs (muri-s), or least GPU-seconds held
/// (muri-l), which needs no estimates.
enum class Order : std::uint8_t { WorkLeft, ServiceHeld };

struct Options {
  Order order = Order::WorkLeft;
  Duration interval = std::chrono::minutes{6};
  std::optional<InterleaveOverhead> overhead;  // none: as the profiles say
  std::size_t exact_limit = 256;
};

class Muri final : public Policy {
 public:
  Muri(std::string name, const Options& options)
      : name_(std::move(name)), options_(options), rounds_(options.interval) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {
        .needs = options_.order == Order::WorkLeft ? Need::Profile | Need::RunTime : Need::Profile,
        .preempts = true,
        .shares_devices = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId) override { rounds_.stir(view.now); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  using Together = std::vector<JobId>;  // on the same devices, in policy order
  /// Where a job was at the beginning of a pass.
  struct Home {
    JobId job;
    PoolId pool;
    std::vector<Slice> slices;
  };

  [[nodiscard]] Int128 key_of(const View& view, JobId job) const;
  [[nodiscard]] const Candidate& candidate(const View& view, JobId job);
  [[nodiscard]] bool may_improve() const noexcept { return !waiting_.empty() || is_worth_a_look_; }

  // A pass at an interval.
  void regroup(Pass& pass);
  void rank_active(const View& view);
  void choose_groups(const View& view);
  void stop_everybody(Plan& plan);
  [[nodiscard]] bool place_at_home(Plan& plan, const Together& group);
  [[nodiscard]] bool place_anywhere(Plan& plan, const Together& group);
  void join_leader(Plan& plan, JobId leader, const Together& group);

  // Between two of them.
  void take_apart_losers(Pass& pass);
  void fill(Pass& pass);

  void set_holding(JobId job, bool holds);
  [[nodiscard]] bool prepare(Plan& plan, JobId job);
  void absorb(const Pass& pass);

  std::string name_;
  Options options_;
  Rounds rounds_;
  InterleaveOverhead overhead_;
  Memo<KindId, Candidate> of_kind_;
  Groups<std::pair<std::int32_t, std::vector<PoolId>>> buckets_;  // by GPUs and where they may be

  std::vector<JobId> active_;
  Column<JobId, std::uint32_t> active_at_;  // position there
  WaitingByShape waiting_;
  Column<JobId, bool> is_holding_;
  std::size_t holding_ = 0;           // how many are
  Column<JobId, Slice> first_slice_;  // while it holds devices
  std::vector<Slice> shrunk_;         // where a group lost a member since the last pass
  bool has_groups_ = false;           // as of the last regrouping
  bool is_worth_a_look_ = false;      // … and somebody left since

  std::vector<OrderKey> ranked_;       // scratch
  std::vector<Candidate> candidates_;  // scratch, as ranked
  std::vector<Together> chosen_;       // scratch
  std::vector<Home> homes_;            // scratch, by JobId
  std::vector<JobId> touched_;         // scratch: started or stopped in this pass
};

}  // namespace berth::muri

namespace berth {

[[nodiscard]] PolicyEntry muri_s_entry();
[[nodiscard]] PolicyEntry muri_l_entry();

}  // namespace berth
