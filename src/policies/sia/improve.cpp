#include "policies/sia/improve.h"

#include <algorithm>
#include <limits>

namespace berth::sia {

namespace {

constexpr double kNothing = 1e-12;

}  // namespace

Improver::Improver(const Program& program) : program_(program) {
  for (const Row& row : program.rows) {
    auto& options = options_.emplace_back(row.options);
    options.push_back({.type = 0, .gpus = 0, .cost = row.none});
    taken_.emplace_back(options.size());
  }
}

void Improver::set(std::span<const std::size_t> choices) {
  free_ = program_.capacity;
  cost_ = 0;
  for (std::size_t r = 0; r < choices.size(); ++r) {
    const std::int32_t count = program_.rows[r].count;
    std::ranges::fill(taken_[r], 0);
    taken_[r][choices[r]] = count;
    free_[type_at(r, choices[r])] -= std::int64_t{count} * gpus_at(r, choices[r]);
    cost_ += count * cost_at(r, choices[r]);
  }
}

void Improver::set(const Assignment& assignment) {
  free_ = program_.capacity;
  cost_ = assignment.cost;
  for (std::size_t r = 0; r < taken_.size(); ++r) {
    std::int32_t left = program_.rows[r].count;
    for (std::size_t i = 0; i + 1 < taken_[r].size(); ++i) {
      taken_[r][i] = assignment.taken[r][i];
      left -= taken_[r][i];
      free_[type_at(r, i)] -= std::int64_t{taken_[r][i]} * gpus_at(r, i);
    }
    taken_[r].back() = left;
  }
}

template <class See>
void Improver::for_each_move(See see) const {
  for (std::size_t r = 0; r < taken_.size(); ++r) {
    for (std::size_t from = 0; from < taken_[r].size(); ++from) {
      if (taken_[r][from] == 0) continue;
      for (std::size_t to = 0; to < taken_[r].size(); ++to) {
        if (to != from) see(Move{r, from, to});
      }
    }
  }
}

std::int64_t Improver::moves() const {
  std::int64_t count = 0;
  for_each_move([&](const Move&) { ++count; });
  return count;
}

std::int64_t Improver::free_after(const Move& move, std::uint32_t type) const {
  std::int64_t free = free_[type];
  if (type_at(move.row, move.from) == type) free += gpus_at(move.row, move.from);
  if (type_at(move.row, move.to) == type) free -= gpus_at(move.row, move.to);
  return free;
}

bool Improver::fits(const Move& move) const {
  return gpus_at(move.row, move.to) == 0 || free_after(move, type_at(move.row, move.to)) >= 0;
}

void Improver::make(const Move& move, std::int32_t jobs) {
  taken_[move.row][move.from] -= jobs;
  taken_[move.row][move.to] += jobs;
  free_[type_at(move.row, move.from)] += std::int64_t{jobs} * gpus_at(move.row, move.from);
  free_[type_at(move.row, move.to)] -= std::int64_t{jobs} * gpus_at(move.row, move.to);
  cost_ += jobs * change(move);
}

/// The move that costs least per GPU it gives back, by as many jobs as are needed.
bool Improver::relieve(std::uint32_t type) {
  double least = std::numeric_limits<double>::infinity();
  Move best;
  std::int64_t best_relief = 0;
  for_each_move([&](const Move& move) {
    const std::int64_t relief = free_after(move, type) - free_[type];
    if (relief <= 0) return;
    // Relief that overuses another type is none: repair would go round in circles.
    const bool elsewhere = gpus_at(move.row, move.to) > 0 && type_at(move.row, move.to) != type;
    if (elsewhere && !fits(move)) return;
    const double cost = change(move) / static_cast<double>(relief);
    if (cost >= least) return;
    least = cost;
    best = move;
    best_relief = relief;
  });
  if (best_relief == 0) return false;
  std::int64_t jobs = (-free_[type] + best_relief - 1) / best_relief;
  const std::uint32_t to = type_at(best.row, best.to);
  if (to != type && gpus_at(best.row, best.to) > 0)
    jobs = std::min(jobs, free_[to] / gpus_at(best.row, best.to));
  make(best,
       static_cast<std::int32_t>(std::clamp<std::int64_t>(jobs, 1, taken_[best.row][best.from])));
  return true;
}

void Improver::repair() {
  for (std::uint32_t type = 0; type < free_.size(); ++type) {
    while (free_[type] < 0 && relieve(type)) {
    }
  }
}

/// The move that saves most per GPU it takes; one that takes none goes first.
bool Improver::take_best() {
  double most = 0;
  Move best;
  for_each_move([&](const Move& move) {
    const double saved = -change(move);
    if (saved <= kNothing || !fits(move)) return;
    const std::int32_t extra = gpus_at(move.row, move.to) - gpus_at(move.row, move.from);
    const double value = extra > 0 ? saved / extra : 1e6 + saved;
    if (value <= most) return;
    most = value;
    best = move;
  });
  if (most <= 0) return false;
  std::int64_t jobs = taken_[best.row][best.from];
  const std::uint32_t to = type_at(best.row, best.to);
  const std::int64_t extra =
      gpus_at(best.row, best.to) -
      (type_at(best.row, best.from) == to ? gpus_at(best.row, best.from) : 0);
  if (extra > 0) jobs = std::min(jobs, free_[to] / extra);
  make(best, static_cast<std::int32_t>(std::max<std::int64_t>(1, jobs)));
  return true;
}

void Improver::fill() {
  while (take_best()) {
  }
}

bool Improver::exchange_once() {
  std::vector<Move> all;
  for_each_move([&](const Move& move) { all.push_back(move); });
  double most = kNothing;
  Move first;
  Move second;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = i + 1; k < all.size(); ++k) {
      const Move& a = all[i];
      const Move& b = all[k];
      if (a.row == b.row) continue;
      // Cheaper than the test whether both fit, and it fails for most pairs.
      const double saved = -change(a) - change(b);
      if (saved <= most) continue;
      bool both_fit = true;
      for (std::uint32_t type = 0; type < free_.size() && both_fit; ++type)
        both_fit = free_after(a, type) + free_after(b, type) - free_[type] >= 0;
      if (!both_fit) continue;
      most = saved;
      first = a;
      second = b;
    }
  }
  if (most <= kNothing) return false;
  make(first, 1);
  make(second, 1);
  return true;
}

void Improver::exchange() {
  while (exchange_once()) fill();
}

Assignment Improver::result() const {
  Assignment assignment{.taken = taken_, .cost = cost_};
  for (auto& row : assignment.taken) row.pop_back();
  return assignment;
}

}  // namespace berth::sia
