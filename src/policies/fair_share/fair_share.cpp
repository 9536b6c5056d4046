#include "policies/fair_share/fair_share.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/common/aging.h"
#include "policies/common/backfill_queues.h"
#include "policies/common/reservation.h"
#include "policies/common/victims.h"
#include "policies/fair_share/accounts.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/groups.h"
#include "policies/kit/pass.h"

namespace berth {
namespace fair_share {

enum class SizeRule : std::uint8_t { Neutral, Small, Large };      // which gangs go first
enum class Preempt : std::uint8_t { Off, Priority, Share, Both };  // by what a job takes GPUs

struct Options {
  Accounts::Options accounts{};
  Preempt preempt = Preempt::Off;
  Duration min_run = std::chrono::minutes{10};
  double margin = 0.25;
  Aging aging{};
  SizeRule size = SizeRule::Neutral;

  [[nodiscard]] bool by_priority() const noexcept {
    return preempt == Preempt::Priority || preempt == Preempt::Both;
  }
  [[nodiscard]] bool by_share() const noexcept {
    return preempt == Preempt::Share || preempt == Preempt::Both;
  }
};

namespace {

/// The order of accounts is looked at again no more often than this.
constexpr Duration kPatience = std::chrono::seconds{1};

bool contains(const std::vector<PoolId>& pools, PoolId pool) {
  return std::ranges::find(pools, pool) != pools.end();
}

void keep_earlier(std::optional<Time>& first, std::optional<Time> at) {
  if (at && (!first || *at < *first)) first = at;
}

}  // namespace

class FairShare final : public Policy {
 public:
  explicit FairShare(const Options& options) : options_(options), accounts_(options.accounts) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "fair-share"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime, .preempts = true, .shares_by_use = options_.accounts.half_life};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_entitlements(const View& view, const Entitlements& entitlements) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_rate(const View&, JobId job) override { reservation_.ends().has_changed(job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

  /// Shares and use from before: to be set before the first job comes.
  [[nodiscard]] Accounts& accounts() noexcept { return accounts_; }

 private:
  /// Jobs that are alike but for their estimates.
  struct Alike {
    std::int32_t priority = 0;
    AccountId leaf = 0;
    ShapeId shape;
    friend auto operator<=>(const Alike&, const Alike&) = default;
  };
  struct Rank {  // smaller first
    std::int64_t priority = 0;
    double top = 0, leaf = 0;
    std::int32_t size = 0;
    JobId job;
    friend bool operator<(const Rank& a, const Rank& b) noexcept {
      return std::tie(a.priority, a.top, a.leaf, a.size, a.job) <
             std::tie(b.priority, b.top, b.leaf, b.size, b.job);
    }
  };
  struct Candidate {
    JobId job;
    GroupId group;
    PoolId pool;
    Rank rank;
  };
  struct Fresh {
    JobId job;
    Time at;
  };

  [[nodiscard]] GroupId group_of(const View& view, JobId job) {
    return groups_.of({view.request(job).priority, leaf_[job], view.jobs.shape[job]});
  }
  void wait(const View& view, JobId job) {
    waiting_.push(group_of(view, job), job, view.estimated_left(job));
  }
  void hold(const View& view, const Plan& plan, JobId job);
  void let_go(const View& view, JobId job);
  void charge_adopted(const View& view);

  [[nodiscard]] std::int32_t effective_class(const View& view, JobId job) const noexcept {
    return options_.aging.class_of(view, job, view.now);
  }
  [[nodiscard]] Rank rank_of(const View& view, GroupId group, JobId job) const;
  [[nodiscard]] std::optional<GroupId> first_group(const View& view) const;

  [[nodiscard]] bool start_first(const View& view, Plan& plan, GroupId group);
  [[nodiscard]] bool has_room_for_any(const View& view) const;
  void backfill(const View& view, Plan& plan, GroupId head);
  [[nodiscard]] std::optional<Candidate> next_candidate(const View& view) const;

  [[nodiscard]] bool preempts() const noexcept { return options_.preempt != Preempt::Off; }
  [[nodiscard]] static bool is_preemptible(const View& view, JobId job);
  [[nodiscard]] Accounts::Lead lead_over(const View& view, JobId job, JobId victim) const;
  [[nodiscard]] bool may_take(const View& view, JobId job, JobId victim) const;
  void find_victims(const View& view, const Plan& plan, JobId job);
  [[nodiscard]] bool try_preempt(const View& view, Plan& plan, JobId job);

  [[nodiscard]] std::optional<Time> takes_at(const View& view, JobId job, JobId victim) const;
  [[nodiscard]] std::optional<Time> next_taking(const View& view, JobId job) const;
  [[nodiscard]] std::optional<Time> next_overtaking(const View& view, GroupId head) const;

  Options options_;
  Accounts accounts_;
  Column<JobId, AccountId> leaf_;
  Groups<Alike> groups_;
  BackfillQueues<GroupId> waiting_;
  Reservation reservation_;
  RunningJobs running_;                     // one group
  std::vector<JobId> holders_;              // in no order
  Column<JobId, std::uint32_t> holder_at_;  // in holders_
  std::vector<Fresh> fresh_;                // started by the last pass
  std::vector<JobId> evicted_;              // in this pass: they may start again, not by preempting
  std::vector<JobId> candidates_;           // scratch: victims, first to give way first
  RoomMaker room_;                          // scratch
  BlockedSet<GroupId> blocked_;             // scratch of a backfill
};

void FairShare::begin(const View& view) {
  running_.begin(1, view.cluster.pools(), view.jobs.size());
  reservation_.begin(view);
  leaf_.resize(view.jobs.size());
  holder_at_.resize(view.jobs.size());
}

// --- who waits

void FairShare::on_arrival(const View& view, JobId job) {
  accounts_.settle(view.now);
  const JobRequest& request = view.request(job);
  leaf_[job] = accounts_.leaf(view.text(request.user), view.text(request.group));
  wait(view, job);
}

void FairShare::on_entitlements(const View& view, const Entitlements& entitlements) {
  accounts_.settle(view.now);
  std::map<std::string, double, std::less<>> shares;
  for (const auto& [who, own] : entitlements.shares) shares[who] = own;
  accounts_.set_shares(std::move(shares));
  for (const auto& [user, group, gpu_seconds] : entitlements.uses)
    accounts_.add_use(accounts_.leaf(user, group), gpu_seconds);
}

void FairShare::on_departure(const View& view, JobId job) {
  if (running_.contains(job)) {
    let_go(view, job);
  } else {
    waiting_.forget(group_of(view, job), job);
  }
}

void FairShare::on_requeue(const View& view, JobId job) {
  let_go(view, job);
  wait(view, job);
}

// --- who holds devices

void FairShare::hold(const View& view, const Plan& plan, JobId job) {
  const PoolId pool = plan.pool_of(job);
  accounts_.hold(leaf_[job], view.gpus(job));
  reservation_.ends().add(view, pool, job);
  running_.add(0, pool, {.priority = effective_class(view, job), .started = view.now, .job = job},
               view.gpus(job));
  holder_at_[job] = static_cast<std::uint32_t>(holders_.size());
  holders_.push_back(job);
  fresh_.push_back({job, view.now});
}

void FairShare::let_go(const View& view, JobId job) {
  accounts_.settle(view.now);
  accounts_.hold(leaf_[job], -std::int64_t{view.gpus(job)});
  reservation_.ends().remove(job);
  if (running_.contains(job)) running_.remove(job);
  const std::uint32_t at = holder_at_[job];
  holders_[at] = holders_.back();
  holder_at_[holders_[at]] = at;
  holders_.pop_back();
}

/// A job that ran before this policy knew it has used its devices since then.
void FairShare::charge_adopted(const View& view) {
  for (const auto& [job, at] : fresh_) {
    if (!running_.contains(job) || view.jobs.held_from[job] >= at) continue;
    accounts_.charge(leaf_[job], view.gpus(job), view.jobs.held_from[job], at);
  }
  fresh_.clear();
}

// --- order

FairShare::Rank FairShare::rank_of(const View& view, GroupId group, JobId job) const {
  const Alike& key = groups_[group];
  const std::int32_t gpus = view.shapes[key.shape].gpus;
  return {.priority = -std::int64_t{effective_class(view, job)},
          .top = accounts_.standing(accounts_.top(key.leaf)),
          .leaf = accounts_.standing(key.leaf),
          .size = options_.size == SizeRule::Neutral ? 0
                  : options_.size == SizeRule::Small ? gpus
                                                     : -gpus,
          .job = job};
}

std::optional<GroupId> FairShare::first_group(const View& view) const {
  std::optional<GroupId> first;
  Rank best;
  for (const GroupId group : waiting_.active()) {
    const Rank rank = rank_of(view, group, waiting_.first(group));
    if (first && !(rank < best)) continue;
    first = group;
    best = rank;
  }
  return first;
}

// --- the pass

bool FairShare::start_first(const View& view, Plan& plan, GroupId group) {
  const JobId job = waiting_.first(group);
  if (!plan.try_start(job) && !try_preempt(view, plan, job)) return false;
  waiting_.forget(group, job);
  hold(view, plan, job);
  return true;
}

bool FairShare::has_room_for_any(const View& view) const {
  return std::ranges::any_of(waiting_.active(), [&](GroupId group) {
    const Shape& shape = view.shapes[groups_[group].shape];
    return std::ranges::any_of(
        shape.pools, [&](PoolId pool) { return view.cluster.free_gpus(pool) >= shape.gpus; });
  });
}

void FairShare::decide(const View& view, Plan& plan, Rng&) {
  accounts_.settle(view.now);
  charge_adopted(view);
  reservation_.ends().refresh(view);
  evicted_.clear();
  auto head = first_group(view);
  while (head && start_first(view, plan, *head)) head = first_group(view);
  if (!head || !has_room_for_any(view)) return;
  reservation_.make(view, plan, view.shapes[groups_[*head].shape]);
  backfill(view, plan, *head);
}

std::optional<FairShare::Candidate> FairShare::next_candidate(const View& view) const {
  std::optional<Candidate> best;
  for (const GroupId group : waiting_.active()) {
    if (blocked_.has(group)) continue;
    const Shape& shape = view.shapes[groups_[group].shape];
    for (const PoolId pool : shape.pools) {
      if (view.cluster.free_gpus(pool) < shape.gpus) continue;
      const auto window = reservation_.window(view, shape, pool);
      const auto job =
          window ? waiting_.first_at_most(group, *window) : std::optional{waiting_.first(group)};
      if (!job) continue;
      const Rank rank = rank_of(view, group, *job);
      if (!best || rank < best->rank) best = Candidate{*job, group, pool, rank};
    }
  }
  return best;
}

/// Free GPUs and what is left beside the reservation only shrink, so taking the first job that
/// qualifies again and again is a walk in order; each start moves its account back.
void FairShare::backfill(const View& view, Plan& plan, GroupId head) {
  const JobId head_job = waiting_.first(head);
  waiting_.forget(head, head_job);  // the head itself is no candidate
  blocked_.clear();
  while (const auto next = next_candidate(view)) {
    const bool outlasts = reservation_.outlasts(view, next->pool, next->job);
    const bool started = attempt(plan, [&] {
      return plan.try_start_in(next->pool, next->job, Reason::Backfill) &&
             (!outlasts || reservation_.spares(view, plan, next->job));
    });
    if (!started) {
      blocked_.add(next->group);  // its likes would be placed the same way
      continue;
    }
    waiting_.forget(next->group, next->job);
    hold(view, plan, next->job);
  }
  waiting_.push(head, head_job, view.estimated_left(head_job));
}

// --- who gives way to whom

bool FairShare::is_preemptible(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  if (request.kind == JobKind::Interactive || request.kind == JobKind::Service) return false;
  return request.preemptible;
}

Accounts::Lead FairShare::lead_over(const View& view, JobId job, JobId victim) const {
  const auto [a, b] = accounts_.rivals(leaf_[job], leaf_[victim]);
  return {.a = a, .b = b, .more = view.gpus(job), .factor = 1 + options_.margin};
}

/// Its own class against the one the other started with: age moves a job forward and protects it
/// once it runs, but gives no right to preempt.
bool FairShare::may_take(const View& view, JobId job, JobId victim) const {
  const std::int32_t own = view.request(job).priority;
  const std::int32_t others = running_.row(victim).key.priority;
  if (options_.by_priority() && others < own) return true;
  return options_.by_share() && others <= own && accounts_.is_ahead(lead_over(view, job, victim));
}

/// By class, then by the GPU time that stopping it may throw away.
void FairShare::find_victims(const View& view, const Plan& plan, JobId job) {
  candidates_.clear();
  for (const JobId other : holders_) {
    if (!view.jobs.is_running(other) || !is_preemptible(view, other)) continue;
    if (view.now - view.jobs.last_start[other] < options_.min_run) continue;
    if (!contains(view.shape(job).pools, plan.pool_of(other))) continue;
    if (may_take(view, job, other)) candidates_.push_back(other);
  }
  std::ranges::sort(candidates_, {}, [&](JobId other) {
    const Duration run = view.now - view.jobs.last_start[other];
    return std::tuple(running_.row(other).key.priority, run * view.gpus(other), run,
                      -std::int64_t{other.value});
  });
}

bool FairShare::try_preempt(const View& view, Plan& plan, JobId job) {
  if (!preempts() || std::ranges::find(evicted_, job) != evicted_.end()) return false;
  find_victims(view, plan, job);
  std::size_t at = 0;
  const auto next = [&]() -> const VictimKey* {
    return at == candidates_.size() ? nullptr : &running_.row(candidates_[at++]).key;
  };
  if (!room_.try_make_room(plan, running_, job, Reason::Priority, next, [] { return true; }))
    return false;
  for (std::size_t i = 0; i < at; ++i) {  // spared ones may have moved to another pool
    const JobId other = candidates_[i];
    if (!plan.holds(other)) continue;
    reservation_.ends().remove(other);
    reservation_.ends().add(view, plan.pool_of(other), other);
  }
  for (const JobId victim : room_.victims()) {
    let_go(view, victim);
    evicted_.push_back(victim);
    wait(view, victim);
  }
  return true;
}

// --- when to look again

std::optional<Time> FairShare::takes_at(const View& view, JobId job, JobId victim) const {
  if (!is_preemptible(view, victim)) return std::nullopt;
  const Time free_from = view.jobs.last_start[victim] + options_.min_run;
  if (may_take(view, job, victim)) return free_from;
  if (!options_.by_share() || running_.row(victim).key.priority > view.request(job).priority)
    return std::nullopt;
  const auto ahead = accounts_.ahead_at(lead_over(view, job, victim));
  if (!ahead) return std::nullopt;
  return std::max(free_from, std::max(*ahead, view.now) + kPatience);
}

/// The next moment from which the job may take devices that it may not take now.
std::optional<Time> FairShare::next_taking(const View& view, JobId job) const {
  std::optional<Time> first;
  for (const JobId other : holders_) {
    if (!contains(view.shape(job).pools, view.jobs.allocation[other].pool)) continue;
    const auto at = takes_at(view, job, other);
    if (at && *at > view.now) keep_earlier(first, at);
  }
  return first;
}

/// The next moment from which another job may come before the head.
std::optional<Time> FairShare::next_overtaking(const View& view, GroupId head) const {
  std::optional<Time> first;
  const AccountId head_leaf = groups_[head].leaf;
  const std::int32_t own = effective_class(view, waiting_.first(head));
  for (const GroupId group : waiting_.active()) {
    if (group == head) continue;
    const AccountId leaf = groups_[group].leaf;
    const JobId job = waiting_.first(group);
    const std::int32_t others = effective_class(view, job);
    const Aging& aging = options_.aging;
    if (aging.is_on() && others < aging.max_class) {
      const std::int64_t steps = aging.steps(view, job, view.now);
      keep_earlier(first, view.jobs.submitted[job] + (steps + 1) * aging.interval);
    }
    if (others != own || leaf == head_leaf) continue;
    const auto [a, b] = accounts_.rivals(leaf, head_leaf);
    if (const auto ahead = accounts_.ahead_at({.a = a, .b = b}))
      keep_earlier(first, std::max(*ahead, view.now) + kPatience);
  }
  return first;
}

/// Whatever may start has started: time alone changes something only where the head may take
/// devices later, or where its reservation keeps free devices from somebody who will pass it, or
/// moves because jobs outlive their estimates.
std::optional<Time> FairShare::next_wakeup(const View& view) {
  const auto head = first_group(view);
  if (!head) return std::nullopt;
  std::optional<Time> first;
  if (preempts()) first = next_taking(view, waiting_.first(*head));
  if (preempts() || has_room_for_any(view)) keep_earlier(first, next_overtaking(view, *head));
  // What the starts of this pass really cost may have moved the promise to the head.
  const bool moved = reservation_.ends().refresh(view);
  if (has_room_for_any(view)) {
    const Time change = moved ? view.now + Duration{1} : reservation_.next_change(view);
    if (change != kNever) keep_earlier(first, change);
  }
  return first;
}

namespace {

Result<void> read_accounts(const Params& params, Accounts& accounts) {
  BERTH_TRY(const auto shares, params.named_numbers("shares"));
  for (const auto& [who, numbers] : shares) {
    if (numbers.size() != 1 || numbers.front() <= 0 || numbers.front() > 1e9)
      return params.wrong("shares", "must be WHO:SHARE with shares above zero");
    accounts.set_share(who, numbers.front());
  }
  BERTH_TRY(const auto usage, params.named_numbers("usage"));
  for (const auto& [who, numbers] : usage) {
    if (numbers.size() != 1 || numbers.front() > 1e15)
      return params.wrong("usage", "must be WHO:GPU-SECONDS");
    accounts.add_use(who, numbers.front());
  }
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Options options;
  BERTH_TRY(options.accounts.half_life, params.duration("half_life"));
  BERTH_TRY(options.accounts.advance, params.duration("advance"));
  BERTH_TRY(options.preempt, params.choice<Preempt>("preempt", {{"off", Preempt::Off},
                                                                {"priority", Preempt::Priority},
                                                                {"share", Preempt::Share},
                                                                {"both", Preempt::Both}}));
  BERTH_TRY(options.min_run, params.duration("min_run"));
  BERTH_TRY(options.margin, params.number("margin", 0, 1e6));
  if (options.by_share() &&
      (options.min_run <= Duration::zero() || options.accounts.advance <= Duration::zero()))
    return params.wrong("preempt",
                        "by share needs min_run and advance above zero: without them "
                        "jobs of equals would take turns for ever");
  BERTH_TRY(options.aging, aging_of(params));
  BERTH_TRY(options.size, params.choice<SizeRule>("size", {{"neutral", SizeRule::Neutral},
                                                           {"small", SizeRule::Small},
                                                           {"large", SizeRule::Large}}));
  auto policy = std::make_unique<FairShare>(options);
  BERTH_TRY_VOID(read_accounts(params, policy->accounts()));
  return policy;
}

}  // namespace
}  // namespace fair_share

PolicyEntry fair_share_entry() {
  return {
      .name = "fair-share",
      .summary = "fair share of GPU time over groups and users, with priorities and a reservation",
      .params =
          {{"shares", "", "WHO:SHARE, comma separated; who is alice, group/ml or group/ml/alice"},
           {"usage", "", "WHO:GPU-SECONDS used before the run, comma separated"},
           {"half_life", "7d", "seconds in which use counts half; 0 = it is never forgotten"},
           {"advance", "10m", "seconds that a GPU counts in advance while it is held"},
           {"preempt", "off", "who may take GPUs: off, priority (from lower classes), share, both"},
           {"min_run", "10m", "seconds a job runs before it can be preempted"},
           {"margin", "0.25", "by how much an account stands better before it takes GPUs by share"},
           {"aging_interval", "0",
            "seconds of age that raise a waiting job by one class; 0 = no aging"},
           {"max_class", "10", "class up to which aging raises a job"},
           {"size", "neutral", "between jobs of one standing: neutral, small first, large first"}},
      .make = fair_share::make,
      .test_settings = {
          {"preempt", "both"}, {"min_run", "5"}, {"advance", "3"}, {"half_life", "30"}}};
}

}  // namespace berth
