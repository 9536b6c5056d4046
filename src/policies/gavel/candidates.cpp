#include "policies/gavel/candidates.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace berth::gavel {

namespace {

constexpr std::size_t kFirstChunk = 1024;  // entries
// Times the share: whoever was not served at all has no ratio of share to time. It goes before
// everybody who was, and among its like the larger share goes first.
constexpr double kNeverServed = 1e9;

/// Equal within 1e-9 is equal: shares come from a solver, and a last digit must not decide a turn
/// that the ties below are there for.
std::int64_t rounded(double value) noexcept { return std::llround(value * 1e9); }

}  // namespace

struct Candidates::Entry {
  std::int64_t priority = 0;  // these three larger first
  std::int64_t owed = 0;
  std::int64_t share = 0;
  JobId job;
  bool is_pair = false;
  double rate = 0;  // larger first
  std::uint32_t candidate = 0;
  std::uint32_t type = 0;

  friend bool operator<(const Entry& a, const Entry& b) noexcept {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.owed != b.owed) return a.owed > b.owed;
    if (a.share != b.share) return a.share > b.share;
    if (a.job != b.job) return a.job < b.job;
    if (a.is_pair != b.is_pair) return b.is_pair;
    if (a.rate != b.rate) return a.rate > b.rate;
    if (a.type != b.type) return a.type < b.type;
    return a.candidate < b.candidate;
  }
};

std::optional<std::uint32_t> Candidates::find_pair(JobId first, JobId second) const {
  for (std::uint32_t at = 0; at < candidates_.size(); ++at) {
    if (candidates_[at].job == first && candidates_[at].partner == second) return at;
  }
  return std::nullopt;
}

std::uint32_t Candidates::add(const Candidate& candidate) {
  const auto at = static_cast<std::uint32_t>(candidates_.size());
  candidates_.push_back(candidate);
  claims_.resize(claims_.size() + types_);
  if (candidate.partner) {
    ++pairs_;
    return at;
  }
  const std::size_t rows = candidate.job.value + std::size_t{1};
  if (rows > alone_.size()) alone_.resize(std::max(rows, 2 * alone_.size()));
  alone_[candidate.job] = at;
  return at;
}

void Candidates::remove_at(std::uint32_t at) {
  const std::size_t last = candidates_.size() - 1;
  if (candidates_[at].partner) --pairs_;
  candidates_[at] = candidates_[last];
  std::copy_n(claims_.begin() + static_cast<std::ptrdiff_t>(last * types_), types_,
              claims_.begin() + static_cast<std::ptrdiff_t>(at * types_));
  candidates_.pop_back();
  claims_.resize(last * types_);
  if (at < last && !candidates_[at].partner) alone_[candidates_[at].job] = at;
}

void Candidates::remove(JobId job) {
  remove_at(alone(job));
  // From the end: whoever takes a place that became free has been looked at already.
  for (std::size_t at = candidates_.size(); pairs_ > 0 && at-- > 0;) {
    const Candidate& other = candidates_[at];
    if (other.partner && (other.job == job || *other.partner == job))
      remove_at(static_cast<std::uint32_t>(at));
  }
}

void Candidates::remove_pairs() {
  for (std::size_t at = candidates_.size(); pairs_ > 0 && at-- > 0;) {
    if (candidates_[at].partner) remove_at(static_cast<std::uint32_t>(at));
  }
}

void Candidates::restart(double carry) {
  for (double& time : time_) time *= carry;
  for (Claim& claim : claims_) claim.received *= carry;
}

void Candidates::elapse(double seconds) {
  for (Claim& claim : claims_) claim.owed += claim.share * seconds;
}

void Candidates::receive(std::uint32_t at, PoolId pool, double seconds) {
  Claim& mine = claim(at, pool);
  mine.received += seconds;
  mine.owed -= seconds;
  time_[pool.value] += seconds;
}

double Candidates::priority(std::uint32_t at, PoolId pool) const noexcept {
  const Claim& mine = claim(at, pool);
  if (mine.share <= 0) return 0;
  if (mine.received <= 0) return mine.share * kNeverServed;
  return std::min(mine.share * time_[pool.value] / mine.received, mine.share * kNeverServed);
}

void Candidates::add_entries(std::uint32_t at, std::vector<Entry>& entries) const {
  const Candidate& candidate = candidates_[at];
  for (std::uint32_t type = 0; type < types_; ++type) {
    const Claim& mine = claim(at, PoolId{type});
    if (mine.rate <= 0 || (mine.share <= 0 && !mine.may_fill)) continue;
    entries.push_back({.priority = rounded(priority(at, PoolId{type})),
                       .owed = std::llround(mine.owed * 1e6),
                       .share = rounded(mine.share),
                       .job = candidate.job,
                       .is_pair = candidate.partner.has_value(),
                       .rate = mine.rate,
                       .candidate = at,
                       .type = type});
  }
}

std::vector<Pick> Candidates::choose(std::span<const std::int64_t> free,
                                     std::span<const Pick> kept) const {
  std::vector<Entry> entries;
  entries.reserve(claims_.size());
  for (std::uint32_t at = 0; at < candidates_.size(); ++at) add_entries(at, entries);
  std::vector<std::int64_t> left{free.begin(), free.end()};
  std::set<JobId> taken;
  std::vector<Pick> picks;
  const auto try_take = [&](const Pick& pick) {
    const Candidate& candidate = candidates_[pick.candidate];
    if (candidate.gpus > left[pick.pool.value] || taken.contains(candidate.job)) return;
    if (candidate.partner && taken.contains(*candidate.partner)) return;
    left[pick.pool.value] -= candidate.gpus;
    taken.insert(candidate.job);
    if (candidate.partner) taken.insert(*candidate.partner);
    picks.push_back(pick);
  };
  // Who still pays for its start was promised to go on: before everybody, whatever its priority.
  for (const Pick& pick : kept) try_take(pick);
  // Most rounds are full after the first few: only as much is put in order as is looked at. Who
  // needs no devices fits into a full round too.
  const bool all_need = std::ranges::all_of(candidates_, [](auto& one) { return one.gpus > 0; });
  const auto is_full = [&] {
    return all_need && std::ranges::all_of(left, [](std::int64_t gpus) { return gpus <= 0; });
  };
  std::size_t sorted = 0;
  for (std::size_t chunk = kFirstChunk; sorted < entries.size() && !is_full(); chunk *= 2) {
    const auto from = entries.begin() + static_cast<std::ptrdiff_t>(sorted);
    const auto to = from + static_cast<std::ptrdiff_t>(std::min(chunk, entries.size() - sorted));
    if (to != entries.end()) std::nth_element(from, to, entries.end());
    std::sort(from, to);
    for (auto entry = from; entry != to && !is_full(); ++entry)
      try_take({entry->candidate, PoolId{entry->type}});
    sorted += chunk;
  }
  return picks;
}

}  // namespace berth::gavel
