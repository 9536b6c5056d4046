// Cores of one server among its gangs: start at a floor, then give the next core (or a step of up
// to eight, where a curve first has to get over a flat part) to the gang that gains most. A heap
// holds one offer per gang.

#include "perf/cpu_allocation.h"

#include <algorithm>

namespace berth {
namespace {

constexpr std::int32_t kLookAhead = 8;

/// The fewest cores that are as fast as `share`.
std::int32_t floor_of(const CpuGang& gang, std::int32_t share) noexcept {
  std::int32_t cores = std::min(share, gang.most);
  const double wanted = gang.speed(cores);
  // Beyond the sweet point the share is more than it can use: the rest goes to others.
  while (cores > 1 && gang.speed(cores - 1) >= wanted) --cores;
  return cores;
}

}  // namespace

// Relative to the plateau, so that gains of different models can be compared.
std::vector<double> normalised_speeds(const CpuCurve& curve, std::int32_t max_cores) {
  std::vector<double> speeds{0};
  for (std::int32_t cores = 1; cores <= max_cores; ++cores)
    speeds.push_back(curve.is_known() ? curve.speed(cores) / curve.plateau : 1);
  return speeds;
}

// At least one core: a worker without any would never end.
std::int32_t bind_share(const CpuServer& server, std::int32_t gpus) noexcept {
  if (server.gpus <= 0) return std::max(server.cores, 1);
  const auto share = std::int64_t{server.cores} * gpus / server.gpus;
  return std::max(static_cast<std::int32_t>(share), 1);
}

double cpu_objective(std::span<const CpuGang> gangs, std::span<const std::int32_t> cores) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < gangs.size(); ++i) sum += gangs[i].weight * gangs[i].speed(cores[i]);
  return sum;
}

bool CpuAllocator::allocate(const CpuServer& server, std::span<const CpuGang> gangs,
                            std::span<std::int32_t> cores) {
  std::fill(cores.begin(), cores.end(), 0);
  std::int64_t workers = 0;
  for (const CpuGang& gang : gangs) workers += gang.workers;
  // Less than a core for each worker: the caller divides evenly instead.
  if (workers > server.cores) return false;
  free_ = server.cores;
  start_at_floors(server, gangs, cores);
  raise_while_it_helps(gangs, cores);
  if (leftover_ == CpuLeftover::RoundRobin) deal_out(gangs, cores);
  return true;
}

void CpuAllocator::start_at_floors(const CpuServer& server, std::span<const CpuGang> gangs,
                                   std::span<std::int32_t> cores) {
  std::int64_t used = 0;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const CpuGang& gang = gangs[i];
    cores[i] =
        objective_ == CpuObjective::FairFloor ? floor_of(gang, bind_share(server, gang.gpus)) : 1;
    used += std::int64_t{cores[i]} * gang.workers;
  }
  if (used > server.cores) {  // GPUs shared by several jobs: their shares overlap
    std::fill(cores.begin(), cores.end(), 1);
    used = 0;
    for (const CpuGang& gang : gangs) used += gang.workers;
  }
  free_ -= static_cast<std::int32_t>(used);
}

void CpuAllocator::raise_while_it_helps(std::span<const CpuGang> gangs,
                                        std::span<std::int32_t> cores) {
  const auto after = [](const Offer& a, const Offer& b) { return a.comes_after(b); };
  offers_.clear();
  for (std::uint32_t i = 0; i < gangs.size(); ++i) push_offer(gangs[i], i, cores[i]);
  std::ranges::make_heap(offers_, after);
  while (!offers_.empty() && free_ > 0) {
    std::ranges::pop_heap(offers_, after);
    const Offer offer = offers_.back();
    offers_.pop_back();
    const CpuGang& gang = gangs[offer.gang];
    const std::int32_t cost = offer.step * gang.workers;
    if (cost <= free_) {
      cores[offer.gang] += offer.step;
      free_ -= cost;
      // A step larger than one may be too large for what is left while a smaller one still fits: the
      // gang makes a new offer.
    } else if (offer.step == 1) {
      continue;  // a gang too large for what is left: what is left only shrinks
    }
    const std::size_t before = offers_.size();
    push_offer(gang, offer.gang, cores[offer.gang]);
    if (offers_.size() > before) std::ranges::push_heap(offers_, after);
  }
}

// MaxMin ranks by how slow a gang is now, not by what it gains: the slowest is served first.
void CpuAllocator::push_offer(const CpuGang& gang, std::uint32_t index, std::int32_t held) {
  Offer offer = best_step(gang, held);
  if (offer.key <= 0) return;
  offer.gang = index;
  if (objective_ == CpuObjective::MaxMin) offer.key = 1 - gang.speed(held);
  if (offer.key > 0) offers_.push_back(offer);
}

/// The step with the largest gain per core; of equals the smallest. Sees no further than the table,
/// the gang's limit and the free cores.
CpuAllocator::Offer CpuAllocator::best_step(const CpuGang& gang, std::int32_t held) const noexcept {
  Offer best;
  const auto known = static_cast<std::int32_t>(gang.speeds.size()) - 1;
  const std::int32_t reach =
      std::min({kLookAhead, known - held, gang.most - held, std::max(free_ / gang.workers, 1)});
  const double now = gang.speed(held);
  for (std::int32_t step = 1; step <= reach; ++step) {
    const double gain = gang.speed(held + step) - now;
    const double per_core = gang.weight * gain / (static_cast<double>(step) * gang.workers);
    if (per_core <= best.key) continue;
    best = {.key = per_core, .gang = 0, .step = step};
    if (objective_ == CpuObjective::MaxMin) break;  // the smallest step that helps at all
  }
  return best;
}

void CpuAllocator::deal_out(std::span<const CpuGang> gangs,
                            std::span<std::int32_t> cores) noexcept {
  for (bool dealt = true; dealt && free_ > 0;) {
    dealt = false;
    for (std::size_t i = 0; i < gangs.size(); ++i) {
      if (gangs[i].workers > free_ || cores[i] >= gangs[i].most) continue;
      ++cores[i];
      free_ -= gangs[i].workers;
      dealt = true;
    }
  }
}

}  // namespace berth
