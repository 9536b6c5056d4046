#include "policies/muri/grouping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "solve/matching.h"

namespace berth::muri {

namespace {

using Members = std::array<std::uint32_t, kMaxInterleaved>;

Members members_of_both(const Group& a, const Group& b) {
  Members members{};
  std::ranges::merge(a.members(), b.members(), members.begin());
  return members;
}

bool fits_in_memory(std::span<const Candidate> candidates, std::span<const std::uint32_t> members) {
  std::int64_t needed = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::uint32_t member : members) {
    const Candidate& job = candidates[member];
    needed += job.memory_mib;
    if (job.device_memory_mib > 0) least = std::min(least, job.device_memory_mib);
  }
  return needed <= least;
}

/// What sharing would give, or nothing if it is not allowed or loses throughput.
std::optional<Interleaving> merged(std::span<const Candidate> candidates, const Group& a,
                                   const Group& b, const InterleaveOverhead& overhead) {
  const std::size_t jobs = a.members().size() + b.members().size();
  if (jobs > kMaxInterleaved) return std::nullopt;
  const Members members = members_of_both(a, b);
  if (!fits_in_memory(candidates, {members.data(), jobs})) return std::nullopt;
  std::array<StageTimes, kMaxInterleaved> stages;
  for (std::size_t i = 0; i < jobs; ++i) stages[i] = candidates[members[i]].stages;
  const std::span<const StageTimes> all{stages.data(), jobs};
  const Interleaving best = best_interleaving(all);
  if (loses_throughput(all, best.seconds * overhead.of(jobs))) return std::nullopt;
  return best;
}

std::int64_t weight_of(double efficiency) {
  constexpr double kSteps = 1e9;
  return std::llround(efficiency * kSteps);
}

/// Nobody could tell these groups apart: a trace without models has only such ones.
bool all_alike(std::span<const Candidate> candidates, std::span<const Group> groups) {
  const Candidate& one = candidates[groups.front().member[0]];
  const std::size_t jobs = groups.front().members().size();
  const auto is_like_it = [&](std::uint32_t member) {
    const Candidate& job = candidates[member];
    return job.stages == one.stages && job.memory_mib == one.memory_mib &&
           job.device_memory_mib == one.device_memory_mib;
  };
  return std::ranges::all_of(groups, [&](const Group& group) {
    return group.members().size() == jobs && std::ranges::all_of(group.members(), is_like_it);
  });
}

/// Of equal pairs as many as there can be are the best; those next to each other in policy order.
std::vector<Merge> match_neighbours(std::span<const Candidate> candidates,
                                    std::span<const Group> groups,
                                    const InterleaveOverhead& overhead) {
  std::vector<Merge> merges;
  const auto both = merged(candidates, groups[0], groups[1], overhead);
  if (!both || weight_of(both->efficiency) <= 0) return merges;
  for (std::uint32_t i = 0; i + 1 < groups.size(); i += 2) merges.push_back({i, i + 1, *both});
  return merges;
}

/// Jobs that look alike: each stage in quarters of the iteration, its length in half octaves.
using JobClass = std::array<std::int32_t, kStages + 1>;

JobClass class_of(const StageTimes& stages) {
  JobClass result{};
  const double length = iteration_of(stages);
  if (length <= 0) return result;
  for (std::size_t i = 0; i < kStages; ++i)
    result[i] = static_cast<std::int32_t>(std::lround(stages[i] / length * 4));
  int exponent = 0;
  const double mantissa = std::frexp(length, &exponent);  // 0.5 to 1
  result[kStages] = 2 * exponent + (mantissa > 0.7071 ? 1 : 0);
  return result;
}

/// The groups of one class, in policy order; `next` are those already matched.
struct ClassRow {
  std::vector<std::uint32_t> groups;
  std::size_t next = 0;
  [[nodiscard]] std::size_t left() const noexcept { return groups.size() - next; }
};

std::vector<ClassRow> classes_of(std::span<const Candidate> candidates,
                                 std::span<const Group> groups) {
  constexpr std::uint32_t kNoMember = std::numeric_limits<std::uint32_t>::max();
  std::map<JobClass, std::uint32_t> job_classes;
  std::map<Members, std::size_t> row_of;  // by the classes of the members, rising
  std::vector<ClassRow> rows;
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    Members key;
    key.fill(kNoMember);
    for (std::size_t j = 0; j < groups[i].members().size(); ++j) {
      const JobClass job = class_of(candidates[groups[i].member[j]].stages);
      const auto next = static_cast<std::uint32_t>(job_classes.size());
      key[j] = job_classes.try_emplace(job, next).first->second;
    }
    std::ranges::sort(key);
    const auto [entry, is_new] = row_of.try_emplace(key, rows.size());
    if (is_new) rows.emplace_back();
    rows[entry->second].groups.push_back(i);
  }
  return rows;  // in order of their first group
}

struct ClassPair {
  double efficiency = 0;
  std::size_t a = 0;
  std::size_t b = 0;
};

/// Every pair of classes that gains, the most efficient first, judged by the first group of each
/// (the first two of one class).
std::vector<ClassPair> pairs_of_classes(std::span<const Candidate> candidates,
                                        std::span<const Group> groups,
                                        std::span<const ClassRow> rows,
                                        const InterleaveOverhead& overhead) {
  std::vector<ClassPair> pairs;
  for (std::size_t a = 0; a < rows.size(); ++a) {
    for (std::size_t b = a; b < rows.size(); ++b) {
      if (a == b && rows[a].groups.size() < 2) continue;
      const std::uint32_t other = a == b ? rows[a].groups[1] : rows[b].groups[0];
      if (const auto found = merged(candidates, groups[rows[a].groups[0]], groups[other], overhead))
        pairs.push_back({found->efficiency, a, b});
    }
  }
  std::ranges::sort(pairs, [](const ClassPair& x, const ClassPair& y) {
    return std::tuple(-x.efficiency, x.a, x.b) < std::tuple(-y.efficiency, y.a, y.b);
  });
  return pairs;
}

Group alone(std::span<const Candidate> candidates, std::uint32_t position) {
  const Candidate& job = candidates[position];
  return {.member = {position},
          .bucket = job.bucket,
          .gpus = job.gpus,
          .interleaving = best_interleaving({&job.stages, 1})};
}

/// The current groups, and by bucket which of them it has.
struct Round {
  std::vector<Group> groups;
  std::vector<Merge> merges;  // of all buckets
};

void match_bucket(std::span<const Candidate> candidates, const std::vector<std::uint32_t>& here,
                  const GroupingOptions& options, Round& round) {
  if (here.size() < 2) return;
  std::vector<Group> groups;
  for (const std::uint32_t at : here) groups.push_back(round.groups[at]);
  const auto found = groups.size() <= options.exact_limit
                         ? match_exactly(candidates, groups, options.overhead)
                         : match_by_class(candidates, groups, options.overhead);
  for (const Merge& merge : found)
    round.merges.push_back({here[merge.a], here[merge.b], merge.interleaving});
}

void match_all_buckets(std::span<const Candidate> candidates, const GroupingOptions& options,
                       Round& round) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> buckets;
  for (std::uint32_t i = 0; i < round.groups.size(); ++i)
    buckets[round.groups[i].bucket].push_back(i);
  round.merges.clear();
  for (const auto& [bucket, here] : buckets) match_bucket(candidates, here, options, round);
  std::ranges::sort(round.merges, [](const Merge& x, const Merge& y) {
    return std::tuple(-x.interleaving.efficiency, x.a) <
           std::tuple(-y.interleaving.efficiency, y.a);
  });
}

/// Carries merges out, the most efficient first, until what is needed fits.
std::int64_t merge_until_it_fits(Round& round, std::int64_t needed, std::int64_t gpus) {
  std::vector<bool> is_gone(round.groups.size());
  for (const Merge& merge : round.merges) {
    if (needed <= gpus) break;
    Group& group = round.groups[merge.a];
    group.member = members_of_both(group, round.groups[merge.b]);
    group.interleaving = merge.interleaving;
    is_gone[merge.b] = true;
    needed -= group.gpus;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < round.groups.size(); ++i) {
    if (!is_gone[i]) round.groups[kept++] = round.groups[i];
  }
  round.groups.resize(kept);
  return needed;
}

}  // namespace

std::size_t admitted(std::span<const Candidate> candidates, std::int64_t gpus) {
  std::int64_t sum = 0;
  std::size_t count = 0;
  for (const Candidate& candidate : candidates) {
    sum += candidate.gpus;
    if (sum > static_cast<std::int64_t>(kMaxInterleaved) * gpus) break;
    ++count;
  }
  return count;
}

std::vector<Merge> match_exactly(std::span<const Candidate> candidates,
                                 std::span<const Group> groups,
                                 const InterleaveOverhead& overhead) {
  if (groups.size() > 1 && all_alike(candidates, groups))
    return match_neighbours(candidates, groups, overhead);
  std::vector<MatchingEdge> edges;
  for (std::uint32_t a = 0; a < groups.size(); ++a) {
    for (std::uint32_t b = a + 1; b < groups.size(); ++b) {
      if (const auto both = merged(candidates, groups[a], groups[b], overhead))
        edges.push_back({static_cast<int>(a), static_cast<int>(b), weight_of(both->efficiency)});
    }
  }
  const std::vector<int> partner = max_weight_matching(static_cast<int>(groups.size()), edges);
  std::vector<Merge> merges;
  for (std::uint32_t a = 0; a < groups.size(); ++a) {
    if (partner[a] == kUnmatched || partner[a] < static_cast<int>(a)) continue;
    const auto b = static_cast<std::uint32_t>(partner[a]);
    merges.push_back({a, b, *merged(candidates, groups[a], groups[b], overhead)});
  }
  return merges;
}

std::vector<Merge> match_by_class(std::span<const Candidate> candidates,
                                  std::span<const Group> groups,
                                  const InterleaveOverhead& overhead) {
  std::vector<ClassRow> rows = classes_of(candidates, groups);
  std::vector<Merge> merges;
  for (const ClassPair& pair : pairs_of_classes(candidates, groups, rows, overhead)) {
    ClassRow& first = rows[pair.a];
    ClassRow& second = rows[pair.b];
    while (pair.a == pair.b ? first.left() >= 2 : first.left() > 0 && second.left() > 0) {
      const std::uint32_t x = first.groups[first.next++];
      const std::uint32_t y = second.groups[second.next++];
      // Alike is not equal: those that lose after all stay alone.
      if (const auto both = merged(candidates, groups[x], groups[y], overhead))
        merges.push_back({std::min(x, y), std::max(x, y), *both});
    }
  }
  return merges;
}

std::vector<Group> group_jobs(std::span<const Candidate> candidates, std::int64_t gpus,
                              const GroupingOptions& options) {
  constexpr int kRounds = 2;  // log2 of four: pairs, then pairs of pairs
  Round round;
  std::int64_t needed = 0;
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    round.groups.push_back(alone(candidates, i));
    needed += candidates[i].gpus;
  }
  for (int i = 0; i < kRounds && needed > gpus; ++i) {
    match_all_buckets(candidates, options, round);
    needed = merge_until_it_fits(round, needed, gpus);
  }
  std::ranges::sort(round.groups, {}, [](const Group& group) { return group.member[0]; });
  return round.groups;
}

}  // namespace berth::muri
