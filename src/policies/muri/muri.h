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
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/muri/grouping.h"
#include "policies/policy_entry.h"

namespace berth {

struct MuriOptions {
  bool by_work = true;  // muri-s; otherwise muri-l
  Duration interval = std::chrono::minutes{6};
  std::optional<InterleaveOverhead> overhead;  // none: as the profiles say
  std::size_t exact_limit = 256;
};

class Muri final : public Policy {
 public:
  Muri(std::string name, const MuriOptions& options)
      : name_(std::move(name)), options_(options), rounds_(options.interval) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = options_.by_work ? Need::Profile | Need::RunTime : Need::Profile,
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

  [[nodiscard]] const StageTimes& stages(const View& view, ProfileId profile);
  [[nodiscard]] Int128 key_of(const View& view, JobId job) const;
  /// What all jobs of a shape have in common.
  struct ShapeFacts {
    bool is_known = false;
    std::uint32_t bucket = 0;
    std::int64_t device_memory_mib = 0;
  };
  [[nodiscard]] const ShapeFacts& facts(const View& view, ShapeId shape);
  [[nodiscard]] MuriCandidate candidate(const View& view, JobId job);
  [[nodiscard]] bool may_improve() const noexcept { return !waiting_.empty() || is_worth_a_look_; }

  // A pass at an interval.
  void regroup(const View& view, Plan& plan);
  void rank_active(const View& view);
  void choose_groups(const View& view);
  void stop_everybody(Plan& plan);
  [[nodiscard]] bool place_at_home(Plan& plan, const Together& group);
  [[nodiscard]] bool place_anywhere(Plan& plan, const Together& group);
  void join_leader(Plan& plan, JobId leader, const Together& group);

  // Between two of them.
  void take_apart_losers(const View& view, Plan& plan);
  void fill(const View& view, Plan& plan);

  void set_holding(JobId job, bool holds);
  [[nodiscard]] bool prepare(Plan& plan, JobId job);
  void absorb(const View& view, const Plan& plan);

  std::string name_;
  MuriOptions options_;
  Rounds rounds_;
  InterleaveOverhead overhead_;
  std::vector<StageTimes> stages_;  // by ProfileId
  std::map<std::pair<std::int32_t, std::vector<PoolId>>, std::uint32_t> buckets_;
  std::vector<ShapeFacts> facts_;  // by ShapeId

  std::vector<JobId> active_;
  std::vector<std::uint32_t> active_at_;  // position there, by JobId
  WaitingByShape waiting_;
  std::vector<bool> is_holding_;    // by JobId
  std::size_t holding_ = 0;         // how many are
  std::vector<Slice> first_slice_;  // by JobId, while it holds devices
  std::vector<Slice> shrunk_;       // where a group lost a member since the last pass
  bool has_groups_ = false;         // as of the last regrouping
  bool is_worth_a_look_ = false;    // … and somebody left since

  std::vector<OrderKey> ranked_;           // scratch
  std::vector<MuriCandidate> candidates_;  // scratch, as ranked
  std::vector<Together> chosen_;           // scratch
  std::vector<Home> homes_;                // scratch, by JobId
  std::vector<Slice> slices_;              // scratch
  std::vector<JobId> touched_;             // scratch: started or stopped in this pass
};

[[nodiscard]] PolicyEntry muri_s_entry();
[[nodiscard]] PolicyEntry muri_l_entry();

}  // namespace berth
