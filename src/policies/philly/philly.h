// Philly (ATC 2019): virtual clusters with quotas of GPUs, gangs, locality that is relaxed while a
// job waits, and preemption between virtual clusters when one is kept from its quota.
//
// Virtual clusters are served by used / quota, what one leaves another may use. Inside one, jobs
// come in order of arrival, and one that cannot be placed does not hold up those behind it. A job
// whose node is lost goes to the head of its queue. So does a job whose attempt failed by what the
// cluster did; it keeps away from the servers of that attempt for a while. Other failures are
// final. A pass costs O(waiting jobs), but each (size, level) that found no place is tried once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/policy.h"
#include "policies/philly/levels.h"
#include "policies/philly/server_use.h"
#include "policies/registry.h"

namespace berth {

struct PhillyOptions {
  std::int32_t relax_every = 5;  // counted attempts until the next level
  std::int32_t max_level = 3;
  Duration backoff = std::chrono::seconds{120};  // between attempts that count
  Duration grace =
      std::chrono::minutes{5};  // a virtual cluster below quota waits before it preempts
  double busy = 0.9;            // share of the cluster in use for that
  bool preempts = true;
  std::uint32_t max_retries = 3;           // of an attempt that failed by the cluster
  Duration avoid = std::chrono::hours{1};  // the servers on which it failed
  bool wait_for_locality = false;          // relax only when running apart costs less than waiting
  bool isolate = false;                    // servers for gangs, others for single GPUs
  bool defragment = false;                 // single GPUs move out of the way of a gang
  std::vector<std::pair<std::string, double>> quotas;  // shares of the cluster by name
};

class Philly final : public Policy {
 public:
  explicit Philly(PhillyOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "philly"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = options_.wait_for_locality ? Need::RunTime | Need::Profile : Need::Nothing,
            .preempts = true,
            .decides_retries = true};
  }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  [[nodiscard]] bool retries(const View& view, JobId job, FailureKind kind,
                             std::span<const Slice> slices) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Waiting {
    JobId job;
    Time since;
    Time counted = kNever;  // its last counted attempt
    std::int32_t attempts = 0;
  };
  struct Vc {
    std::string name;
    std::deque<Waiting> queue{};
    std::vector<JobId> running{};  // in order of start
    std::int64_t used = 0;
    double quota = 0;
  };
  struct Failed {  // a size that found no place at this level in this pass
    ShapeId shape;
    std::int32_t level;
    friend auto operator<=>(const Failed&, const Failed&) = default;
  };
  [[nodiscard]] std::size_t vc_of(const View& view, JobId job);
  void set_quotas(const View& view);
  [[nodiscard]] std::vector<std::size_t> by_use() const;
  [[nodiscard]] std::int32_t level_of(const View& view, const Waiting& waiting) const;
  [[nodiscard]] bool start(const View& view, Plan& plan, Vc& vc, const Waiting& waiting,
                           std::int32_t level);
  void serve(const View& view, Plan& plan, std::size_t vc);
  void count_attempt(const View& view, Waiting& waiting) const;
  void note_start(const View& view, Vc& vc, const Waiting& waiting, std::int32_t level);
  void enforce_quotas(const View& view, Plan& plan);
  [[nodiscard]] bool preempt_for(const View& view, Plan& plan, std::size_t vc,
                                 const Waiting& waiting);
  void put_back(const View& view, std::size_t vc, JobId job);
  [[nodiscard]] bool has_other_server(const View& view, JobId job,
                                      std::span<const NodeId> nodes) const;
  [[nodiscard]] std::span<const NodeId> avoided_by(const View& view, JobId job);
  void keep_apart(const View& view, JobId job, std::int32_t level);
  void defragment(const View& view, Plan& plan);
  [[nodiscard]] std::optional<NodeId> easiest_server(const Plan& plan, PoolId pool,
                                                     const Shape& shape) const;
  [[nodiscard]] bool clear_server(const View& view, Plan& plan, std::size_t vc,
                                  const Waiting& waiting, PoolId pool, NodeId node);
  [[nodiscard]] double relative_time(const View& view, JobId job, std::int32_t level) const;

  PhillyOptions options_;
  std::unordered_map<NameId, std::size_t> index_;  // of virtual clusters; lookup only
  std::vector<Vc> vcs_;
  std::vector<Failed> failed_;
  std::map<std::pair<std::int32_t, std::int32_t>, double> waits_;  // GPUs, level: moving mean, s
  struct Avoided {
    NodeId node;
    Time until;
  };
  std::map<JobId, std::vector<Avoided>> avoided_;  // by jobs that are tried again
  ServerUse use_;
  std::vector<Slice> slices_;
  std::vector<NodeId> nodes_;  // scratch
};

[[nodiscard]] PolicyEntry philly_entry();

}  // namespace berth
