#include "policies/andreas/layout.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace berth::andreas {

Layout::Layout(const Instance& instance)
    : instance_(&instance),
      rows_(instance.nodes.size()),
      spots_(instance.jobs.size()),
      ends_(instance.jobs.size()),
      owns_(instance.jobs.size()),
      gangs_(instance.jobs.size()),
      filled_(instance.types.size()),
      empty_(instance.nodes.size()),
      cost_(instance.postponed) {
  for (const NodeType& type : instance.types)
    buckets_.emplace_back(static_cast<std::size_t>(type.gpus) + 1);
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    rows_[i].free = instance.types[instance.nodes[i].type].gpus;
    all_gpus_ += rows_[i].free;
    empty_.insert(NodeId{i});
  }
  free_gpus_ = all_gpus_;
}

void Layout::clear() {
  for (std::uint32_t job = 0; job < spots_.size() && placed_ > 0; ++job) {
    if (is_placed(job)) remove(job);
  }
  cost_ = instance_->postponed;  // sums and differences of many terms leave a rest
}

Score Layout::score() const noexcept {
  return {std::round(cost_ * 1e9) / 1e9, spots_.size() - placed_};
}

std::uint32_t Layout::first_empty(std::uint32_t type, std::uint32_t from) const noexcept {
  const auto found = empty_.next(NodeId{std::max(from, instance_->first_node[type])});
  return found && found->value < instance_->first_node[type + 1] ? found->value : kNone;
}

bool Layout::try_place(std::uint32_t job, std::uint32_t at, Rng* rng) {
  const Choice& choice = (*instance_->jobs[job].choices)[at];
  if (choice.is_gang()) {
    std::vector<Share> shares;
    if (!find_gang_nodes(choice, shares)) return false;
    place_gang(job, at, std::move(shares));
    return true;
  }
  if (choice.gpus > instance_->types[choice.type].gpus) return false;
  // Bit k of `filled_` stands for nodes with k + 1 free GPUs: the lowest one left is the best fit.
  const std::uint64_t fitting = filled_[choice.type] >> (choice.gpus - 1);
  if (fitting == 0) {
    const std::uint32_t node = first_empty(choice.type, 0);
    if (node == kNone) return false;
    place(job, at, node);
    return true;
  }
  const auto& nodes = bucket(choice.type, choice.gpus + std::countr_zero(fitting));
  place(job, at, rng == nullptr ? nodes.back() : nodes[rng->below(nodes.size())]);
  return true;
}

/// Whole nodes of the pool, the largest first, those ready before others.
bool Layout::find_gang_nodes(const Choice& choice, std::vector<Share>& shares) const {
  const auto& types = instance_->types;
  std::int32_t missing = choice.gpus;
  for (std::uint32_t type = 0; type < types.size() && missing > 0; ++type) {
    if (types[type].pool != types[choice.type].pool) continue;
    for (std::uint32_t node = first_empty(type, 0); node != kNone && missing > 0;
         node = first_empty(type, node + 1)) {
      const std::int32_t gpus = std::min({choice.per_node, types[type].gpus, missing});
      shares.push_back({node, gpus});
      missing -= gpus;
    }
  }
  return missing == 0;
}

bool Layout::try_stay(std::uint32_t job) {
  const Job& row = instance_->jobs[job];
  if (row.kept == kNone || row.home.empty()) return false;
  const bool has_room = std::ranges::all_of(
      row.home, [&](const Share& share) { return rows_[share.node].free >= share.gpus; });
  if (!has_room) return false;
  if ((*row.choices)[row.kept].is_gang()) {
    place_gang(job, row.kept, row.home);
  } else {
    place(job, row.kept, row.home.front().node);
  }
  return true;
}

/// Without the idle rate of its node, which depends on who else is there: occupy() adds that.
double Layout::own_cost(const Job& job, std::uint32_t at, double ready, bool stays) const noexcept {
  const Choice& choice = (*job.choices)[at];
  const NodeType& type = instance_->types[choice.type];
  const double hours = job.hours(choice);
  double cost = hours * choice.gpus * type.gpu_rate;
  if (job.due < kNoDueDate) cost += job.weight * std::max(0.0, ready + hours - job.due);
  if (job.kept != kNone && !stays) cost += instance_->restart * type.rate(choice.gpus);
  return cost;
}

void Layout::settle(std::uint32_t job, std::uint32_t choice, double ready, bool stays) {
  BERTH_DCHECK(!is_placed(job), "a job is placed once");
  const Job& row = instance_->jobs[job];
  spots_[job].choice = choice;
  ends_[job] = ready + row.hours((*row.choices)[choice]);
  owns_[job] = own_cost(row, choice, ready, stays) - row.postponed;
  cost_ += owns_[job];
  ++placed_;
}

void Layout::place(std::uint32_t job, std::uint32_t choice, std::uint32_t node) {
  const Job& row = instance_->jobs[job];
  const bool stays = choice == row.kept && !row.home.empty() && row.home.front().node == node;
  settle(job, choice, instance_->nodes[node].ready, stays);
  spots_[job].node = node;
  occupy(node, job, (*row.choices)[choice].gpus);
}

void Layout::place_gang(std::uint32_t job, std::uint32_t choice, std::vector<Share> shares) {
  double ready = 0;
  for (const Share& share : shares) ready = std::max(ready, instance_->nodes[share.node].ready);
  settle(job, choice, ready, shares == instance_->jobs[job].home);
  spots_[job].node = shares.front().node;
  for (const Share& share : shares) occupy(share.node, job, share.gpus);
  gangs_[job] = std::move(shares);
}

void Layout::remove(std::uint32_t job) {
  if (is_gang(job)) {
    for (const Share& share : gangs_[job]) vacate(share.node, job, share.gpus);
    gangs_[job].clear();
  } else {
    vacate(spots_[job].node, job, choice_of(job).gpus);
  }
  spots_[job] = {};
  cost_ -= owns_[job];
  --placed_;
}

void Layout::occupy(std::uint32_t node, std::uint32_t job, std::int32_t gpus) {
  Row& row = rows_[node];
  BERTH_DCHECK(row.free >= gpus, "no GPU is given twice");
  if (row.jobs.empty()) {
    empty_.erase(NodeId{node});
  } else {
    leave_bucket(node);
  }
  row.jobs.push_back(job);
  row.free -= gpus;
  free_gpus_ -= gpus;
  if (ends_[job] > row.last) {
    cost_ += instance_->types[instance_->nodes[node].type].idle_rate * (ends_[job] - row.last);
    row.last = ends_[job];
  }
  enter_bucket(node);
}

void Layout::vacate(std::uint32_t node, std::uint32_t job, std::int32_t gpus) {
  Row& row = rows_[node];
  leave_bucket(node);
  row.jobs.erase(std::ranges::find(row.jobs, job));
  row.free += gpus;
  free_gpus_ += gpus;
  // The node may go off earlier now: when the last of the others ends.
  double last = 0;
  for (const std::uint32_t other : row.jobs) last = std::max(last, ends_[other]);
  cost_ -= instance_->types[instance_->nodes[node].type].idle_rate * (row.last - last);
  row.last = last;
  if (row.jobs.empty()) {
    empty_.insert(NodeId{node});
  } else {
    enter_bucket(node);
  }
}

void Layout::enter_bucket(std::uint32_t node) {
  Row& row = rows_[node];
  if (row.free == 0) return;
  const std::uint32_t type = instance_->nodes[node].type;
  auto& nodes = bucket(type, row.free);
  row.at = static_cast<std::uint32_t>(nodes.size());
  nodes.push_back(node);
  filled_[type] |= std::uint64_t{1} << (row.free - 1);
}

void Layout::leave_bucket(std::uint32_t node) {
  const Row& row = rows_[node];
  if (row.free == 0) return;
  const std::uint32_t type = instance_->nodes[node].type;
  auto& nodes = bucket(type, row.free);
  nodes[row.at] = nodes.back();
  rows_[nodes[row.at]].at = row.at;
  nodes.pop_back();
  if (nodes.empty()) filled_[type] &= ~(std::uint64_t{1} << (row.free - 1));
}

void Layout::nodes_with_room(std::vector<std::uint32_t>& nodes) const {
  nodes.clear();
  for (const auto& type : buckets_) {
    for (const auto& some : type) nodes.insert(nodes.end(), some.begin(), some.end());
  }
  std::ranges::sort(nodes);
}

void Layout::candidates(std::uint32_t type, std::int32_t gpus, std::size_t limit,
                        std::vector<std::uint32_t>& nodes) const {
  nodes.clear();
  const auto& buckets = buckets_[type];
  for (auto free = static_cast<std::size_t>(gpus); free < buckets.size(); ++free) {
    for (const std::uint32_t node : buckets[free]) {
      if (nodes.size() == limit) break;
      nodes.push_back(node);
    }
  }
  if (gpus > instance_->types[type].gpus) return;
  if (const std::uint32_t node = first_empty(type, 0); node != kNone) nodes.push_back(node);
}

Solution Layout::solution() const {
  Solution solution{score(), spots_, {}};
  for (std::uint32_t job = 0; job < gangs_.size(); ++job) {
    if (is_gang(job)) solution.gangs.push_back({job, gangs_[job]});
  }
  return solution;
}

void Layout::restore(const Solution& solution) {
  clear();
  // Gangs first: the loop below takes whoever is not placed yet for a job of one node.
  for (const auto& [job, shares] : solution.gangs)
    place_gang(job, solution.spots[job].choice, shares);
  for (std::uint32_t job = 0; job < spots_.size(); ++job) {
    const Spot& spot = solution.spots[job];
    if (spot.choice != kNone && !is_placed(job)) place(job, spot.choice, spot.node);
  }
}

}  // namespace berth::andreas
