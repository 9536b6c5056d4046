#include "policies/shockwave/window.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>
#include <utility>

#include "base/portable_math.h"

namespace berth::shockwave {

double WindowJob::progress_after(std::int32_t rounds) const noexcept {
  const double part = std::min(1.0, static_cast<double>(rounds) / left_rounds);
  return std::max(kLeastProgress, progress + (1 - progress) * part);
}

double value_of(std::span<const WindowJob> jobs, std::span<const std::int32_t> rounds,
                const WindowRule& rule) {
  if (jobs.empty()) return 0;
  double welfare = 0;
  double longest = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    welfare += jobs[i].weight * portable_log(jobs[i].progress_after(rounds[i]));
    longest = std::max(longest, jobs[i].left_rounds - rounds[i]);
  }
  const double window = rule.rounds;
  return welfare / (static_cast<double>(jobs.size()) * window) -
         rule.makespan_weight * longest / window;
}

namespace {

constexpr int kMostPasses = 5;
constexpr std::size_t kSmall = 500;      // job-rounds: up to here every makespan tried is improved
constexpr std::size_t kTries = 16;       // makespans tried in a look, the next one is closer
constexpr std::size_t kTriesOfMany = 4;  // of these for more jobs than are swapped
constexpr int kLooks = 3;

class Dealer {
 public:
  Dealer(std::span<const WindowJob> jobs, std::int64_t gpus, const WindowRule& rule)
      : jobs_(jobs), gpus_(gpus), rule_(rule) {}

  /// Nobody needs more than `longest` rounds after the window. False: that cannot be.
  bool deal(double longest) {
    free_.assign(static_cast<std::size_t>(rule_.rounds), gpus_);
    first_free_ = 0;
    runs_.assign(jobs_.size() * free_.size(), false);
    counts_.assign(jobs_.size(), 0);
    if (!deal_needed(longest)) return false;
    deal_rest();
    return true;
  }
  void improve();
  [[nodiscard]] double value() const { return value_of(jobs_, counts_, rule_); }
  [[nodiscard]] Window window() const;

 private:
  [[nodiscard]] std::int32_t most(std::size_t job) const {
    return std::min(rule_.rounds, static_cast<std::int32_t>(std::ceil(jobs_[job].left_rounds)));
  }
  /// What its welfare rises by with one round more than `rounds`.
  [[nodiscard]] double gain(std::size_t job, std::int32_t rounds) const {
    const WindowJob& one = jobs_[job];
    return one.weight * portable_log(one.progress_after(rounds + 1) / one.progress_after(rounds));
  }
  [[nodiscard]] std::vector<bool>::reference runs(std::size_t job, std::size_t round) {
    return runs_[job * free_.size() + round];
  }
  void set(std::size_t job, std::size_t round, bool on) {
    runs(job, round) = on;
    free_[round] += on ? -jobs_[job].gpus : jobs_[job].gpus;
    counts_[job] += on ? 1 : -1;
    if (!on) first_free_ = std::min(first_free_, round);
  }
  bool give(std::size_t job) {
    while (first_free_ < free_.size() && free_[first_free_] == 0) ++first_free_;
    for (std::size_t round = first_free_; round < free_.size(); ++round) {
      if (runs(job, round) || free_[round] < jobs_[job].gpus) continue;
      set(job, round, true);
      return true;
    }
    return false;
  }
  bool deal_needed(double longest);
  void deal_rest();
  void list_leavers(std::size_t round);
  bool improve(std::size_t job, std::size_t round);

  std::span<const WindowJob> jobs_;
  std::int64_t gpus_;
  const WindowRule& rule_;
  std::vector<std::int64_t> free_;  // GPUs by round
  std::size_t first_free_ = 0;      // rounds before it are full
  std::vector<bool> runs_;          // by job, round
  std::vector<std::int32_t> counts_;
  std::vector<std::int32_t> needed_;
  std::vector<std::tuple<double, std::size_t>> leavers_;  // scratch
};

bool Dealer::deal_needed(double longest) {
  needed_.assign(jobs_.size(), 0);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const double rounds = std::ceil(jobs_[i].left_rounds - longest - 1e-9);
    if (rounds > rule_.rounds) return false;
    needed_[i] = std::max(0, static_cast<std::int32_t>(rounds));
    if (needed_[i] > 0) order.push_back(i);
  }
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::tuple(-needed_[i], -jobs_[i].gpus, i); });
  for (const std::size_t job : order) {
    while (counts_[job] < needed_[job])
      if (!give(job)) return false;
  }
  return true;
}

void Dealer::deal_rest() {
  struct Wish {
    double per_gpu;
    std::size_t job;
    bool operator<(const Wish& other) const {
      return std::tuple(per_gpu, other.job) < std::tuple(other.per_gpu, job);
    }
  };
  std::priority_queue<Wish> wishes;
  const auto wish = [&](std::size_t job) {
    if (jobs_[job].gpus <= gpus_ && counts_[job] < most(job))
      wishes.push({gain(job, counts_[job]) / jobs_[job].gpus, job});
  };
  for (std::size_t i = 0; i < jobs_.size(); ++i) wish(i);
  while (!wishes.empty()) {
    const std::size_t job = wishes.top().job;
    wishes.pop();
    if (give(job)) wish(job);
  }
}

/// Who may leave a round, those who lose least per GPU first.
void Dealer::list_leavers(std::size_t round) {
  leavers_.clear();
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    if (runs(job, round) && counts_[job] > needed_[job])
      leavers_.emplace_back(gain(job, counts_[job] - 1) / jobs_[job].gpus, job);
  }
  std::ranges::sort(leavers_);
}

/// They make room for a job in a round if it gains more than they lose.
bool Dealer::improve(std::size_t job, std::size_t round) {
  if (runs(job, round) || counts_[job] >= most(job) || jobs_[job].gpus > gpus_) return false;
  const double gained = gain(job, counts_[job]);
  std::int64_t room = free_[round];
  double lost = 0;
  std::size_t leave = 0;
  for (; leave < leavers_.size() && room < jobs_[job].gpus && lost < gained; ++leave) {
    const auto [per_gpu, other] = leavers_[leave];
    room += jobs_[other].gpus;
    lost += per_gpu * jobs_[other].gpus;
  }
  if (room < jobs_[job].gpus || gained <= lost * (1 + 1e-9) + 1e-12) return false;
  for (std::size_t i = 0; i < leave; ++i) set(std::get<1>(leavers_[i]), round, false);
  set(job, round, true);
  return true;
}

void Dealer::improve() {
  for (int pass = 0; pass < kMostPasses; ++pass) {
    bool changed = false;
    for (std::size_t round = 0; round < free_.size(); ++round) {
      list_leavers(round);
      for (std::size_t job = 0; job < jobs_.size(); ++job) {
        if (!improve(job, round)) continue;
        changed = true;
        list_leavers(round);
      }
    }
    if (!changed) return;
    deal_rest();
  }
}

/// Any order of the rounds is worth the same: those whose jobs gain most by their first one lead.
Window Dealer::window() const {
  Window window{.rounds = {}, .counts = counts_, .value = value()};
  std::vector<std::tuple<double, std::size_t>> order;
  for (std::size_t round = 0; round < free_.size(); ++round) {
    double urgency = 0;
    for (std::size_t job = 0; job < jobs_.size(); ++job)
      if (runs_[job * free_.size() + round]) urgency += gain(job, 0);
    order.emplace_back(-urgency, round);
  }
  std::ranges::sort(order);
  for (const auto& [urgency, round] : order) {
    auto& chosen = window.rounds.emplace_back();
    for (std::uint32_t job = 0; job < jobs_.size(); ++job)
      if (runs_[job * free_.size() + round]) chosen.push_back(job);
  }
  return window;
}

/// What the longest run after the window may be: the run of some job less whole rounds. Falling.
std::vector<double> shorter_makespans(std::span<const WindowJob> jobs, double longest,
                                      std::int32_t rounds) {
  std::vector<double> all;
  for (const WindowJob& job : jobs) {
    // Fewer rounds than these leave it above the longest there is, more below what can be reached.
    const double fewest = std::max(0.0, std::floor(job.left_rounds - longest));
    for (auto n = static_cast<std::int32_t>(fewest); n <= rounds; ++n) {
      const double left = std::max(0.0, job.left_rounds - n);
      if (left < longest - rounds) break;
      if (left < longest - 1e-9) all.push_back(left);
      if (left <= 0) break;
    }
  }
  std::ranges::sort(all, std::ranges::greater{});
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// The best window found. A shorter makespan costs welfare: some of them are tried, then some of
/// those between the neighbours of the best, and so on. The value rises and falls in between, so a
/// few tries in vain say nothing about the next.
class Search {
 public:
  Search(std::span<const WindowJob> jobs, std::int64_t gpus, const WindowRule& rule)
      : dealer_(jobs, gpus, rule),
        may_improve_(jobs.size() <= rule.swap_jobs),
        is_small_(jobs.size() * static_cast<std::size_t>(rule.rounds) <= kSmall) {}

  bool attempt(double longest) {
    if (!dealer_.deal(longest)) return false;
    if (may_improve_ && is_small_) dealer_.improve();
    return keep_if_better(longest);
  }
  void attempt_some(std::span<const double> targets) {
    const std::size_t tries = may_improve_ ? kTries : kTriesOfMany;
    for (int look = 0; look < kLooks && !targets.empty(); ++look) {
      const std::size_t step = std::max<std::size_t>(1, targets.size() / tries);
      std::size_t centre = 0;
      for (std::size_t i = step - 1; i < targets.size(); i += step)
        if (attempt(targets[i])) centre = i;
      if (step == 1) return;
      const std::size_t first = centre - std::min(centre, step - 1);
      targets = targets.subspan(first, std::min(targets.size(), centre + step) - first);
    }
  }
  [[nodiscard]] Window finish() {
    if (may_improve_ && !is_small_ && dealer_.deal(longest_)) {
      dealer_.improve();
      keep_if_better(longest_);
    }
    return std::move(best_);
  }

 private:
  bool keep_if_better(double longest) {
    if (!best_.rounds.empty() && dealer_.value() <= best_.value) return false;
    best_ = dealer_.window();
    longest_ = longest;
    return true;
  }

  Dealer dealer_;
  bool may_improve_, is_small_;
  Window best_;
  double longest_ = 0;
};

}  // namespace

Window plan_window(std::span<const WindowJob> jobs, std::int64_t gpus, const WindowRule& rule) {
  double longest = 0;
  for (const WindowJob& job : jobs) longest = std::max(longest, job.left_rounds);
  Search search{jobs, gpus, rule};
  search.attempt(longest);
  search.attempt_some(shorter_makespans(jobs, longest, rule.rounds));
  return search.finish();
}

}  // namespace berth::shockwave
