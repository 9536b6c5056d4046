// Running jobs ordered by a key that changes linearly in time (work left falls, attained service
// grows). Inside a class of equal slope the order never changes, so each class is kept sorted by
// its value at time zero; a question about "now" is answered class by class. There are as many
// classes as distinct slopes (one for time-based keys, one per gang size for GPU-time keys), for
// each pool.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/int128.h"
#include "base/time.h"
#include "core/view.h"
#include "policies/common/ranked_set.h"
#include "policies/kit/waiting_jobs.h"

namespace berth::preemptive {

class KineticSet {
 public:
  /// `value` is the key now; it changes by `slope` per tick.
  void insert(Time now, PoolId pool, JobId job, Int128 value, std::int64_t slope,
              std::int64_t gpus) {
    const OrderKey key{value - Int128{slope} * now.time_since_epoch().count(), job};
    if (job.value >= where_.size()) where_.resize(job.value + 1);
    const std::size_t index = class_of(pool, slope);
    where_[job] = {key.value, static_cast<std::uint32_t>(index)};
    classes_[index].members.insert(key, gpus);
  }
  void erase(JobId job) {
    const Where& where = where_[job];
    classes_[where.index].members.erase({where.at_zero, job});
  }
  /// The key of a member now.
  [[nodiscard]] OrderKey key(Time now, JobId job) const {
    const Where& where = where_[job];
    return {where.at_zero + Int128{classes_[where.index].slope} * now.time_since_epoch().count(),
            job};
  }
  /// GPUs of the pool's members whose key now is before `key`.
  [[nodiscard]] std::int64_t gpus_before(Time now, PoolId pool, const OrderKey& key) const {
    std::int64_t sum = 0;
    for (const Class& each : classes_) {
      if (each.pool == pool && !each.members.empty())
        sum += each.members.sum_before(at_zero(each, now, key));
    }
    return sum;
  }
  /// The pool's members whose key now is after `key`, in no particular order.
  template <class Visit>
  void for_each_after(Time now, PoolId pool, const OrderKey& key, Visit visit) const {
    for (const Class& each : classes_) {
      if (each.pool != pool || each.members.empty()) continue;
      each.members.for_each_after(at_zero(each, now, key),
                                  [&](const auto& entry) { visit(entry.key.job); });
    }
  }
  /// The member of the pool with the largest key now.
  [[nodiscard]] std::optional<OrderKey> last(Time now, PoolId pool) const {
    std::optional<OrderKey> last;
    for (const Class& each : classes_) {
      if (each.pool != pool || each.members.empty()) continue;
      const OrderKey stored = each.members.back().key;
      const OrderKey key{stored.value + Int128{each.slope} * now.time_since_epoch().count(),
                         stored.job};
      if (!last || *last < key) last = key;
    }
    return last;
  }
  [[nodiscard]] std::int64_t gpus(PoolId pool) const {
    std::int64_t sum = 0;
    for (const Class& each : classes_) sum += each.pool == pool ? each.members.total() : 0;
    return sum;
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t sum = 0;
    for (const Class& each : classes_) sum += each.members.size();
    return sum;
  }

 private:
  struct Class {
    PoolId pool;
    std::int64_t slope;
    RankedSet<OrderKey> members;
  };
  struct Where {
    Int128 at_zero = 0;
    std::uint32_t index = 0;
  };
  [[nodiscard]] static OrderKey at_zero(const Class& each, Time now, const OrderKey& key) {
    return {key.value - Int128{each.slope} * now.time_since_epoch().count(), key.job};
  }
  std::size_t class_of(PoolId pool, std::int64_t slope) {
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      if (classes_[i].pool == pool && classes_[i].slope == slope) return i;
    }
    classes_.push_back({pool, slope, {}});
    return classes_.size() - 1;
  }
  std::vector<Class> classes_;
  Column<JobId, Where> where_;
};

}  // namespace berth::preemptive
