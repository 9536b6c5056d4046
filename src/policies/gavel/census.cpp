#include "policies/gavel/census.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "base/portable_math.h"

namespace berth::gavel {

namespace {

struct Key {
  KindId kind;
  std::uint32_t entity = 0;
  double weight = 1;
  std::int32_t first = 0;
  std::int32_t second = 0;
  std::uint32_t rank_bucket = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

/// Jobs are counted by hash, not sorted: a computation looks at all of them.
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::uint64_t hash = (std::uint64_t{key.kind.value} << 32U) | key.entity;
    const auto mix = [&](std::uint64_t word) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 29U;
    };
    mix(std::bit_cast<std::uint64_t>(key.weight));
    mix((std::uint64_t{std::bit_cast<std::uint32_t>(key.first)} << 32U) |
        std::bit_cast<std::uint32_t>(key.second));
    mix(key.rank_bucket);
    return static_cast<std::size_t>(hash);
  }
};

constexpr std::int32_t kNothing = std::numeric_limits<std::int32_t>::min();
constexpr double kFinest = 16;    // buckets per octave at first
constexpr int kMostHalvings = 8;  // then everything is in one

std::int32_t bucket(double value) {
  if (value <= 0) return kNothing;
  constexpr double kLog2 = 0.6931471805599453;
  return static_cast<std::int32_t>(std::floor(portable_log(value) / kLog2 * kFinest));
}

Key key_of(const JobFacts& job) {
  return {.kind = job.kind,
          .entity = job.entity,
          .weight = job.weight,
          .first = bucket(job.first),
          .second = bucket(job.second),
          .rank_bucket = job.rank};
}

/// The key after one more halving: buckets twice as wide, four ranks in one.
Key coarser(Key key, int halvings) {
  const auto halve = [&](std::int32_t& at) {
    if (at != kNothing) at = halvings == kMostHalvings ? 0 : at >> 1;
  };
  halve(key.first);
  halve(key.second);
  key.rank_bucket /= 4;
  return key;
}

/// Distinct keys in order of appearance, and for everything that has a key which it is.
struct Census {
  std::vector<Key> keys;
  std::vector<std::uint32_t> of;

  template <class KeyAt>
  static Census take(std::size_t count, KeyAt&& key_at) {
    Census census;
    std::unordered_map<Key, std::uint32_t, KeyHash> known;  // lookup only
    for (std::size_t i = 0; i < count; ++i) {
      const Key key = key_at(i);
      const auto [entry, is_new] =
          known.try_emplace(key, static_cast<std::uint32_t>(census.keys.size()));
      if (is_new) census.keys.push_back(key);
      census.of.push_back(entry->second);
    }
    return census;
  }
};

void take_means(std::span<const JobFacts> jobs, JobClass& one) {
  const auto count = static_cast<double>(one.members.size());
  for (const std::uint32_t at : one.members) {
    one.first += jobs[at].first / count;
    one.second += jobs[at].second / count;
    one.rank += jobs[at].rank / count;
  }
}

}  // namespace

std::vector<JobClass> group_jobs(std::span<const JobFacts> jobs, std::size_t most) {
  // Only the first census looks at jobs; coarser ones merge the keys found, so that all tries
  // together cost O(J).
  Census census = Census::take(jobs.size(), [&](std::size_t i) { return key_of(jobs[i]); });
  for (int halvings = 1; census.keys.size() > most && halvings <= kMostHalvings; ++halvings) {
    const Census fewer = Census::take(
        census.keys.size(), [&](std::size_t i) { return coarser(census.keys[i], halvings); });
    for (std::uint32_t& at : census.of) at = fewer.of[at];
    census.keys = fewer.keys;
  }
  // By key, not by appearance: the program must not depend on who came first.
  std::vector<std::uint32_t> order(census.keys.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t at) { return census.keys[at]; });
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<JobClass> classes(order.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) classes[place[census.of[i]]].members.push_back(i);
  for (JobClass& one : classes) {
    std::ranges::sort(one.members, {},
                      [&](std::uint32_t at) { return std::tuple(jobs[at].rank, jobs[at].job); });
    take_means(jobs, one);
  }
  return classes;
}

std::vector<JobClass> one_by_one(std::span<const JobFacts> jobs) {
  std::vector<JobClass> classes(jobs.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    classes[i].members = {i};
    take_means(jobs, classes[i]);
  }
  return classes;
}

}  // namespace berth::gavel
