// Carries out new sizes: who shrinks stays on part of its devices, then the largest gangs are
// placed first. What cannot be placed comes back as near to its old place and size as possible.
// Every job that was moved pays for a restart, and everybody gets the batch of its new size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/goodput/goodput_jobs.h"
#include "policies/kit/pass.h"

namespace berth::goodput {

/// What a job held before it was stopped in this pass.
struct Home {
  JobId job;
  PoolId pool;
  std::vector<Slice> slices;

  [[nodiscard]] std::int32_t gpus() const noexcept;
};
/// Stops the job if it runs.
[[nodiscard]] Home leave(Plan& plan, JobId job);

struct SizeWish {
  JobId job;
  PoolId pool;
  std::int32_t gpus = 0;  // 0: it is to wait
};

/// Whether small jobs move where a gang finds no node with enough free devices.
enum class Repack : std::uint8_t { Nobody, SmallJobs };

class Resizer {
 public:
  explicit Resizer(Jobs& jobs) : jobs_(&jobs) {}

  /// Only wishes that differ from what is. True if anybody is not where it was.
  bool apply(Pass& pass, std::span<const SizeWish> wishes, Repack repack);
  /// After one was refused its place: elsewhere, at home, or smaller.
  void bring_back(Plan& plan, const Home& home, PoolId pool, std::int32_t gpus) const;
  /// Batch and restart of a job that was stopped in this pass; true if it is not where it was.
  bool settle(Pass& pass, const Home& home);

 private:
  struct Move {
    SizeWish wish;
    Home home;
  };
  void shrink_in_place(Plan& plan, const Move& move);
  void place_by_size(Plan& plan);
  [[nodiscard]] bool is_blocked(const Plan& plan, const Move& move) const;
  void make_room(Pass& pass);
  void add_small_jobs(Pass& pass, PoolId pool);

  Jobs* jobs_;
  std::vector<Move> moves_;    // scratch
  std::vector<Slice> slices_;  // scratch
};

}  // namespace berth::goodput
