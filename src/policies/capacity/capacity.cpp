#include "policies/capacity/capacity.h"

#include <algorithm>

#include <fmt/format.h>

#include "placements/node_picker.h"

namespace berth {

void Capacity::begin(const View& view) {
  tree_.set_capacity(
      view.cluster.cluster().total_gpus());  // nodes that are down do not shrink a guarantee
  leaves_.resize(tree_.size());
  queue_of_.resize(view.jobs.size());
  running_.begin(tree_.size(), view.cluster.pools(), view.jobs.size());
  scattered_.resize(view.jobs.size());
}

std::optional<Refusal> Capacity::admit(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  const QueueId queue =
      tree_.leaf_of(view.text(request.queue == NameId{} ? request.group : request.queue));
  queue_of_[job.value] = queue;
  if (tree_.can_ever_hold(queue, view.gpus(job))) return std::nullopt;
  return Refusal{Reason::Quota,
                 fmt::format("needs {} GPUs, queue '{}' may use at most {:g}", view.gpus(job),
                             tree_.name(queue), tree_.largest_gpus(queue))};
}

void Capacity::wait(const View& view, JobId job) {
  const ShapeId lane = options_.pass == PassRule::Strict ? ShapeId{} : view.jobs.shape[job];
  leaves_[queue_of_[job.value]].waiting.push(lane, job);
}

void Capacity::on_arrival(const View& view, JobId job) { wait(view, job); }

void Capacity::on_departure(const View& view, JobId job) {
  const bool ran = running_.contains(job);  // one that waited is dropped when it surfaces
  if (ran) running_.remove(job);
  account(view, job, ran ? -view.gpus(job) : 0);  // in either case the user's next may come forward
}

void Capacity::on_requeue(const View& view, JobId job) {
  on_departure(view, job);
  wait(view, job);
}

// --- users

void Capacity::account(const View& view, JobId job, std::int32_t gpus) {
  const QueueId queue = queue_of_[job.value];
  tree_.use(queue, gpus);
  if (!has_user_limit()) return;
  UserLine& line = leaves_[queue].users[view.request(job).user];
  line.used += gpus;
  let_user_on(view, queue, line);
}

/// A user who holds nothing may always start one job: otherwise a large one could never run.
bool Capacity::is_over_user_limit(const View& view, QueueId queue, const UserLine& line,
                                  JobId job) const {
  const double limit = options_.user_limit_factor * tree_.guaranteed_gpus(queue);
  return line.used > 0 && static_cast<double>(line.used + view.gpus(job)) > limit;
}

/// Moves the lane's head aside if its user is at the limit, so that other users' jobs come forward.
bool Capacity::hold_back_user(const View& view, QueueId queue, std::uint32_t lane) {
  if (!has_user_limit()) return false;
  JobHeap& jobs = leaves_[queue].waiting[lane].jobs;
  UserLine& line = leaves_[queue].users[view.request(jobs.top()).user];
  line.held_back.drop_over(view.jobs);
  const bool after_another = !line.held_back.empty() && line.held_back.top() < jobs.top();
  if (!after_another && !is_over_user_limit(view, queue, line, jobs.top())) return false;
  line.held_back.push(jobs.pop(view.jobs));
  return true;
}

/// One at a time: the next follows when this one has started.
void Capacity::let_user_on(const View& view, QueueId queue, UserLine& line) {
  line.held_back.drop_over(view.jobs);
  if (line.held_back.empty() || is_over_user_limit(view, queue, line, line.held_back.top())) return;
  wait(view, line.held_back.pop(view.jobs));
}

// --- the pass

/// Looks for the queue's next job: the first of its lanes' heads that limits allow.
bool Capacity::has_candidate(const View& view, QueueId queue) {
  Leaf& leaf = leaves_[queue];
  leaf.next.reset();
  if (leaf.blocked) return false;
  for (std::size_t i = 0; i < leaf.waiting.active().size(); ++i) {
    const std::uint32_t at = leaf.waiting.active()[i];
    auto& lane = leaf.waiting[at];
    while (lane.is_open() && hold_back_user(view, queue, at)) continue;
    if (!lane.is_open() || (leaf.next && leaf.waiting[*leaf.next].jobs.top() < lane.jobs.top()))
      continue;
    if (tree_.stays_within_largest(queue, view.gpus(lane.jobs.top()))) leaf.next = at;
  }
  return leaf.next.has_value();
}

/// The job runs, unless it can only be spread over more nodes than it needs and has not waited long
/// enough for better. With nothing running no pass would come to count, so it is not made to wait.
Capacity::Fit Capacity::try_place(const View& view, Plan& plan, JobId job) {
  const Plan::Mark mark = plan.mark();
  if (!plan.try_start(job)) return Fit::NoRoom;
  const std::size_t nodes = plan.slices(job).size();
  if (nodes <= 1 || running_.size() == 0 || scattered_[job.value] >= options_.locality_delay)
    return Fit::Started;
  const auto fewest = fewest_possible(view.cluster, view.shape(job), plan.pool_of(job));
  if (nodes <= static_cast<std::size_t>(fewest)) return Fit::Started;
  ++scattered_[job.value];
  plan.rollback(mark);
  return Fit::Scattered;
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

void Capacity::started(const View& view, const Plan& plan, QueueId queue, JobId job) {
  running_.add(queue, plan.pool_of(job), {.started = view.now, .job = job}, view.gpus(job));
  account(view, job, view.gpus(job));
}

void Capacity::try_candidate(const View& view, Plan& plan, QueueId queue) {
  Leaf& leaf = leaves_[queue];
  const std::uint32_t lane = *leaf.next;
  const JobId job = leaf.waiting[lane].jobs.top();
  const Fit fit = try_place(view, plan, job);
  const bool is_head = !leaf.head_failed;
  if (fit == Fit::Started ||
      (fit == Fit::NoRoom && is_head && try_preempt(view, plan, queue, job))) {
    leaf.waiting[lane].jobs.pop(view.jobs);
    started(view, plan, queue, job);
    return;
  }
  leaf.head_failed = true;
  leaf.waiting[lane].blocked = true;
  leaf.blocked = options_.pass == PassRule::Strict;
}

void Capacity::decide(const View& view, Plan& plan, Rng&) {
  for (Leaf& leaf : leaves_) {
    leaf.waiting.begin_pass(view.jobs);
    leaf.blocked = leaf.head_failed = false;
  }
  const auto is_eligible = [&](QueueId queue) { return has_candidate(view, queue); };
  for (;;) {
    const QueueId queue = tree_.least_full_leaf(QueueTree::kRoot, is_eligible);
    if (queue == QueueTree::kRoot) return;
    try_candidate(view, plan, queue);
  }
}

}  // namespace berth

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("queues"));
  auto tree = QueueTree::make(list);
  if (!tree) return params.wrong("queues", tree.error().text());
  CapacityOptions options;
  BERTH_TRY(const auto pass, params.choice("pass", {"strict", "skip"}));
  options.pass = pass == 0 ? PassRule::Strict : PassRule::Skip;
  BERTH_TRY(options.preemption, params.flag("preemption"));
  BERTH_TRY(options.user_limit_factor, params.number("user_limit_factor", 0, 1e6));
  BERTH_TRY(options.locality_delay, params.integer("locality_delay", 0, 1'000'000'000));
  return std::make_unique<Capacity>(*std::move(tree), options);
}

}  // namespace

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
      .make = make};
}

}  // namespace berth
