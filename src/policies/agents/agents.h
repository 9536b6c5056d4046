// Decentralised scheduling: job agents bid, arbiters sell.
//
// Every job has an agent that knows its own speed and nothing of others; arbiters know offers and
// bids and nothing of the inside of a job. When devices are free or leases have ended, the arbiter
// shows the offer to the worst-off part of the agents; each bids for its gang; the arbiter picks
// disjoint bids that minimise the product of how badly off all are (auction.h). What is left is
// given to anybody it helps, worst-off first. Grants are leases: when one ends, its holder bids
// again with a switching credit, and loses its devices only if somebody else gets them. Agents
// choose the level of the topology at which they accept devices: at first by the label of their
// class, relaxed when waiting costs more than distance (perf/locality.h), and move to closer
// devices when that pays (common/migration.h).
//
// Identical waiting jobs are one class with a FIFO, of which only the first few bid, so a round
// costs what there are classes, not jobs. More than 2,000 devices have several arbiters with the
// agents dealt among them, each selling what the one before left. Assumes estimates of run times
// and profiles. Gangs are rigid.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/agents/auction.h"
#include "policies/agents/valuation.h"
#include "policies/common/migration.h"

namespace berth::agents {

struct AgentsOptions {
  Value value = Value::Fairness;
  double hidden = 0.8;                           // f: part of the agents an offer is hidden from
  Duration interval = std::chrono::seconds{60};  // tau
  Duration lease = std::chrono::minutes{20};
  double switching_credit = 0.05;
  Duration migration_interval = std::chrono::minutes{5};  // zero: jobs stay where they are
  Duration migration_cost = std::chrono::seconds{60};
};

class Agents final : public Policy {
 public:
  explicit Agents(const AgentsOptions& options) : options_(options) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "agents"; }
  [[nodiscard]] Need needs() const noexcept override {
    return Need::RunTime | Need::Deadline | Need::Profile;
  }
  [[nodiscard]] bool wants_topology() const noexcept override { return true; }

  void on_arrival(const View& view, JobId job) override { enqueue(view, job); }
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  using ClassKey = std::pair<ShapeId, ProfileId>;
  struct Candidate {
    JobId job;
    PoolId pool;
    Bidder bidder;
    double plight = 0;
    bool is_holder = false;  // its lease has ended
  };
  struct Lease {
    Time end = kNever;  // kNever: holds none
    Time moved{Duration::min() / 2};
  };

  [[nodiscard]] ClassKey class_of(const View& view, JobId job) const;
  void enqueue(const View& view, JobId job);
  void dequeue(const View& view, JobId job);
  Lease& lease_of(JobId job);
  void grant_lease(const View& view, JobId job);

  [[nodiscard]] SelfView self_of(const View& view, JobId job) const;
  [[nodiscard]] double rate_at(const View& view, JobId job, PoolId pool, Level level) const;
  [[nodiscard]] Level accepted_level(const View& view, JobId job, PoolId pool,
                                     const TopologyIndex& index) const;
  [[nodiscard]] Candidate make_candidate(const View& view, JobId job, PoolId pool) const;

  void end_leases(const View& view, Plan& plan);
  void add_waiting(const View& view, const Plan& plan);
  void hide_offers();
  void sell(const View& view, Plan& plan);
  void sell_pool(const View& view, Plan& plan, PoolId pool, std::span<const std::size_t> members);
  void give_leftovers(const View& view, Plan& plan);
  [[nodiscard]] bool start(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool start_in(const View& view, Plan& plan, JobId job, PoolId pool);
  void migrate(const View& view, Plan& plan);
  void try_move(const View& view, Plan& plan, JobId job);

  AgentsOptions options_;
  std::map<ClassKey, std::set<JobId>> waiting_;
  std::size_t waiting_jobs_ = 0;
  std::vector<Lease> leases_;                               // by JobId
  std::set<std::pair<Time, JobId>> ends_;                   // of all leases
  std::map<std::pair<std::int32_t, Level>, double> waits_;  // smoothed, by GPUs and level reached
  Time next_migration_{};
  bool held_back_ = false;             // some job that fits by numbers found no place close enough
  std::vector<Candidate> candidates_;  // scratch
  std::vector<JobId> losers_;          // scratch: holders that lost the auction
  std::vector<DeviceSet> parts_;       // scratch
  std::vector<Slice> slices_;          // scratch
};

}  // namespace berth::agents
