// Making way by rank: a job that may run by the number of GPUs finds no devices that are free
// together, because of nodes it must not be spread over, or of cores and memory. Jobs that come
// after it leave their devices then: least work lost first, as few as make room.
//
//   on one node     where the placement insists on the fewest nodes and one can hold the gang: the
//                   node on which the least work is lost
//   on more nodes   the roomiest nodes first, among equals the one on which the least is lost,
//                   until the gang fits
//   anywhere        for a gang that may be spread, one job after the other until it fits
//
// Whoever is not in the way after all keeps its devices. Work lost is the GPU time since a job last
// got devices: what a job without checkpoints has to do again. Who may be asked to make way is the
// caller's to say, and so is what becomes of those who did: they may go elsewhere.
//
// A failed try costs what the candidates hold, without putting them in order where the gang wants
// one node, and changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan.h"
#include "core/view.h"

namespace berth {

/// Where GPUs are only counted a job can, in the pass that evicts it, only go back to the pool it
/// was in. Is there room for it in another, so that the next pass should come at once?
[[nodiscard]] bool has_room_elsewhere(const View& view, JobId job, PoolId was_in);

class WayMaker {
 public:
  void clear() { candidates_.clear(); }
  /// A job that holds devices of the pool and has to make way if asked.
  void add(const View& view, JobId job);

  /// Starts the job in the pool in place of some candidates. False: not even without all of them.
  /// Uses them up: the next try names its own.
  [[nodiscard]] bool try_start(Plan& plan, PoolId pool, JobId job, Reason reason);
  /// Who lost its devices in the last success, in the order in which they were asked.
  [[nodiscard]] std::span<const JobId> displaced() const noexcept { return displaced_; }

 private:
  struct Candidate {
    std::int64_t lost = 0;  // GPU time
    JobId job;
  };
  /// What candidates would give back on one node.
  struct Gain {
    std::int64_t gpus = 0;
    std::int64_t cpus_milli = 0;
    std::int64_t memory_mib = 0;
    Gain& operator+=(const Gain& other) noexcept {
      gpus += other.gpus;
      cpus_milli += other.cpus_milli;
      memory_mib += other.memory_mib;
      return *this;
    }
  };
  struct NodeSum {  // of all candidates on a node
    Gain gain;
    std::uint32_t parts = 0;  // 0: nobody of them is there, or the node is of no use
    std::uint32_t site = 0;   // into sites_
  };
  struct Part {  // of a candidate, on one node
    NodeId node;
    std::uint32_t candidate;  // in their order
    Gain gain;
  };
  /// A node that candidates are on, and what it costs to have it.
  struct Site {
    NodeId node;
    std::int64_t room = 0;  // for the shape, without any of them
    std::int64_t lost = 0;
    std::uint32_t first = 0;  // into parts_
    std::uint32_t last = 0;   // one behind
  };
  struct Taken {
    JobId job;
    std::vector<Slice> slices;
  };
  void add_up_nodes(const Plan& plan);
  [[nodiscard]] bool keep_to_roomy_nodes(const Plan& plan, const Shape& shape);
  void find_sites(const Plan& plan, const Shape& shape);
  [[nodiscard]] static Gain gain_of(const Slice& slice, const Shape& held);
  [[nodiscard]] static std::int64_t room_on(const Plan& plan, NodeId node, const Shape& shape,
                                            const Gain& gain);
  [[nodiscard]] bool try_one_node(Plan& plan, PoolId pool, JobId job, Reason reason);
  /// Fewest of the parts of a site that make room for the whole gang on it.
  [[nodiscard]] bool choose_on(const Plan& plan, const Shape& shape, const Site& site);
  [[nodiscard]] bool try_in_order(Plan& plan, PoolId pool, JobId job, Reason reason);
  [[nodiscard]] bool try_without(Plan& plan, PoolId pool, JobId job, std::size_t count,
                                 Reason reason);
  void spare(Plan& plan, PoolId pool);

  std::vector<Candidate> candidates_;  // least work lost first
  std::vector<NodeSum> sums_;          // by NodeId
  std::vector<NodeId> nodes_;          // those with a sum
  std::vector<Part> parts_;            // by node, then in the order of candidates
  std::vector<Site> sites_;
  std::vector<std::uint32_t> chosen_;  // candidates, of one node
  std::vector<std::uint32_t> order_;   // candidates in the order in which they are asked
  std::vector<std::size_t> steps_;     // ends of what is asked together, in order_
  std::vector<bool> in_order_;         // by candidate
  std::vector<Taken> taken_;
  std::vector<JobId> displaced_;
};

}  // namespace berth
