#include "policies/agents/defragmentation.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace berth::agents {

namespace {

constexpr int kMostAttempts = 8;  // cells that are really tried for one gang

}  // namespace

void Defragmentation::run(Pass& pass, PodId pod) {
  const auto wish = worst_off(pass, pod);
  if (!wish) return;
  make_cells(pass, *wish);
  add_occupants(pass);
  std::vector<EmptyingChoice> choices;
  for (const Cell& cell : cells_) choices.push_back(choice_of(cell, wish->gpus));
  const double saved = wait_saved(pass.view, *wish);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const auto decision = choose_to_empty(choices, saved, wish->gpus);
    if (!decision) return;
    const auto cell = std::ranges::find(cells_, decision->id, &Cell::id);
    if (carry_out(pass, *wish, *cell, decision->moves)) return;
    choices[static_cast<std::size_t>(cell - cells_.begin())].tenants_fit_elsewhere = false;
  }
}

std::optional<Defragmentation::Wish> Defragmentation::worst_off(const Pass& pass, PodId pod) const {
  const ClusterState& state = pass.plan.cluster();
  std::optional<Wish> worst;
  double most_hardship = 0;
  for (const JobId job : arbiters_[pod].held_back) {
    const Shape& shape = pass.view.shape(job);
    if (!arbiters_.waits_with(pass.view, job, pod) || !grants_.has_places(state, shape)) continue;
    const auto pool = arbiters_.pods().first_pool(state, pod, shape);
    if (!pool) continue;
    const double hardship = agents_.hardship_of(agents_.bidder_of(pass.view, job, *pool));
    if (worst && std::tuple(-hardship, job) > std::tuple(-most_hardship, worst->job)) continue;
    most_hardship = hardship;
    worst = Wish{job, pod, *pool, shape.gpus,
                 agents_.accepted_level(pass.view, job, *pool, *state.topology())};
  }
  return worst;
}

/// The servers of the pool, or its racks where a server is too small.
void Defragmentation::make_cells(const Pass& pass, const Wish& wish) {
  const ClusterState& state = pass.plan.cluster();
  const auto& nodes = state.cluster().nodes;
  const bool by_server = state.largest_node(wish.pool) >= wish.gpus;
  const bool whole_cluster = wish.pod == arbiters_.pods().root();
  cells_.clear();
  cell_of_.assign(nodes.size(), 0);
  std::vector<std::uint32_t> of_rack(by_server ? 0 : pass.view.cluster.racks());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeId node{i};
    if (nodes[i].pool != wish.pool || !state.is_up(node)) continue;
    if (!whole_cluster && arbiters_.pods().pod_of(node) != wish.pod) continue;
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

void Defragmentation::add_occupants(const Pass& pass) {
  arbiters_.holders(holders_);
  for (const JobId job : holders_) {
    if (pass.plan.holds(job)) add_occupant(pass, job);
  }
}

void Defragmentation::add_occupant(const Pass& pass, JobId job) {
  for (const Slice& slice : pass.plan.slices(job)) {
    if (cell_of_[slice.node.value] == 0) continue;
    Cell& cell = cells_[cell_of_[slice.node.value] - 1];
    if (!cell.occupants.empty() && cell.occupants.back().tenant.job == job) {
      cell.occupants.back().here += slice.gpus;
      continue;
    }
    const Level level = pass.view.believed().servers().level_of(pass.plan.slices(job));
    Occupant occupant;
    occupant.tenant = {job, pass.view.gpus(job), to_seconds(options_.migration_cost),
                       agents_.label_of(pass.view, job) == LocalityLabel::Any};
    occupant.here = slice.gpus;
    occupant.seconds_left =
        agents_.self_of(pass.view, job).left /
        believed_rate(pass.view, job, pass.plan.pool_of(job), pass.view.gpus(job), level);
    occupant.may_move = pass.view.jobs.is_running(job) &&
                        grants_.has_places(pass.plan.cluster(), pass.view.shape(job)) &&
                        arbiters_.has_rested(job, pass.view.now, options_.migration.pause);
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

bool Defragmentation::carry_out(Pass& pass, const Wish& wish, const Cell& cell,
                                std::span<const JobId> moves) {
  Plan& plan = pass.plan;
  std::vector<Holding> leaving;
  const bool fits = pass.attempt([&] {
    for (const JobId job : moves) {
      leaving.push_back(grants_.holding_of(plan, job));
      plan.preempt(job, Reason::Defragment);
    }
    const auto place =
        grants_.find(plan.cluster(), pass.view.shape(wish.job), wish.pool,
                     {.pod = arbiters_.pods().root(), .max_level = wish.level, .cell = cell.nodes});
    return place &&
           plan.try_start_on(wish.job, wish.pool, grants_.slices_of(*place), Reason::Order) &&
           std::ranges::all_of(leaving,
                               [&](const Holding& each) { return place_again(pass, each); });
  });
  if (!fits) return false;
  const auto gained = plan.slices(wish.job);
  agents_.note_wait(pass.view, wish.job, pass.view.believed().servers().level_of(gained));
  arbiters_.grant(pass.view, wish.job, arbiters_.pods().pod_of(gained), options_.lease);
  for (const Holding& each : leaving) {
    const auto now_on = plan.slices(each.job);
    if (std::ranges::equal(now_on, each.slices)) continue;  // it could stay after all
    plan.set_pause(each.job, options_.migration_cost);
    arbiters_.note_move(each.job, pass.view.now);
    arbiters_.transfer(each.job, arbiters_.pods().pod_of(now_on));
  }
  return true;
}

/// Where it was if that is free still, else no farther apart, in its pod or anywhere.
bool Defragmentation::place_again(Pass& pass, const Holding& holding) {
  if (pass.plan.try_start_on(holding.job, holding.pool, holding.slices, Reason::Defragment))
    return true;
  const Level level =
      pass.view.believed().servers().level_of(std::span<const Slice>{holding.slices});
  for (const PodId pod : {holding.pod, arbiters_.pods().root()}) {
    const auto place = grants_.find(pass.plan.cluster(), pass.view.shape(holding.job), holding.pool,
                                    {.pod = pod, .max_level = level});
    if (place && pass.plan.try_start_on(holding.job, holding.pool, grants_.slices_of(*place),
                                        Reason::Defragment))
      return true;
  }
  return false;
}

}  // namespace berth::agents
