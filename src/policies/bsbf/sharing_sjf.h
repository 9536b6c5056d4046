// Shortest job first, without preemption, with at most two jobs on a device. `sjf-ffs` shares
// whenever free devices run out, on the first devices with memory enough; `sjf-bsbf` shares only
// where that lowers the average completion time of the pair, takes the best partners, and lets the
// newcomer accumulate gradients so that both fit in memory.
//
// Waiting jobs of one kind (shape, model, batch) are alike but for their length, and a longer one
// finds partners only where a shorter one does. So a pass tries each kind from its shortest job on
// until one fails, and a kind that failed is left alone until a job ended or started by itself.
// What is left of running jobs only shrinks, so one that lacked k devices, free or worth sharing,
// still lacks some until k have come free or lost a sharer: until then it is not tried in earnest.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/bsbf/occupancy.h"
#include "policies/bsbf/partners.h"
#include "policies/policy_entry.h"

namespace berth {

struct SharingSjfOptions {
  bool best_benefit = true;  // false: first fit
  bool consolidate = false;  // a single server first
  PartnerRank rank = PartnerRank::AverageTime;
  bool by_gpu_time = false;  // order by run time times GPUs
  bool restore = true;       // no more gradient accumulation once the partner is gone
  std::int32_t reserve_mib = 512;
  double age_weight = 0;  // seconds of run time forgiven for each second of waiting
  std::int32_t scan_depth = 1000;
  Duration interval{};  // zero: on every event
};

class SharingSjf final : public Policy {
 public:
  SharingSjf(std::string name, const SharingSjfOptions& options);

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
  using KindId = Id<struct SharingKindTag>;
  struct Waiting {
    std::int64_t key = 0;  // ticks
    JobId job;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };
  struct KindKey {
    ShapeId shape;
    ProfileId profile;
    std::int32_t batch = 0;
    friend auto operator<=>(const KindKey&, const KindKey&) = default;
  };
  struct Kind {
    explicit Kind(std::pmr::memory_resource* memory) : waiting(memory) {}
    KindKey key;
    std::int32_t gpus = 1;
    std::pmr::set<Waiting> waiting;
    std::vector<std::optional<BesideClass>> beside;        // by BucketId, once known
    std::vector<std::optional<std::int32_t>> alone_steps;  // by pool: sub-batches it needs alone
    // In a pass: the next one to try.
    std::pmr::set<Waiting>::const_iterator next;
    bool is_blocked = false;
    bool has_news = false;
    // Since the last change of that number the job with this key, and so every longer one, failed.
    std::uint64_t failed_at = 0;
    Waiting failed{};
    // When `gained_` was this, the job with this key lacked so many devices; 0: not known.
    std::int64_t lacked_at = 0;
    std::int32_t lacked = 0;
    Waiting lacking{};
  };
  enum class Tried : std::uint8_t { Alone, Shared, Failed };

  [[nodiscard]] KindId kind_of(const View& view, JobId job);
  void wait(const View& view, JobId job);
  void settle_down(const View& view, JobId job);  // it left its devices
  void restore_batches(const View& view, Plan& plan);
  void pass(const View& view, Plan& plan);
  void offer(Kind& kind);
  [[nodiscard]] Tried try_job(const View& view, Plan& plan, Kind& kind, JobId job);
  /// Beside the best partners if there is no other way. Lowers `lacked` to the devices it lacks if
  /// that is why it declines, else to 0.
  [[nodiscard]] bool try_share_in(const View& view, Plan& plan, Kind& kind, JobId job, PoolId pool,
                                  std::int32_t& lacked);
  [[nodiscard]] bool still_lacks(const Kind& kind, const Waiting& candidate) const noexcept;
  [[nodiscard]] bool lacks_are_known(const View& view) const noexcept;
  [[nodiscard]] bool try_alone(Plan& plan, const View& view, Kind& kind, JobId job);
  [[nodiscard]] bool try_one_server(const View& view, Plan& plan, Kind& kind, JobId job,
                                    PoolId pool);
  [[nodiscard]] bool try_server(const View& view, Plan& plan, Kind& kind, JobId job, PoolId pool,
                                NodeId node);
  [[nodiscard]] std::vector<Partner> partners_on(const View& view, Kind& kind,
                                                 const PartnerSearch::Newcomer& newcomer,
                                                 NodeId node);
  [[nodiscard]] bool try_share(const View& view, Plan& plan, Kind& kind, JobId job, PoolId pool,
                               std::int32_t& lacked);
  [[nodiscard]] bool try_first_fit(const View& view, Plan& plan, Kind& kind, JobId job,
                                   PoolId pool);
  [[nodiscard]] bool commit(const View& view, Plan& plan, JobId job, PoolId pool,
                            std::int32_t sub_steps);
  void started(const View& view, const Plan& plan, JobId job);
  /// Among the partners, if it is one; how many devices it has to share.
  std::int32_t file(const View& view, JobId job);
  void file_mates(const View& view, JobId job, std::span<const Slice> slices);

  [[nodiscard]] const BesideClass& beside(const View& view, Kind& kind, BucketId bucket);
  [[nodiscard]] BesideClass compute_beside(const View& view, const Kind& kind,
                                           const PartnerClass& klass) const;
  [[nodiscard]] std::optional<std::int32_t> steps_within(const View& view, const Kind& kind,
                                                         std::int64_t memory_mib) const;
  [[nodiscard]] PartnerClass compute_class(const View& view, JobId job) const;
  [[nodiscard]] std::int32_t steps_alone(const View& view, JobId job);
  [[nodiscard]] double solo_left(const View& view, JobId job) const;
  [[nodiscard]] SoloLeft solo_left_of_sharing(const View& view, JobId job) const;
  [[nodiscard]] double length(const View& view, JobId job) const;
  void add_free(const ClusterState& state, PoolId pool);
  void add_from(std::span<const Slice> slices, std::int32_t wanted);
  [[nodiscard]] std::int32_t add_first_fit(const View& view, const Kind& kind, NodeId node,
                                           std::int32_t wanted, std::int32_t& steps);
  void add_devices(NodeId node, std::uint64_t devices);
  [[nodiscard]] std::int32_t chosen_gpus() const noexcept;

  std::string name_;
  SharingSjfOptions options_;
  std::pmr::unsynchronized_pool_resource memory_;  // of the queues
  std::vector<Kind> kinds_;
  std::map<KindKey, KindId> kind_ids_;
  std::vector<KindId> to_offer_;  // kinds with news since the last pass
  std::optional<PartnerIndex> partners_;
  PartnerSearch search_;
  Occupancy occupancy_;
  SliceArena places_;
  Column<JobId, Allocation> place_of_;
  std::vector<JobId> survivors_;  // whose gradient accumulation may end
  std::uint64_t changes_ = 1;     // ends of jobs and starts on devices of their own
  std::uint64_t passed_at_ = 0;   // after the last pass; 0: it was cut short
  std::int64_t gained_ = 0;       // devices that came free or whose job was filed anew
  Time next_pass_{};
  std::vector<std::pair<Waiting, KindId>> heap_;  // of a pass
  std::vector<KindId> blocked_;                   // in a pass
  std::vector<Slice> chosen_;                     // scratch, ascending by node
  std::vector<Slice> elsewhere_;                  // scratch
};

[[nodiscard]] PolicyEntry sjf_ffs_entry();
[[nodiscard]] PolicyEntry sjf_bsbf_entry();

}  // namespace berth
