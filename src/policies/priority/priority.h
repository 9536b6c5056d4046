// Priority classes with preemption, tenant quotas and aging.
//
// Order: effective class, largest first, then submission. The class is the job's priority; waiting
// raises it by one each `aging_interval` since submission, up to `max_class`. A running job keeps
// the effective class it started with.
//
// Who may take GPUs from running jobs (policies/common/victims.h, lowest class first, then latest
// start):
//   by class      a job whose own class is allowed to preempt, from jobs of strictly lower
//                 effective class;
//   by guarantee  a job that its tenant's guarantee covers, from other tenants' borrowed jobs,
//                 whatever their class.
// In both cases a tenant within its guarantee loses nothing to other tenants. Age moves a job
// forward and protects it once it runs, but gives no right to preempt: otherwise equals would evict
// each other in turn.
//
// Assumes nothing about durations; preemption is by checkpoint.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/common/aging.h"
#include "policies/common/pass_rule.h"
#include "policies/common/victims.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/policy_entry.h"
#include "policies/priority/quotas.h"

namespace berth::priority {

/// What a hard quota that was lowered below what is in use does.
enum class Enforce : std::uint8_t { Later, Now };

struct Options {
  PassRule pass = PassRule::Skip;
  /// Lowest class that may preempt by class; absent: none.
  std::optional<std::int32_t> preempts_from{};
  Aging aging{};
  Enforce enforce = Enforce::Later;
};

class Priority final : public Policy {
 public:
  Priority(Quotas quotas, const Options& options) : options_(options), quotas_(std::move(quotas)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "priority"; }
  void begin(const View& view) override;
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.preempts = true, .may_refuse = true};
  }
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

  /// Changes the quota of a listed tenant while running; takes effect at the next pass.
  void change_quota(const std::string& tenant, const Quota& quota);

 private:
  using TenantId = Quotas::TenantId;
  /// Jobs that no rule can tell apart but for their age.
  struct Alike {
    TenantId tenant = 0;
    std::int32_t priority = 0;
    ShapeId shape;
    friend auto operator<=>(const Alike&, const Alike&) = default;
  };

  [[nodiscard]] GroupId group_of(const View& view, JobId job) {
    return groups_.of({tenant_[job], view.request(job).priority, view.jobs.shape[job]});
  }
  [[nodiscard]] std::int32_t effective_class(const View& view, JobId job, Time at) const noexcept {
    return options_.aging.class_of(view, job, at);
  }
  [[nodiscard]] bool comes_first(const View& view, JobId a, JobId b, Time at) const;
  [[nodiscard]] bool is_held(const View& view, const Alike& key) const;
  [[nodiscard]] bool is_guaranteed(TenantId tenant, std::int32_t gpus) const;
  [[nodiscard]] bool may_preempt_by_class(std::int32_t priority) const noexcept {
    return options_.preempts_from && priority >= *options_.preempts_from;
  }

  void enforce_quotas(const View& view, Plan& plan);
  [[nodiscard]] std::optional<GroupId> first_group(const View& view) const;
  [[nodiscard]] bool has_chance(const View& view, const Alike& key) const;
  [[nodiscard]] bool try_preempt(const View& view, Plan& plan, JobId job);
  [[nodiscard]] const VictimKey* next_victim(const View& view, JobId job, bool guaranteed) const;
  void wait_again(const View& view, JobId job);
  [[nodiscard]] std::optional<Time> overtakes_at(const View& view, JobId later, JobId head) const;

  Options options_;
  Quotas quotas_;
  Column<JobId, TenantId> tenant_;
  Groups<Alike> groups_;
  WaitingJobs<GroupId> waiting_;
  RunningJobs running_;  // by tenant
  std::vector<PoolId> all_pools_;
  std::vector<JobId> evicted_;  // in this pass: they may start again, but not by preempting
  RoomMaker room_;              // scratch
};

}  // namespace berth::priority

namespace berth {

[[nodiscard]] PolicyEntry priority_entry();

}  // namespace berth
