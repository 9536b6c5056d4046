// Shortest job first, without preemption, with at most two jobs on a device (Luo et al., Scheduling
// Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing, 2024). `sjf-ffs`
// shares whenever free devices run out, on the first devices with memory enough; `sjf-bsbf` shares
// only where that lowers the average completion time of the pair, takes the best partners, and lets
// the newcomer accumulate gradients so that both fit in memory. Assumes estimated run times and
// profiled models.
//
// Waiting jobs of one kind are alike but for their length, and a longer one finds partners only
// where a shorter one does. So a pass tries each kind from its shortest job on until one fails, and
// a kind that failed is left alone until a job ended or started by itself. What is left of running
// jobs only shrinks, so one that lacked k devices, free or worth sharing, still lacks some until k
// have come free or lost a sharer: until then it is not tried in earnest.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/bsbf/newcomers.h"
#include "policies/bsbf/running_jobs.h"
#include "policies/bsbf/starter.h"
#include "policies/kit/pass.h"
#include "policies/policy_entry.h"

namespace berth::bsbf {

enum class SortKey : std::uint8_t { RunTime, GpuTime };

struct Options {
  Starter::Rules rules;
  bool consolidate = false;  // a single server first
  SortKey key = SortKey::RunTime;
  AfterSharing after = AfterSharing::RestoreBatch;
  std::int32_t reserve_mib = 512;
  double age_weight = 0;  // seconds of run time forgiven for each second of waiting
  std::int32_t scan_depth = 1000;
  Duration interval{};  // zero: on every event
};

class SharingSjf final : public Policy {
 public:
  SharingSjf(std::string name, const Options& options);

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Profile,
            .shares_devices = true,
            .also_uses = Ability::SubBatch,
            .may_refuse = true};
  }

  void begin(const View& view) override;
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Waiting {
    std::int64_t key = 0;  // ticks
    JobId job;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };
  /// The waiting jobs of a kind.
  struct Queue {
    explicit Queue(std::pmr::memory_resource* memory) : waiting(memory) {}
    std::pmr::set<Waiting> waiting;
    bool has_news = false;  // since the last pass
    // In a pass: the next one to try.
    std::pmr::set<Waiting>::const_iterator next;
    bool is_blocked = false;
    // Since the last change of that number the job with this key, and so every longer one, failed.
    std::uint64_t failed_at = 0;
    Waiting failed{};
    // When the running jobs had gained that many, the job with this key lacked so many devices; 0:
    // not known.
    std::int64_t lacked_at = 0;
    std::int32_t lacked = 0;
    Waiting lacking{};
  };
  enum class Tried : std::uint8_t { Alone, Shared, Failed };

  [[nodiscard]] Queue& queue_of(KindId kind);
  void wait(const View& view, JobId job);
  void offer_kinds();
  void offer(KindId kind);
  void try_offered(Pass& pass);
  void fail(KindId kind, const Waiting& candidate);
  [[nodiscard]] Tried try_job(Pass& pass, Queue& queue, JobId job);
  [[nodiscard]] bool would_fail(const Queue& queue) const noexcept;
  [[nodiscard]] bool still_lacks(const Queue& queue, const Waiting& candidate) const noexcept;
  [[nodiscard]] bool lacks_are_known(const View& view) const noexcept;

  std::string name_;
  Options options_;
  Newcomers newcomers_;
  std::optional<RunningJobs> running_;
  std::optional<Starter> starter_;
  std::pmr::unsynchronized_pool_resource memory_;  // of the queues
  std::vector<Queue> queues_;                      // by KindId
  std::vector<KindId> to_offer_;                   // kinds with news since the last pass
  std::uint64_t changes_ = 1;                      // ends of jobs and starts by themselves
  std::uint64_t passed_at_ = 0;                    // after the last pass; 0: it was cut short
  Time next_pass_{};
  std::vector<std::pair<Waiting, KindId>> heap_;  // of a pass
  std::vector<KindId> blocked_;                   // in a pass
};

}  // namespace berth::bsbf

namespace berth {

[[nodiscard]] PolicyEntry sjf_ffs_entry();
[[nodiscard]] PolicyEntry sjf_bsbf_entry();

}  // namespace berth
