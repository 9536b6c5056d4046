#include "policies/agents/defragmentation.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace berth::agents {

namespace {

constexpr int kMostAttempts = 8;  // cells that are really tried for one gang

}  // namespace

void Defragmentation::run(const View& view, Plan& plan, PodId pod) {
  const auto wish = worst_off(view, plan, pod);
  if (!wish) return;
  make_cells(view, plan, *wish);
  add_occupants(view, plan);
  std::vector<EmptyingChoice> choices;
  for (const Cell& cell : cells_) choices.push_back(choice_of(cell, wish->gpus));
  const double saved = wait_saved(view, *wish);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const auto decision = choose_to_empty(choices, saved, wish->gpus);
    if (!decision) return;
    const auto cell = std::ranges::find(cells_, decision->id, &Cell::id);
    if (carry_out(view, plan, *wish, *cell, decision->moves)) return;
    choices[static_cast<std::size_t>(cell - cells_.begin())].tenants_fit_elsewhere = false;
  }
}

std::optional<Defragmentation::Wish> Defragmentation::worst_off(const View& view, const Plan& plan,
                                                                PodId pod) const {
  const ClusterState& state = plan.cluster();
  std::optional<Wish> worst;
  double worst_plight = 0;
  for (const JobId job : books_[pod].held_back) {
    const Shape& shape = view.shape(job);
    if (!books_.waits_with(view, job, pod) || !grants_.has_places(state, shape)) continue;
    const auto pool = std::ranges::find_if(
        shape.pools, [&](PoolId id) { return books_.pods().may_hold(state, pod, id, shape); });
    if (pool == shape.pools.end()) continue;
    const double plight = agents_.plight_of(agents_.bidder_of(view, job, *pool));
    if (worst && std::tuple(-plight, job) > std::tuple(-worst_plight, worst->job)) continue;
    worst_plight = plight;
    worst = Wish{job, pod, *pool, shape.gpus,
                 agents_.accepted_level(view, job, *pool, *state.topology())};
  }
  return worst;
}

/// The servers of the pool, or its racks where a server is too small.
void Defragmentation::make_cells(const View& view, const Plan& plan, const Wish& wish) {
  const ClusterState& state = plan.cluster();
  const auto& nodes = state.cluster().nodes;
  const bool by_server = state.largest_node(wish.pool) >= wish.gpus;
  const bool whole_cluster = wish.pod == books_.pods().root();
  cells_.clear();
  cell_of_.assign(nodes.size(), 0);
  std::vector<std::uint32_t> of_rack(by_server ? 0 : view.cluster.racks());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeId node{i};
    if (nodes[i].pool != wish.pool || !state.is_up(node)) continue;
    if (!whole_cluster && books_.pods().pod_of(node) != wish.pod) continue;
    if (by_server && nodes[i].gpus < wish.gpus) continue;
    std::uint32_t& at = by_server ? cell_of_[i] : of_rack[nodes[i].rack.value];
    if (at == 0) {
      cells_.push_back({by_server ? i : nodes[i].rack.value, {}, 0, {}});
      at = static_cast<std::uint32_t>(cells_.size());
    }
    cell_of_[i] = at;
    cells_[at - 1].nodes.push_back(node);
    cells_[at - 1].free += state.free_on(node);
  }
}

void Defragmentation::add_occupants(const View& view, const Plan& plan) {
  books_.holders(holders_);
  for (const JobId job : holders_) {
    if (plan.holds(job)) add_occupant(view, plan, job);
  }
}

void Defragmentation::add_occupant(const View& view, const Plan& plan, JobId job) {
  for (const Slice& slice : plan.slices(job)) {
    if (cell_of_[slice.node.value] == 0) continue;
    Cell& cell = cells_[cell_of_[slice.node.value] - 1];
    if (!cell.occupants.empty() && cell.occupants.back().tenant.job == job) {
      cell.occupants.back().here += slice.gpus;
      continue;
    }
    const Level level = view.believed().servers().level_of(plan.slices(job));
    Occupant occupant;
    occupant.tenant = {job, view.gpus(job), to_seconds(options_.migration_cost),
                       agents_.label_of(view, job) == LocalityLabel::Any};
    occupant.here = slice.gpus;
    occupant.seconds_left =
        agents_.self_of(view, job).left / agents_.rate_at(view, job, plan.pool_of(job), level);
    occupant.may_move = view.jobs.is_running(job) &&
                        grants_.has_places(plan.cluster(), view.shape(job)) &&
                        books_.has_rested(job, view.now, options_.migration.pause);
    cell.occupants.push_back(occupant);
  }
}

/// As many as must leave, in their order, without those that the last ones made needless.
EmptyingChoice Defragmentation::choice_of(const Cell& cell, std::int32_t gpus) const {
  std::vector<Occupant> order;
  for (const Occupant& occupant : cell.occupants) {
    if (occupant.may_move) order.push_back(occupant);
  }
  std::ranges::sort(order, [](const Occupant& a, const Occupant& b) {
    return leaves_before(a.tenant, b.tenant);
  });
  std::int32_t room = cell.free;
  std::size_t leave = 0;
  while (leave < order.size() && room < gpus) room += order[leave++].here;
  EmptyingChoice choice{cell.id, {}, room >= gpus};
  for (std::size_t i = 0; i < leave; ++i) {
    if (room - order[i].here >= gpus)
      room -= order[i].here;
    else
      choice.tenants.push_back(order[i].tenant);
  }
  return choice;
}

double Defragmentation::wait_saved(const View& view, const Wish& wish) const {
  double soonest = std::numeric_limits<double>::infinity();
  for (const Cell& cell : cells_) {
    std::vector<std::pair<double, std::int32_t>> ends;
    for (const Occupant& occupant : cell.occupants)
      ends.emplace_back(occupant.seconds_left, occupant.here);
    std::ranges::sort(ends);
    std::int32_t room = cell.free;
    for (const auto& [seconds, gpus] : ends) {
      room += gpus;
      if (room < wish.gpus) continue;
      soonest = std::min(soonest, seconds);
      break;
    }
  }
  const auto worth = agents_.worth_of_level(view, wish.job, wish.pool, wish.level);
  return worth ? std::min(soonest, *worth) : soonest;
}

bool Defragmentation::carry_out(const View& view, Plan& plan, const Wish& wish, const Cell& cell,
                                std::span<const JobId> moves) {
  const Plan::Mark mark = plan.mark();
  std::vector<Holding> leaving;
  for (const JobId job : moves) {
    leaving.push_back(grants_.holding_of(plan, job));
    plan.preempt(job, Reason::Defragment);
  }
  const auto place =
      grants_.find(plan.cluster(), view.shape(wish.job), wish.pool,
                   {.pod = books_.pods().root(), .max_level = wish.level, .cell = cell.nodes});
  const bool fits =
      place && plan.try_start_on(wish.job, wish.pool, grants_.slices_of(*place), Reason::Order) &&
      std::ranges::all_of(leaving,
                          [&](const Holding& each) { return place_again(view, plan, each); });
  if (!fits) {
    plan.rollback(mark);
    return false;
  }
  agents_.note_wait(view, wish.job, view.believed().servers().level_of(plan.slices(wish.job)));
  books_.grant(view, wish.job, books_.pods().pod_of(plan.slices(wish.job)), options_.lease);
  for (const Holding& each : leaving) {
    if (std::ranges::equal(plan.slices(each.job), each.slices))
      continue;  // it could stay after all
    plan.set_pause(each.job, options_.migration_cost);
    books_.note_move(each.job, view.now);
    books_.transfer(each.job, books_.pods().pod_of(plan.slices(each.job)));
  }
  return true;
}

/// Where it was if that is free still, else no farther apart, in its pod or anywhere.
bool Defragmentation::place_again(const View& view, Plan& plan, const Holding& holding) {
  if (plan.try_start_on(holding.job, holding.pool, holding.slices, Reason::Defragment)) return true;
  const Level level = view.believed().servers().level_of(std::span<const Slice>{holding.slices});
  for (const PodId pod : {holding.pod, books_.pods().root()}) {
    const auto place = grants_.find(plan.cluster(), view.shape(holding.job), holding.pool,
                                    {.pod = pod, .max_level = level});
    if (place &&
        plan.try_start_on(holding.job, holding.pool, grants_.slices_of(*place), Reason::Defragment))
      return true;
  }
  return false;
}

}  // namespace berth::agents
