#include "policies/pollux/genetic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "policies/pollux/fitness.h"

namespace berth::pollux {

namespace {

constexpr double kSame = 1e-9;  // of the fitness

std::int32_t sum_of(std::span<const std::uint8_t> row) {
  std::int32_t sum = 0;
  for (const std::uint8_t gpus : row) sum += gpus;
  return sum;
}

std::int32_t count_of(std::span<const std::uint8_t> row) {
  std::int32_t count = 0;
  for (const std::uint8_t gpus : row) count += gpus != 0 ? 1 : 0;
  return count;
}

/// Probability 1/n as a bound for a random word.
std::uint64_t one_in(std::int32_t n) {
  return n <= 1 ? UINT64_MAX : UINT64_MAX / static_cast<std::uint64_t>(n);
}

void shuffle(std::span<std::uint32_t> items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

}  // namespace

Genetic::Genetic(const GeneticProblem& problem, Rng& rng)
    : problem_(problem), rng_(rng), nodes_(problem.nodes()) {
  values_.resize(problem.jobs.size());
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    const GeneticJob& job = problem.jobs[j];
    auto& values = values_[j];
    values.reserve(4 * job.one_node.size());
    for (const double moved : {1.0, job.restart}) {
      for (const auto* table : {&job.one_node, &job.spread}) {
        for (const double utility : *table) values.push_back(powered(utility * moved, problem.p));
      }
    }
  }
}

double Genetic::score(std::span<const std::uint8_t> all) const {
  double sum = 0;
  for (std::size_t j = 0; j < values_.size(); ++j) {
    const auto here = all.subspan(j * nodes_, nodes_);
    const auto now = std::span(problem_.current).subspan(j * nodes_, nodes_);
    const bool moved = !std::ranges::equal(here, now);
    const bool is_spread = count_of(here) > 1;
    const std::size_t sizes = problem_.jobs[j].one_node.size();
    const std::size_t table = (moved ? 2U : 0U) + (is_spread ? 1U : 0U);
    sum += values_[j][table * sizes + static_cast<std::size_t>(sum_of(here))];
  }
  return sum;
}

double Genetic::fitness(std::span<const std::uint8_t> all) const {
  return power_mean(score(all), static_cast<double>(values_.size()), problem_.p);
}

std::size_t Genetic::tournament(std::size_t members) {
  const std::size_t a = rng_.below(members);
  const std::size_t b = rng_.below(members);
  return is_better(scores_[b], scores_[a]) ? b : a;
}

/// Rows before a point from one parent, the rest from the other.
void Genetic::cross(const Allocations& first, const Allocations& second, Allocations& child) {
  const auto at = static_cast<std::ptrdiff_t>(rng_.below(problem_.jobs.size() + 1) * nodes_);
  child.resize(first.size());
  std::copy(first.begin(), first.begin() + at, child.begin());
  std::copy(second.begin() + at, second.end(), child.begin() + at);
}

/// About one element of a row that is zero grows, and about one that is not changes.
void Genetic::mutate(std::span<std::uint8_t> all) {
  for (std::size_t j = 0; j < problem_.jobs.size(); ++j) {
    if (problem_.jobs[j].pinned) continue;
    const auto cells = row(all, j);
    const std::int32_t used = count_of(cells);
    const std::uint64_t if_used = one_in(used);
    const std::uint64_t if_zero = one_in(static_cast<std::int32_t>(nodes_) - used);
    for (std::size_t n = 0; n < nodes_; ++n) {
      if (rng_.next() > (cells[n] != 0 ? if_used : if_zero)) continue;
      cells[n] = static_cast<std::uint8_t>(
          rng_.below(static_cast<std::uint64_t>(problem_.capacity[n]) + 1));
    }
  }
}

void Genetic::draw_order() {
  order_.resize(problem_.jobs.size());
  std::iota(order_.begin(), order_.end(), 0U);
  shuffle(order_, rng_);
  std::ranges::stable_partition(order_, [&](std::uint32_t j) { return problem_.jobs[j].pinned; });
}

void Genetic::restore_pinned(std::span<std::uint8_t> all) {
  for (std::size_t j = 0; j < problem_.jobs.size(); ++j) {
    if (!problem_.jobs[j].pinned) continue;
    const auto now = std::span(problem_.current).subspan(j * nodes_, nodes_);
    std::ranges::copy(now, row(all, j).begin());
  }
}

/// Node by node, only the first distributed job stays; one that was cut to a single node is none.
void Genetic::separate_distributed(std::span<std::uint8_t> all) {
  if (problem_.interference == Interference::Allow) return;
  node_count_.resize(problem_.jobs.size());
  distributed_.clear();
  for (const std::uint32_t j : order_) {
    node_count_[j] = count_of(row(all, j));
    if (node_count_[j] > 1) distributed_.push_back(j);
  }
  if (distributed_.size() < 2) return;
  for (std::size_t n = 0; n < nodes_; ++n) {
    bool taken = false;
    for (const std::uint32_t j : distributed_) {
      std::uint8_t& gpus = all[j * nodes_ + n];
      if (gpus == 0 || node_count_[j] < 2) continue;
      if (taken && !problem_.jobs[j].pinned) {
        gpus = 0;
        --node_count_[j];
      }
      taken = true;
    }
  }
}

void Genetic::cap_jobs(std::span<std::uint8_t> all) {
  for (std::size_t j = 0; j < problem_.jobs.size(); ++j) {
    const GeneticJob& job = problem_.jobs[j];
    const auto cells = row(all, j);
    if (job.pinned || sum_of(cells) <= job.most) continue;
    used_nodes_.clear();
    for (std::uint32_t n = 0; n < nodes_; ++n) {
      if (cells[n] != 0) used_nodes_.push_back(n);
    }
    shuffle(used_nodes_, rng_);
    std::int32_t left = job.most;
    for (const std::uint32_t n : used_nodes_) {
      const std::int32_t kept = std::min<std::int32_t>(cells[n], left);
      cells[n] = static_cast<std::uint8_t>(kept);
      left -= kept;
    }
  }
}

void Genetic::cap_nodes(std::span<std::uint8_t> all) {
  load_.assign(nodes_, 0);
  for (std::size_t j = 0; j < problem_.jobs.size(); ++j) {
    const auto cells = row(all, j);
    for (std::size_t n = 0; n < nodes_; ++n) load_[n] += cells[n];
  }
  for (std::size_t n = 0; n < nodes_; ++n) {
    if (load_[n] <= problem_.capacity[n]) continue;
    std::int32_t left = problem_.capacity[n];
    for (const std::uint32_t j : order_) {
      std::uint8_t& gpus = all[j * nodes_ + n];
      const std::int32_t kept = std::min<std::int32_t>(gpus, left);
      gpus = static_cast<std::uint8_t>(kept);
      left -= kept;
    }
  }
}

void Genetic::drop_small(std::span<std::uint8_t> all) {
  for (std::size_t j = 0; j < problem_.jobs.size(); ++j) {
    const GeneticJob& job = problem_.jobs[j];
    const auto cells = row(all, j);
    if (!job.pinned && sum_of(cells) < job.least) std::ranges::fill(cells, std::uint8_t{0});
  }
}

void Genetic::repair(std::span<std::uint8_t> all) {
  // In a random order, so that nobody is cut for its place in the table. Once pinned rows are back
  // each step only takes GPUs away, so that none undoes another; the last drops who has too few.
  draw_order();
  restore_pinned(all);
  separate_distributed(all);
  cap_jobs(all);
  cap_nodes(all);
  drop_small(all);
}

/// The members given, what is now, and variations of it.
void Genetic::populate(std::size_t size, std::vector<Allocations>& members) {
  for (Allocations& member : members) repair(member);
  if (members.size() >= size) members.resize(size - 1);
  members.push_back(problem_.current);  // so that the result is never worse than staying
  while (members.size() < size) {
    Allocations member = problem_.current;
    mutate(member);
    repair(member);
    members.push_back(std::move(member));
  }
  scores_.clear();
  for (const Allocations& member : members) scores_.push_back(score(member));
}

/// As many children as there are members.
void Genetic::breed(std::vector<Allocations>& members) {
  const std::size_t size = members.size();
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t a = tournament(size);
    const std::size_t b = tournament(size);
    if (spare_.empty()) spare_.emplace_back();
    Allocations child = std::move(spare_.back());
    spare_.pop_back();
    cross(members[a], members[b], child);
    mutate(child);
    repair(child);
    scores_.push_back(score(child));
    members.push_back(std::move(child));
  }
}

/// The best of parents and children, best first; elders first among equals.
void Genetic::survive(std::size_t size, std::vector<Allocations>& members) {
  order_.resize(members.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    if (scores_[a] != scores_[b]) return is_better(scores_[a], scores_[b]);
    return a < b;
  });
  std::vector<Allocations> survivors;
  std::vector<double> their_scores;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Allocations& member = members[order_[i]];
    if (i >= size) {
      spare_.push_back(std::move(member));
      continue;
    }
    survivors.push_back(std::move(member));
    their_scores.push_back(scores_[order_[i]]);
  }
  members.swap(survivors);
  scores_.swap(their_scores);
}

GeneticResult Genetic::run(const GeneticOptions& options, std::vector<Allocations>& population) {
  const std::size_t size = std::max<std::size_t>(2, options.population);
  populate(size, population);
  survive(size, population);
  const std::size_t affordable =
      options.most_cells / std::max<std::size_t>(1, size * problem_.cells());
  const auto most = static_cast<std::int32_t>(std::min<std::size_t>(
      static_cast<std::size_t>(options.generations), std::max<std::size_t>(2, affordable)));
  GeneticResult result;
  for (std::int32_t idle = 0; result.generations < most && idle < options.patience;) {
    const double before = scores_.front();
    breed(population);
    survive(size, population);
    ++result.generations;
    idle = is_better(scores_.front(), before) ? 0 : idle + 1;
  }
  const auto jobs = static_cast<double>(values_.size());
  const double stay = power_mean(score(problem_.current), jobs, problem_.p);
  result.fitness = power_mean(scores_.front(), jobs, problem_.p);
  result.best = result.fitness > stay + kSame ? population.front() : problem_.current;
  result.fitness = std::max(result.fitness, stay);
  return result;
}

}  // namespace berth::pollux
