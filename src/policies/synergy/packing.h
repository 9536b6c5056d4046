// One round of Synergy: which jobs run, on which servers, with how many cores and how much memory.
// Servers are thought of as empty; a job may name the server it would rather stay on.
//
//   tune          demand if it fits, else the proportional share, else others give back what they
//                 hold above theirs; left over cores and memory go where they help most
//   greedy        demand or nothing: GPUs may idle
//   proportional  every job its proportional share: the baseline
//
// Guarantee of tune: nobody is slower than with its proportional share. O(J log N) for J jobs and N
// servers while demands fit; a job that does not looks at the jobs of the servers it takes.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "policies/synergy/sensitivity.h"

namespace berth::synergy {

enum class Mode : std::uint8_t { Tune, Greedy, Proportional };

struct Server {
  std::int32_t gpus = 0;
  std::int32_t cores = 0;
  std::int64_t memory_mib = 0;
};

/// Workers of a job on one server.
struct Part {
  std::uint32_t server = 0;
  std::int32_t gpus = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

struct Job {
  std::int32_t gpus = 1;
  const Sensitivity* sensitivity = nullptr;
  Share demand{};                // normally that of the sensitivity
  std::span<const Part> stay{};  // where it ran in the last round; empty = nowhere
};

struct Grant {
  bool runs = false;
  Share share;
  std::vector<Part> parts;
};

class Packer {
 public:
  explicit Packer(Mode mode) : mode_(mode) {}

  /// `jobs` in order of the policy. Servers offer at least the proportional share of `axes` to each
  /// of their GPUs. The answer has one entry per job and is valid until the next call.
  [[nodiscard]] std::span<const Grant> pack(const Axes& axes, std::span<const Server> servers,
                                            std::span<const Job> jobs);

 private:
  using Index = std::uint32_t;
  struct Free {
    std::int32_t gpus = 0;
    std::int64_t cores = 0;
    std::int64_t memory_mib = 0;
  };
  using Key = std::tuple<std::int64_t, std::int64_t, Index>;  // free cores, free memory, server

  void begin(std::span<const Server> servers);
  void choose_runnable(std::span<const Server> servers);
  void sort_for_packing();
  void place_job(Index job);
  [[nodiscard]] bool try_stay(Index job, const Share& share);
  [[nodiscard]] bool try_place(Index job, const Share& share);
  void place_by_reverting(Index job);
  [[nodiscard]] bool find_server(std::int32_t gpus, const Share& share, Index& server) const;
  [[nodiscard]] bool find_parts(std::int32_t gpus, const Share& share);
  void parts_by_gpus(std::int32_t gpus);
  void revert_on(Index server, Index for_job);
  [[nodiscard]] bool comes_first(Index victim, Index other) const noexcept;

  void hand_out_cores(Index server);
  void hand_out_memory(Index server);
  [[nodiscard]] bool can_grow(Index job, const Share& next) const noexcept;
  void change_share(Index job, const Share& next);

  void commit(Index job, const Share& share);  // takes parts_
  void take(Index server, std::int32_t gpus, std::int64_t cores, std::int64_t memory);
  [[nodiscard]] std::int64_t memory_of(const Share& share) const noexcept {
    return axes_->memory_mib[static_cast<std::size_t>(share.level)];
  }
  [[nodiscard]] bool fits(Index server, std::int32_t gpus, const Share& share) const noexcept;

  Mode mode_;
  const Axes* axes_ = nullptr;
  std::span<const Job> jobs_;  // during a call
  std::vector<Grant> grants_;
  std::vector<Free> free_;
  std::vector<std::set<Key>> by_free_;       // index = free GPUs
  std::vector<std::vector<Index>> tenants_;  // jobs of each server
  std::vector<Index> runnable_;              // scratch
  std::vector<Part> parts_;                  // scratch
};

}  // namespace berth::synergy
