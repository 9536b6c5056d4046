#include "policies/chronus/chronus.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace berth::chronus {

bool pick_devices(const Cluster& cluster, PoolId pool, std::int32_t gpus,
                  const std::vector<std::uint64_t>& free, std::vector<Slice>& slices) {
  slices.clear();
  std::vector<std::pair<int, std::uint32_t>> nodes;  // free devices, node
  for (std::uint32_t i = 0; i < free.size(); ++i) {
    if (cluster.nodes[i].pool == pool && free[i] != 0) nodes.push_back({std::popcount(free[i]), i});
  }
  std::ranges::sort(nodes, {}, [&](const auto& node) {
    const bool holds_all = node.first >= gpus;
    return std::tuple(!holds_all, holds_all ? node.first : -node.first, node.second);
  });
  std::int32_t left = gpus;
  for (const auto& [count, node] : nodes) {
    if (left == 0) break;
    Slice slice{.node = NodeId{node}, .gpus = std::min(left, count), .devices = 0};
    std::uint64_t rest = free[node];
    for (std::int32_t i = 0; i < slice.gpus; ++i, rest &= rest - 1)
      slice.devices |= rest & (~rest + 1);
    left -= slice.gpus;
    slices.push_back(slice);
  }
  std::ranges::sort(slices, {}, &Slice::node);
  return left == 0;
}

void Chronus::begin(const View& view) {
  counts_ = view.cluster.mode() == ClusterState::Mode::Count;
  rows_.resize(view.jobs.size());
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i) {
    const PoolId pool{i};
    pools_.push_back({counts_ ? BuddyServers{} : BuddyServers{view.cluster.cluster(), pool},
                      LeasePlan{0, options_.effort}});
    static_cast<void>(pools_.back().plan.set_capacity(capacity(view, pool)));
  }
  if (!options_.lends_padding && !counts_) padding_.assign(view.cluster.cluster().nodes.size(), 0);
}

OrderKey Chronus::key_of(const View& view, JobId job) const {
  const Duration key = options_.key == BestEffortKey::Remaining
                           ? view.estimated_left(job)
                           : view.jobs.attained(job, view.now) * view.gpus(job);
  return {key.count(), job};
}

void Chronus::enqueue(const View& view, JobId job) {
  Row& row = rows_[job.value];
  row.is_starved = false;
  waiting_.push(view.jobs.shape[job], key_of(view, job));
  waits_.insert({row.waits_since, job});
}

void Chronus::dequeue(const View& view, JobId job) {
  const Row& row = rows_[job.value];
  (row.is_starved ? starved_ : waiting_).forget(view.jobs.shape[job], job);
  waits_.erase({row.waits_since, job});
}

void Chronus::on_arrival(const View& view, JobId job) {
  ++active_;
  rounds_.stir(view.now);
  Row& row = rows_[job.value];
  row.waits_since = view.now;
  if (row.is_promised) {
    promised_.insert(job);
    idle_.insert({row.end, job});
  } else {
    enqueue(view, job);
  }
}

void Chronus::on_departure(const View& view, JobId job) {
  --active_;
  rounds_.stir(view.now);
  const Row& row = rows_[job.value];
  if (row.is_killed) return;
  may_improve_ = may_improve_ || (row.holds && view.believed().effects().locality);
  if (row.is_promised) {
    forget_promise(job);
  } else if (row.holds) {
    best_effort_.erase(job);
  } else {
    dequeue(view, job);
  }
}

void Chronus::on_requeue(const View& view, JobId job) {
  rounds_.stir(view.now);
  set_holding(view, job, false);
}

/// Keeps the books in step with the plan. A best-effort job that starts was taken off its queue.
void Chronus::set_holding(const View& view, JobId job, bool holds) {
  Row& row = rows_[job.value];
  row.holds = holds;
  if (!holds) row.waits_since = view.now;
  if (row.is_promised) {
    if (holds) {
      idle_.erase({row.end, job});
    } else {
      idle_.insert({row.end, job});
    }
  } else if (holds) {
    best_effort_.insert(job);
  } else {
    best_effort_.erase(job);
    enqueue(view, job);
  }
}

void Chronus::stop(const View& view, Plan& plan, JobId job) {
  plan.preempt(job, rows_[job.value].is_broken ? Reason::Deadline : Reason::Lease);
  set_holding(view, job, false);
}

bool Chronus::start_in(const View& view, Plan& plan, JobId job, PoolId pool, Reason reason) {
  if (padding_.empty()) return plan.try_start_in(pool, job, reason);
  std::vector<std::uint64_t> free(padding_.size());
  for (std::uint32_t i = 0; i < free.size(); ++i)
    free[i] = plan.cluster().free_mask(NodeId{i}) & ~padding_[i];
  return pick_devices(view.cluster.cluster(), pool, view.gpus(job), free, slices_) &&
         plan.try_start_on(job, pool, slices_, reason);
}

bool Chronus::start(const View& view, Plan& plan, JobId job, Reason reason) {
  if (rows_[job.value].is_broken) reason = Reason::Deadline;  // so the log tells of it
  const bool started = padding_.empty()
                           ? plan.try_start(job, reason)
                           : std::ranges::any_of(view.shape(job).pools, [&](PoolId pool) {
                               return start_in(view, plan, job, pool, reason);
                             });
  if (!started) return false;
  if (!rows_[job.value].is_promised) dequeue(view, job);
  set_holding(view, job, true);
  return true;
}

/// Idle GPUs until the term ends: whoever waits and fits, in the order of the queue.
void Chronus::fill_from(const View& view, Plan& plan, WaitingByShape& queue) {
  for (;;) {
    const ShapeId* best = nullptr;
    for (const ShapeId& shape : queue.active()) {
      if (blocked_[shape.value] || !plan.has_room(view.shapes[shape])) continue;
      if (best == nullptr || queue.top(shape) < queue.top(*best)) best = &shape;
    }
    if (best == nullptr) return;
    const ShapeId shape = *best;
    if (!start(view, plan, queue.top(shape).job, Reason::Backfill)) blocked_[shape.value] = true;
  }
}

void Chronus::fill(const View& view, Plan& plan) {
  if (plan.cluster().free_gpus() == 0 && !view.cluster.tracks_devices()) return;
  blocked_.assign(view.shapes.size(), false);
  fill_from(view, plan, starved_);
  fill_from(view, plan, waiting_);
  // What is done before its lease comes makes a promise easier to keep.
  order_.clear();
  for (const auto& [end, job] : idle_) order_.push_back({end, job});
  for (const OrderKey& key : order_) {
    if (plan.cluster().free_gpus() == 0) break;
    const PoolId pool = rows_[key.job.value].pool;
    const ShapeId shape = view.jobs.shape[key.job];
    if (blocked_[shape.value] || !plan.cluster().may_hold(pool, view.shapes[shape])) continue;
    if (start_in(view, plan, key.job, pool, Reason::Backfill)) {
      set_holding(view, key.job, true);
    } else {
      blocked_[shape.value] = true;
    }
  }
}

void Chronus::decide(const View& view, Plan& plan, Rng&) {
  if (active_ == 0) return rounds_.settle();
  if (rounds_.is_due(view.now)) {
    rounds_.hold(view.now);
    if (needs_term()) begin_term(view, plan);
  }
  fill(view, plan);
}

std::optional<Time> Chronus::next_wakeup(const View& view) {
  if (needs_term()) {
    rounds_.go_on(view.now);
  } else {
    rounds_.settle();
  }
  return rounds_.wakeup(view.now);
}

}  // namespace berth::chronus

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  chronus::ChronusOptions options;
  BERTH_TRY(options.lease, params.duration("lease"));
  BERTH_TRY(options.restart, params.duration("restart"));
  if (options.lease <= options.restart) return params.wrong("lease", "must be longer than restart");
  BERTH_TRY(options.slack, params.number("slack", 1, 100));
  BERTH_TRY(options.grace, params.duration("grace"));
  BERTH_TRY(const auto unmet, params.choice("unmet", {"refuse", "best-effort"}));
  options.refuses = unmet == 0;
  BERTH_TRY(const auto late, params.choice("late", {"best-effort", "kill"}));
  options.kills_late = late == 1;
  BERTH_TRY(const auto key, params.choice("be_key", {"remaining", "attained"}));
  options.key = static_cast<chronus::BestEffortKey>(key);
  BERTH_TRY(options.starve_leases, params.integer("be_starve", 1, 1'000'000));
  BERTH_TRY(options.lends_padding, params.flag("lend_padding"));
  BERTH_TRY(const auto steps, params.integer("ls_iters", 0, 1'000'000));
  options.search_steps = static_cast<std::int32_t>(steps);
  options.move_cost = to_seconds(options.restart) / to_seconds(options.lease);
  if (params.text("mig_cost") != "auto") {
    BERTH_TRY(options.move_cost, params.number("mig_cost", 0, 1000));
  }
  BERTH_TRY(options.best_effort_in_program, params.flag("be_in_milp"));
  BERTH_TRY(const auto jobs, params.integer("exact_jobs", 0, 1000));
  options.effort.jobs = static_cast<std::size_t>(jobs);
  BERTH_TRY(options.effort.nodes, params.integer("solver_nodes", 1, 1'000'000'000));
  return std::make_unique<chronus::Chronus>(options);
}

}  // namespace

PolicyEntry chronus_entry() {
  return {
      .name = "chronus",
      .summary =
          "promises leases that meet deadlines or refuses at once; the rest shares what is left",
      .params =
          {{"lease", "20m", "length of a term; who runs is decided where one begins"},
           {"restart", "30", "seconds at the begin of a lease that saving and restarting may take"},
           {"slack", "1.05", "factor on the believed work left, against wrong estimates"},
           {"grace", "1h",
            "lateness that makes a soft deadline worthless; at most 100 terms are tried"},
           {"unmet", "refuse", "strict deadline that cannot be promised: refuse or best-effort"},
           {"late", "best-effort", "strict job that will be late after all: best-effort or kill"},
           {"be_key", "remaining",
            "order without deadline: remaining (work) or attained (service)"},
           {"be_starve", "36", "leases of waiting after which such a job goes first"},
           {"lend_padding", "on", "lend the GPUs that rounding up to blocks leaves idle"},
           {"be_in_milp", "off",
            "leases that can come later make way for short jobs without deadline"},
           {"ls_iters", "1000", "steps of the search for closer places, if distance costs speed"},
           {"mig_cost", "auto", "speed that moving a job there must gain; auto = restart / lease"},
           {"exact_jobs", "30", "jobs up to which the integer program decides; 0 = never"},
           {"solver_nodes", "200", "size of its search tree at most"}},
      .make = make};
}

}  // namespace berth
