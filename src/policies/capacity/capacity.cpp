#include "policies/capacity/capacity.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "placements/node_picker.h"
#include "policies/capacity/queue_tree.h"
#include "policies/common/pass_rule.h"
#include "policies/common/victims.h"
#include "policies/kit/pass.h"
#include "policies/kit/waiting_jobs.h"

namespace berth {
namespace capacity {

struct Options {
  PassRule pass = PassRule::Strict;  // inside a queue
  bool preemption = false;
  double user_limit_factor = 0;      // of the queue's guarantee one user may use; 0 = no limit
  std::int64_t locality_delay = 40;  // passes a job waits for the fewest nodes possible
};

class Capacity final : public Policy {
 public:
  Capacity(QueueTree tree, const Options& options) : options_(options), tree_(std::move(tree)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "capacity"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.preempts = true, .may_refuse = true};
  }
  void begin(const View& view) override;
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override { wait(view, job); }
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  using QueueId = QueueTree::QueueId;
  struct Leaf {
    WaitingByShape waiting;       // strict has one heap: the queue
    bool is_blocked = false;      // for the rest of the pass
    bool head_failed = false;     // the first job of the queue was tried
    std::optional<ShapeId> next;  // shape of the job to try, found by has_candidate()
  };
  enum class Fit : std::uint8_t { Started, Scattered, NoRoom };

  [[nodiscard]] ShapeId heap_of(const View& view, JobId job) const noexcept {
    return options_.pass == PassRule::Strict ? ShapeId{} : view.jobs.shape[job];
  }
  void wait(const View& view, JobId job);
  void account(const View& view, JobId job, std::int32_t gpus);

  [[nodiscard]] bool has_user_limit() const noexcept { return options_.user_limit_factor > 0; }
  [[nodiscard]] GroupId user_of(const View& view, JobId job);
  [[nodiscard]] bool is_over_user_limit(const View& view, GroupId user, JobId job) const;
  [[nodiscard]] bool hold_back_user(const View& view, Leaf& leaf, ShapeId shape);
  void let_user_on(const View& view, GroupId user);

  [[nodiscard]] bool has_candidate(const View& view, QueueId queue);
  void try_candidate(const View& view, Plan& plan, QueueId queue);
  [[nodiscard]] Fit try_place(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool try_preempt(const View& view, Plan& plan, QueueId queue, JobId job);
  [[nodiscard]] const VictimKey* next_victim(std::span<const PoolId> pools) const;

  Options options_;
  QueueTree tree_;
  std::vector<Leaf> leaves_;  // by QueueId; inner queues have none
  Column<JobId, QueueId> queue_of_;
  RunningJobs running_;                         // by QueueId
  Column<JobId, std::uint32_t> scattered_;      // passes in which it could only have been spread
  Groups<std::pair<QueueId, NameId>> users_;    // of a queue; only with a user limit, as the next
  Column<GroupId, std::int64_t> used_by_user_;  // GPUs
  WaitingJobs<GroupId> held_back_;              // until their user is within the limit again
  RoomMaker room_;                              // scratch
};

void Capacity::begin(const View& view) {
  // Nodes that are down do not shrink a guarantee.
  tree_.set_capacity(view.cluster.cluster().total_gpus());
  leaves_.resize(tree_.size());
  queue_of_.resize(view.jobs.size());
  running_.begin(tree_.size(), view.cluster.pools(), view.jobs.size());
  scattered_.resize(view.jobs.size());
}

std::optional<Refusal> Capacity::admit(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  const QueueId queue =
      tree_.leaf_of(view.text(request.queue == NameId{} ? request.group : request.queue));
  queue_of_[job] = queue;
  if (tree_.can_ever_hold(queue, view.gpus(job))) return std::nullopt;
  return Refusal{Reason::Quota,
                 fmt::format("needs {} GPUs, queue '{}' may use at most {:g}", view.gpus(job),
                             tree_.name(queue), tree_.largest_gpus(queue))};
}

void Capacity::wait(const View& view, JobId job) {
  leaves_[queue_of_[job]].waiting.push(heap_of(view, job), job);
}

void Capacity::on_departure(const View& view, JobId job) {
  const bool ran = running_.contains(job);
  if (ran) {
    running_.remove(job);
  } else {
    leaves_[queue_of_[job]].waiting.forget(heap_of(view, job), job);
    if (has_user_limit()) held_back_.forget(user_of(view, job), job);
  }
  account(view, job, ran ? -view.gpus(job) : 0);  // in either case the user's next may come forward
}

void Capacity::on_requeue(const View& view, JobId job) {
  on_departure(view, job);
  wait(view, job);
}

// --- users

GroupId Capacity::user_of(const View& view, JobId job) {
  const GroupId user = users_.of({queue_of_[job], view.request(job).user});
  if (used_by_user_.size() < users_.size()) used_by_user_.resize(users_.size());
  return user;
}

void Capacity::account(const View& view, JobId job, std::int32_t gpus) {
  tree_.use(queue_of_[job], gpus);
  if (!has_user_limit()) return;
  const GroupId user = user_of(view, job);
  used_by_user_[user] += gpus;
  let_user_on(view, user);
}

/// A user who holds nothing may always start one job: otherwise a large one could never run.
bool Capacity::is_over_user_limit(const View& view, GroupId user, JobId job) const {
  const double limit = options_.user_limit_factor * tree_.guaranteed_gpus(users_[user].first);
  const std::int64_t used = used_by_user_[user];
  return used > 0 && static_cast<double>(used + view.gpus(job)) > limit;
}

/// Moves the first job aside if its user is at the limit, so that other users' jobs come forward.
bool Capacity::hold_back_user(const View& view, Leaf& leaf, ShapeId shape) {
  if (!has_user_limit()) return false;
  const JobId job = leaf.waiting.top(shape).job;
  const GroupId user = user_of(view, job);
  const bool after_another = !held_back_.empty(user) && held_back_.top(user).job < job;
  if (!after_another && !is_over_user_limit(view, user, job)) return false;
  leaf.waiting.pop(shape);
  held_back_.push(user, job);
  return true;
}

/// One at a time: the next follows when this one has started.
void Capacity::let_user_on(const View& view, GroupId user) {
  if (held_back_.empty(user) || is_over_user_limit(view, user, held_back_.top(user).job)) return;
  wait(view, held_back_.pop(user).job);
}

// --- the pass

/// Looks for the queue's next job: the first of its heaps' tops that limits allow.
bool Capacity::has_candidate(const View& view, QueueId queue) {
  Leaf& leaf = leaves_[queue];
  leaf.next.reset();
  if (leaf.is_blocked) return false;
  const auto& active = leaf.waiting.active();
  for (std::size_t i = 0; i < active.size();) {
    const ShapeId shape = active[i];
    const bool is_open = !leaf.waiting.is_blocked(shape);
    while (is_open && !leaf.waiting.empty(shape) && hold_back_user(view, leaf, shape)) continue;
    if (leaf.waiting.empty(shape)) continue;  // it has left `active`
    ++i;
    const OrderKey& top = leaf.waiting.top(shape);
    if (!is_open || (leaf.next && leaf.waiting.top(*leaf.next) < top)) continue;
    if (tree_.stays_within_largest(queue, view.gpus(top.job))) leaf.next = shape;
  }
  return leaf.next.has_value();
}

/// The job runs, unless it can only be spread over more nodes than it needs and has not waited long
/// enough for better. With nothing running no pass would come to count, so it is not made to wait.
Capacity::Fit Capacity::try_place(const View& view, Plan& plan, JobId job) {
  Fit fit = Fit::NoRoom;
  attempt(plan, [&] {
    if (!plan.try_start(job)) return false;
    fit = Fit::Started;
    const std::size_t nodes = plan.slices(job).size();
    if (nodes <= 1 || running_.size() == 0 || scattered_[job] >= options_.locality_delay)
      return true;
    const auto fewest = fewest_possible(view.cluster, view.shape(job), plan.pool_of(job));
    if (nodes <= static_cast<std::size_t>(fewest)) return true;
    ++scattered_[job];
    fit = Fit::Scattered;
    return false;
  });
  return fit;
}

/// The most recent start among jobs of queues that are over their guarantee.
const VictimKey* Capacity::next_victim(std::span<const PoolId> pools) const {
  const VictimKey* best = nullptr;
  for (QueueId queue = 1; queue < tree_.size(); ++queue) {
    if (tree_.is_within_guarantee(queue, running_.used(queue))) continue;
    const VictimKey* first = running_.first(queue, pools);
    if (first != nullptr && (best == nullptr || *first < *best)) best = first;
  }
  return best;
}

bool Capacity::try_preempt(const View& view, Plan& plan, QueueId queue, JobId job) {
  if (!options_.preemption || !tree_.is_within_guarantee(queue, tree_.used(queue) + view.gpus(job)))
    return false;
  const auto is_fair = [&] {
    return std::ranges::none_of(room_.victims(), [&](JobId victim) {
      const QueueId from = running_.row(victim).group;
      return tree_.is_below_guarantee(from, running_.used(from));
    });
  };
  const auto next = [&] { return next_victim(view.shape(job).pools); };
  if (!room_.try_make_room(plan, running_, job, Reason::Guarantee, next, is_fair)) return false;
  for (const JobId victim : room_.victims()) {
    account(view, victim, -view.gpus(victim));
    wait(view, victim);
  }
  return true;
}

void Capacity::try_candidate(const View& view, Plan& plan, QueueId queue) {
  Leaf& leaf = leaves_[queue];
  const ShapeId shape = *leaf.next;
  const JobId job = leaf.waiting.top(shape).job;
  const Fit fit = try_place(view, plan, job);
  const bool is_head = !leaf.head_failed;
  if (fit == Fit::Started ||
      (fit == Fit::NoRoom && is_head && try_preempt(view, plan, queue, job))) {
    leaf.waiting.forget(shape, job);  // jobs that made way may stand before it now
    running_.add(queue, plan.pool_of(job), {.started = view.now, .job = job}, view.gpus(job));
    account(view, job, view.gpus(job));
    return;
  }
  leaf.head_failed = true;
  leaf.waiting.block(shape);
  leaf.is_blocked = options_.pass == PassRule::Strict;
}

void Capacity::decide(const View& view, Plan& plan, Rng&) {
  for (Leaf& leaf : leaves_) {
    leaf.waiting.unblock();
    leaf.is_blocked = leaf.head_failed = false;
  }
  const auto is_eligible = [&](QueueId queue) { return has_candidate(view, queue); };
  for (;;) {
    const QueueId queue = tree_.least_full_leaf(QueueTree::kRoot, is_eligible);
    if (queue == QueueTree::kRoot) return;
    try_candidate(view, plan, queue);
  }
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("queues"));
  auto tree = QueueTree::make(list);
  if (!tree) return params.wrong("queues", tree.error().text());
  Options options;
  BERTH_TRY(options.pass, pass_rule(params));
  BERTH_TRY(options.preemption, params.flag("preemption"));
  BERTH_TRY(options.user_limit_factor, params.number("user_limit_factor", 0, 1e6));
  BERTH_TRY(options.locality_delay, params.integer("locality_delay", 0, 1'000'000'000));
  return std::make_unique<Capacity>(*std::move(tree), options);
}

}  // namespace
}  // namespace capacity

PolicyEntry capacity_entry() {
  return {
      .name = "capacity",
      .summary = "queues with guaranteed shares, the least full one first",
      .params =
          {{"queues", "",
            "NAME:share[:max], comma separated; '/' in a name nests it, shares are of the parent"},
           {"pass", "strict",
            "inside a queue; strict: stop at the first job that does not fit; skip: try the next"},
           {"preemption", "off",
            "on: a queue takes its guarantee back from queues that are over theirs"},
           {"user_limit_factor", "0",
            "of its queue's guarantee one user may use at most; 0 = no limit"},
           {"locality_delay", "40",
            "passes a job waits for the fewest nodes possible before it takes more"}},
      .make = capacity::make};
}

}  // namespace berth
