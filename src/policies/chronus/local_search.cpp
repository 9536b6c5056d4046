#include "policies/chronus/local_search.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace berth::chronus {

namespace {
constexpr double kLeastGain = 1e-9;  // below this, two places are equally good
}  // namespace

LocalSearch::LocalSearch(std::vector<std::int32_t> free, std::vector<Resident> residents,
                         std::vector<Resident> waiting, double move_cost)
    : free_(std::move(free)),
      residents_(std::move(residents)),
      waiting_(std::move(waiting)),
      has_moved_(residents_.size()),
      move_cost_(move_cost) {}

double LocalSearch::speed(const Resident& job) noexcept {
  if (job.at.empty()) return 0;
  return job.is_spread() ? job.spread_speed : 1;
}

double LocalSearch::speeds() const noexcept {
  double sum = 0;
  for (const Resident& job : residents_) sum += speed(job);
  for (const Resident& job : waiting_) sum += speed(job);
  return sum;
}

double LocalSearch::cost_of_moving(std::size_t resident) const noexcept {
  return has_moved_[resident] || residents_[resident].is_free_to_move ? 0 : move_cost_;
}

void LocalSearch::lift(const Resident& job) noexcept {
  for (const Part& part : job.at) free_[part.server] += part.gpus;
}

void LocalSearch::drop(const Resident& job) noexcept {
  for (const Part& part : job.at) free_[part.server] -= part.gpus;
}

/// The lowest server that holds it, or the roomiest few; empty if there is no such place.
std::vector<Part> LocalSearch::compact_place(std::int32_t gpus, std::int32_t fewest) const {
  if (fewest == 1) {
    const auto found = std::ranges::find_if(free_, [&](std::int32_t free) { return free >= gpus; });
    if (found == free_.end()) return {};
    return {{static_cast<std::uint32_t>(found - free_.begin()), gpus}};
  }
  std::vector<std::uint32_t> order(free_.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto count = std::min(static_cast<std::size_t>(fewest), order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count), {},
                            [&](std::uint32_t s) { return std::pair(-free_[s], s); });
  order.resize(count);
  std::ranges::sort(order);
  std::vector<Part> parts;
  std::int32_t left = gpus;
  for (const std::uint32_t server : order) {
    const std::int32_t here = std::min(left, free_[server]);
    if (here > 0) parts.push_back({server, here});
    left -= here;
  }
  if (left > 0) parts.clear();
  return parts;
}

void LocalSearch::consider(Step& best, Step step) const {
  if (step.gain > kLeastGain && step.gain > best.gain + kLeastGain) best = std::move(step);
}

void LocalSearch::consider_moves(std::size_t i, Step& best) {
  lift(residents_[i]);
  const Resident& job = residents_[i];
  if (auto to = compact_place(job.gpus, job.fewest); !to.empty()) {
    consider(best, {.gain = 1 - job.spread_speed - cost_of_moving(i),
                    .resident = i,
                    .kind = Step::Kind::Move,
                    .to = std::move(to)});
  }
  for (std::size_t w = 0; w < waiting_.size(); ++w) {
    if (!waiting_[w].at.empty()) continue;
    auto to = compact_place(waiting_[w].gpus, waiting_[w].fewest);
    if (to.empty()) continue;
    consider(best, {.gain = 1 - job.spread_speed - cost_of_moving(i),
                    .resident = i,
                    .partner = w,
                    .kind = Step::Kind::Yield,
                    .to = std::move(to)});
  }
  drop(residents_[i]);
}

void LocalSearch::consider_swaps(std::size_t i, Step& best) const {
  const Resident& job = residents_[i];
  for (std::size_t k = 0; k < residents_.size(); ++k) {
    const Resident& other = residents_[k];
    if (other.gpus != job.gpus || other.at.empty() || other.is_spread()) continue;
    consider(best,
             {.gain = other.spread_speed - job.spread_speed - cost_of_moving(i) - cost_of_moving(k),
              .resident = i,
              .partner = k,
              .kind = Step::Kind::Swap,
              .to = {}});
  }
}

void LocalSearch::take(const Step& step) {
  Resident& job = residents_[step.resident];
  has_moved_[step.resident] = true;
  if (step.kind == Step::Kind::Swap) {
    has_moved_[step.partner] = true;
    std::swap(job.at, residents_[step.partner].at);
    return;
  }
  lift(job);
  Resident& comer = step.kind == Step::Kind::Yield ? waiting_[step.partner] : job;
  job.at.clear();
  comer.at = step.to;
  drop(comer);
}

std::int32_t LocalSearch::run(std::int32_t limit) {
  std::int32_t steps = 0;
  for (; steps < limit; ++steps) {
    Step best;
    for (std::size_t i = 0; i < residents_.size(); ++i) {
      if (!residents_[i].is_spread()) continue;
      consider_moves(i, best);
      consider_swaps(i, best);
    }
    if (best.kind == Step::Kind::None) break;
    take(best);
  }
  return steps;
}

}  // namespace berth::chronus
