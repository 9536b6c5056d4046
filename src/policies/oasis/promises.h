// What is promised to accepted jobs, slot by slot, and at what price the next job is: the GPUs of
// each pool, and cores for parameter servers if jobs have any. Unless prices are fixed, their range
// is learnt from the jobs seen.
//
// A change of a schedule makes the appointments made for it stale; they are dropped when they come
// up. Looking a job's slot up is O(log slots).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/cluster_state.h"
#include "policies/common/job_list.h"
#include "policies/common/parameter_servers.h"
#include "policies/oasis/cheapest.h"
#include "policies/oasis/price_range.h"

namespace berth::oasis {

/// A schedule in one pool, in workers of so many GPUs.
struct Offer {
  Schedule schedule;
  std::int64_t gpus_per_worker = 1;
};

struct FixedPrices {
  double low = 0;  // 0 = learnt from the jobs seen
  double high = 0;
};

struct PromiseOptions {
  std::int64_t horizon = 200;  // slots
  ParameterServers servers;
  FixedPrices prices;
};

class Promises {
 public:
  Promises(const ClusterState& cluster, const PromiseOptions& options, std::size_t jobs);

  // Prices.
  [[nodiscard]] const PriceBook& gpus() const noexcept { return gpus_.book; }
  [[nodiscard]] Market market() const noexcept {
    return {&gpus_.book, cores_ ? &cores_->book : nullptr};
  }
  /// Slots before this one are over.
  void advance(std::int64_t slot);
  void learn(const PriceRange::Sample& sample);
  /// True if the pool has fewer GPUs than before.
  bool set_capacity(PoolId pool, std::int64_t gpus);

  // Schedules.
  /// Jobs with a schedule.
  [[nodiscard]] const JobList& jobs() const noexcept { return jobs_; }
  [[nodiscard]] bool has(JobId job) const noexcept { return rows_[job].is_kept; }

  /// Adds the schedule to what the job may still hold in the current slot.
  void keep(JobId job, const Offer& offer, std::int64_t now);
  /// Gives back what it was promised from this slot on.
  void release_from(JobId job, std::int64_t slot);
  /// It has no schedule any more; nothing of it is left to be released.
  void drop(JobId job);

  [[nodiscard]] std::int64_t gpus_per_worker(JobId job) const noexcept {
    return rows_[job].gpus_per_worker;
  }
  [[nodiscard]] std::int64_t gpus_at(JobId job, std::int64_t slot) const;
  /// Where it holds GPUs in that slot.
  [[nodiscard]] PoolId pool_at(JobId job, std::int64_t slot) const;
  /// The first slot after this one in which it holds GPUs.
  [[nodiscard]] std::optional<std::int64_t> next_after(JobId job, std::int64_t slot) const;
  [[nodiscard]] bool is_over(JobId job, std::int64_t slot) const {
    return rows_[job].workers.back().slot < slot;
  }
  /// Whoever of those that hold GPUs of the pool in this slot arrived last.
  [[nodiscard]] std::optional<JobId> last_holder(PoolId pool, std::int64_t slot) const;

  /// The job is looked at when this slot begins.
  void remind(JobId job, std::int64_t slot);
  /// Somebody is to be looked at in a slot after `seen`, up to this one.
  [[nodiscard]] bool is_awaited(std::int64_t seen, std::int64_t slot) const;
  /// The next job that is to be looked at in this slot or before, once.
  [[nodiscard]] std::optional<JobId> pop_due(std::int64_t slot);
  /// The first slot in which somebody is to be looked at.
  [[nodiscard]] std::optional<std::int64_t> next_slot();

 private:
  struct Resource {
    Resource(const std::vector<Amounts>& capacity, std::int64_t horizon)
        : book(capacity, horizon), range(1, book.total_capacity()) {}
    void learn(const PriceRange::Sample& sample, std::int64_t need) {
      if (range.see(sample, Amounts{need})) book.set_range(range.low(), range.high());
    }
    PriceBook book;
    PriceRange range;
  };
  struct Row {
    std::vector<Hold> workers;  // by slot; the server is the pool
    std::vector<Hold> helpers;
    std::int64_t gpus_per_worker = 1;
    std::uint32_t generation = 0;  // of its appointments
    bool is_kept = false;
  };
  struct Appointment {
    std::int64_t slot;
    JobId job;
    std::uint32_t generation;
    friend auto operator<=>(const Appointment&, const Appointment&) = default;
  };
  [[nodiscard]] const Hold* hold_at(JobId job, std::int64_t slot) const;
  void make_appointments(JobId job, std::int64_t now);
  [[nodiscard]] bool is_valid(const Appointment& due) const {
    return due.generation == rows_[due.job].generation;
  }
  void pop_first();

  ParameterServers servers_;
  Resource gpus_;                  // a pool is a server of the paper
  std::optional<Resource> cores_;  // all of the cluster are one server
  Column<JobId, Row> rows_;
  JobList jobs_;
  std::vector<Appointment> agenda_;  // heap, earliest first; some are stale
};

}  // namespace berth::oasis
