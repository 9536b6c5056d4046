#include "policies/gavel/census.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>

#include "base/portable_math.h"

namespace berth::gavel {

namespace {

/// How fine the buckets are; each next one is half as fine.
struct Grain {
  double per_octave = 16;  // below 1/8: everything in one bucket
  std::uint32_t rank_step = 1;
  [[nodiscard]] bool is_coarsest() const noexcept { return per_octave < 0.125; }
  [[nodiscard]] Grain next() const noexcept { return {per_octave / 2, rank_step * 4}; }
};

struct Key {
  std::uint32_t kind = 0;
  std::uint32_t entity = 0;
  double weight = 1;
  std::int32_t first = 0;
  std::int32_t second = 0;
  std::uint32_t rank_bucket = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Keyed {
  Key key;
  std::uint32_t rank = 0;
  JobId job;
  std::uint32_t at = 0;
};

std::int32_t bucket(double value, const Grain& grain) {
  if (value <= 0) return std::numeric_limits<std::int32_t>::min();
  if (grain.is_coarsest()) return 0;
  constexpr double kLog2 = 0.6931471805599453;
  return static_cast<std::int32_t>(std::floor(portable_log(value) / kLog2 * grain.per_octave));
}

bool comes_before(const Keyed& a, const Keyed& b) {
  if (const auto order = a.key <=> b.key; order != 0) return order < 0;
  return a.rank != b.rank ? a.rank < b.rank : a.job < b.job;
}

std::vector<Keyed> sorted_keys(std::span<const JobFacts> jobs, const Grain& grain) {
  std::vector<Keyed> keys;
  keys.reserve(jobs.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobFacts& job = jobs[i];
    keys.push_back({.key = {.kind = job.kind,
                            .entity = job.entity,
                            .weight = job.weight,
                            .first = bucket(job.first, grain),
                            .second = bucket(job.second, grain),
                            .rank_bucket = job.rank / grain.rank_step},
                    .rank = job.rank,
                    .job = job.job,
                    .at = i});
  }
  std::sort(keys.begin(), keys.end(), comes_before);
  return keys;
}

std::size_t count_classes(std::span<const Keyed> keys) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < keys.size(); ++i)
    count += i == 0 || keys[i].key != keys[i - 1].key ? 1U : 0U;
  return count;
}

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
  Grain grain;
  std::vector<Keyed> keys = sorted_keys(jobs, grain);
  while (count_classes(keys) > most && !grain.is_coarsest()) {
    grain = grain.next();
    keys = sorted_keys(jobs, grain);
  }
  std::vector<JobClass> classes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i == 0 || keys[i].key != keys[i - 1].key) classes.emplace_back();
    classes.back().members.push_back(keys[i].at);
  }
  for (JobClass& one : classes) take_means(jobs, one);
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
