// The running jobs a newcomer could share devices with, so that the best ones are found without
// looking at all. Jobs that run alone are kept in buckets of one model, size, pool and memory use,
// by the time at which they would finish alone; that order does not change while they do. Inside a
// bucket the partners worth sharing with are those with more than T* left, and the average
// completion time rises with what is left, so the best come first from T* on (or last, by benefit).
// Jobs that already share some of their devices are few and are looked at one by one; of those no
// more are kept than the newcomer can use.
//
// A query costs O(buckets log n + sharing jobs) and then O(buckets) for each partner taken.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "perf/profile.h"
#include "policies/bsbf/pair.h"

namespace berth::bsbf {

enum class PartnerRank : std::uint8_t { AverageTime, Benefit };

using BucketId = Id<struct PartnerBucketTag>;

struct PartnerGroup {
  ProfileId profile;
  PoolId pool;
  std::int32_t gpus = 1;
  std::int32_t memory_mib = 0;
  friend auto operator<=>(const PartnerGroup&, const PartnerGroup&) = default;
};

/// How a newcomer would run beside jobs of one group.
struct Beside {
  bool fits = false;  // in the memory they leave
  SharingSlowdown slowdown{};
  double stretch = 1;  // its length with that sub-batch over its length without
  std::int32_t sub_steps = 1;
};

/// Solo run time left of a job: so much at a moment, less what was done since at its rate.
/// Integers, as the job table reckons.
struct SoloLeft {
  Duration left{};
  Time from = kNever;  // kNever: it changes in other ways; what is left is right now alone
  Rate rate{};
  [[nodiscard]] double seconds(Time now) const noexcept {
    const bool progresses = from != kNever && now > from;
    return to_seconds(progresses ? left - rate.work_in(now - from) : left);
  }
};

struct Partner {
  JobId job;
  PairSetting setting{};
};

class PartnerIndex {
 public:
  using ByFinish = std::pmr::set<std::pair<Time, JobId>>;
  /// A job that shares some devices. Its pace does not change until it is filed anew, so what is
  /// left of it is looked up once and then reckoned.
  struct Sharing {
    JobId job;
    Time filed;  // its pace is known after that instant
    mutable SoloLeft known{};
  };
  struct Bucket {
    PartnerGroup group;
    ByFinish alone;
    std::vector<Sharing> sharing;  // ascending by job
  };

  PartnerIndex(std::size_t jobs, std::size_t pools) : where_(jobs), of_pool_(pools) {}

  /// Before it is added, and again when its group changes while it is not kept.
  void assign(JobId job, const PartnerGroup& group);
  [[nodiscard]] const PartnerGroup& group_of(JobId job) const noexcept {
    return buckets_[where_[job].bucket].group;
  }
  /// A job that runs alone on all its devices and would be done at `finish`.
  void add_alone(JobId job, Time finish);
  /// A job that shares some of its devices and has others to share.
  void add_sharing(JobId job, Time now);
  /// Nothing happens to one that is not kept.
  void remove(JobId job);
  [[nodiscard]] bool contains(JobId job) const noexcept { return where_[job].kept; }
  [[nodiscard]] BucketId bucket_of(JobId job) const noexcept { return where_[job].bucket; }

  [[nodiscard]] std::span<const BucketId> buckets(PoolId pool) const noexcept {
    return of_pool_[pool];
  }
  [[nodiscard]] const Bucket& operator[](BucketId id) const noexcept { return buckets_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return buckets_.size(); }

 private:
  struct Where {
    Time finish{};  // kNever: among those that share
    BucketId bucket;
    bool kept = false;
  };

  std::pmr::unsynchronized_pool_resource memory_;  // of the sets: jobs come and go
  Column<BucketId, Bucket> buckets_;
  std::map<PartnerGroup, BucketId> ids_;
  Column<JobId, Where> where_;
  Column<PoolId, std::vector<BucketId>> of_pool_;
};

/// The partners that are worth sharing with, best first, one at a time.
class PartnerSearch {
 public:
  struct Newcomer {
    PoolId pool;
    std::int32_t gpus = 1;
    double length = 0;  // seconds alone, without gradient accumulation
    PartnerRank rank = PartnerRank::AverageTime;
    std::size_t wanted = std::numeric_limits<std::size_t>::max();  // no more partners are asked for
  };
  /// `beside(BucketId)` answers how the newcomer would run beside a group, `left(JobId)` the solo
  /// run time left of a job that shares already; one whose `from` is kNever is not kept.
  template <class BesideOf, class LeftOf>
  void begin(const PartnerIndex& index, const Newcomer& newcomer, Time now, BesideOf&& beside,
             LeftOf&& left) {
    reset(newcomer, now);
    for (const BucketId id : index.buckets(newcomer.pool)) {
      const PartnerIndex::Bucket& bucket = index[id];
      if (bucket.alone.empty() && bucket.sharing.empty()) continue;
      const Beside& terms = beside(id);
      if (!terms.fits) continue;
      const double least = least_left(terms);
      add_bucket(bucket, terms, least);
      for (const PartnerIndex::Sharing& entry : bucket.sharing) {
        const bool kept = entry.known.from != kNever;
        const SoloLeft found = kept ? entry.known : left(entry.job);
        if (!kept && entry.filed < now) entry.known = found;
        const double seconds = found.seconds(now);
        if (may_be_wanted(terms, seconds, least))
          add_single({entry.job, bucket.group.gpus}, terms, seconds);
      }
    }
    order_singles();
  }
  /// The same among these jobs only.
  template <class BesideOf, class LeftOf>
  void begin_with(const PartnerIndex& index, const Newcomer& newcomer, std::span<const JobId> jobs,
                  Time now, BesideOf&& beside, LeftOf&& left) {
    reset(newcomer, now);
    for (const JobId job : jobs) {
      if (!index.contains(job)) continue;
      const BucketId id = index.bucket_of(job);
      const Beside& terms = beside(id);
      if (!terms.fits) continue;
      const double seconds = left(job).seconds(now);
      if (may_be_wanted(terms, seconds, least_left(terms)))
        add_single({job, index[id].group.gpus}, terms, seconds);
    }
    order_singles();
  }
  /// Nothing: no more partners are worth it, or as many as wanted were named.
  [[nodiscard]] std::optional<Partner> next();

 private:
  /// By the rank; then equal sizes, which free their devices together; then the earlier job.
  struct Candidate {
    double rank = 0;
    bool other_size = false;
    Partner partner{};
    [[nodiscard]] bool comes_before(const Candidate& other) const noexcept;
  };
  struct Sized {
    JobId job;
    std::int32_t gpus = 1;
  };
  struct Stream {  // what is left of a bucket
    const PartnerIndex::Bucket* bucket = nullptr;
    Beside terms;
    PartnerIndex::ByFinish::const_iterator at;  // the best not taken yet
    PartnerIndex::ByFinish::const_iterator end;
    Candidate best{};
  };
  void reset(const Newcomer& newcomer, Time now);
  [[nodiscard]] double least_left(const Beside& terms) const noexcept;
  void add_bucket(const PartnerIndex::Bucket& bucket, const Beside& terms, double least);
  /// Cheaper than the averages: it is long enough, and not so long that others surely come before
  /// it. The average is at least half of what is left unless sharing makes somebody faster.
  [[nodiscard]] bool may_be_wanted(const Beside& terms, double left, double least) const noexcept {
    if (!(left > 0) || left < surely_below(least)) return false;
    return left / 2 <= limit_ || terms.slowdown.running < 1 || terms.slowdown.newcomer < 1;
  }
  // A little to either side of the threshold, so that rounding cannot skip a partner worth having.
  [[nodiscard]] static double surely_below(double least) noexcept {
    return least * (1 - 1e-6) - 1e-5;
  }
  [[nodiscard]] static double surely_above(double least) noexcept {
    return least * (1 + 1e-6) + 1e-5;
  }
  void add_single(const Sized& job, const Beside& terms, double left);
  void limit_rank(double rank) noexcept;
  void order_singles();
  [[nodiscard]] Candidate candidate(const Sized& job, const Beside& terms,
                                    double left) const noexcept;
  [[nodiscard]] bool look(Stream& stream) const;  // false: its next one is not worth it
  [[nodiscard]] bool advance(Stream& stream) const;

  Newcomer newcomer_;
  Time now_{};
  double limit_ = 0;  // as many as wanted have this rank or a lower one
  std::vector<Stream> streams_;
  std::vector<Candidate> singles_;  // a heap with the worst in front; then sorted, the best last
};

}  // namespace berth::bsbf
