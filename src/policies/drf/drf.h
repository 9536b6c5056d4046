// Dominant resource fairness by progressive filling (Ghodsi et al., NSDI 2011), with gangs as
// tasks.
//
// A user's dominant share is the largest part of any resource the user holds (GPUs, cores, memory:
// those the cluster declares), divided by the user's weight. Again and again the user with the
// smallest dominant share among those whose next job fits starts it; ties go by user name. A user's
// jobs start in order of arrival. Nothing is preempted, so shares even out as jobs end.
//
// Shares are exact rationals cut to 60 binary digits: equal shares compare equal whatever the
// resource. Users are indexed by the shape of their next job, so a pass does not grow with users or
// jobs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "core/policy.h"
#include "policies/common/job_heap.h"
#include "policies/common/ranked_set.h"
#include "policies/policy_entry.h"

namespace berth {

class Drf final : public Policy {
 public:
  /// Users and their weights (above zero); everybody else has weight 1.
  using Weights = std::vector<std::pair<std::string, double>>;
  explicit Drf(Weights weights) : weights_(std::move(weights)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "drf"; }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  struct Amounts {
    std::int64_t gpus = 0;
    std::int64_t cpus_milli = 0;
    std::int64_t memory_mib = 0;
  };
  struct User {
    std::string name;
    std::int64_t weight_ppm = 1'000'000;
    Amounts used;
    Int128 share = 0;  // dominant, over the weight
    JobHeap waiting;
    std::optional<ShapeId> listed;  // in which order it stands, under `share`
  };
  struct Rank {
    Int128 share = 0;
    std::string_view name;
    std::uint32_t user = 0;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  using UserIndex = std::uint32_t;

  [[nodiscard]] UserIndex user_of(const View& view, JobId job);
  [[nodiscard]] Int128 share_of(const User& user) const;
  void unlist(UserIndex at);
  void list(const View& view, UserIndex at);
  void change_use(const View& view, UserIndex at, JobId job, std::int64_t sign);
  [[nodiscard]] std::optional<ShapeId> next_shape(const View& view, const Plan& plan) const;

  Weights weights_;
  Amounts capacity_;        // zero: not declared, so nobody's dominant resource
  std::deque<User> users_;  // names stay where they are: Rank points at them
  std::map<NameId, UserIndex> index_;
  std::vector<RankedSet<Rank>> orders_;  // by ShapeId: users whose next job has it
  std::vector<ShapeId> active_;          // shapes with users
  std::vector<bool> running_;            // by JobId
  std::vector<bool> blocked_;            // scratch: by ShapeId, found no place in this pass
};

[[nodiscard]] PolicyEntry drf_entry();

}  // namespace berth
