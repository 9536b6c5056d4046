#include "policies/sia/assignment.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "policies/sia/improve.h"
#include "policies/sia/prices.h"

namespace berth::sia {

namespace {

/// Rows of equal jobs one by one, and back.
class Singles {
 public:
  explicit Singles(const Program& program) : program_(program) {
    single_.capacity = program.capacity;
    for (std::size_t r = 0; r < program.rows.size(); ++r) {
      for (std::int32_t i = 0; i < program.rows[r].count; ++i) {
        single_.rows.push_back(program.rows[r]);
        single_.rows.back().count = 1;
        row_of_.push_back(r);
      }
    }
  }
  [[nodiscard]] const Program& program() const { return single_; }
  [[nodiscard]] Assignment join(std::span<const std::size_t> choices) const {
    Assignment result;
    for (const Row& row : program_.rows) result.taken.emplace_back(row.options.size());
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (choices[i] < single_.rows[i].options.size()) ++result.taken[row_of_[i]][choices[i]];
    }
    result.cost = cost_of(program_, result);
    return result;
  }

 private:
  const Program& program_;
  Program single_;
  std::vector<std::size_t> row_of_;
};

/// Depth first over the jobs, the ones with most to lose first; a branch that cannot beat the best
/// even at the prices' bound is cut.
class Search {
 public:
  Search(const Program& program, std::int64_t nodes, double known_cost)
      : program_(program), nodes_(nodes), best_cost_(known_cost) {
    // Prices close to the best give a bound that cuts most branches near the root.
    prices_ = find_prices(program, 200, [](auto) {});
    free_ = program.capacity;
    const std::size_t jobs = program.rows.size();
    order_.resize(jobs);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::vector<double> spread(jobs);
    for (std::size_t j = 0; j < jobs; ++j) {
      branches_.push_back(branches_of(j));
      spread[j] = branches_[j].back().priced - branches_[j].front().priced;
    }
    std::ranges::stable_sort(order_, [&](auto a, auto b) { return spread[a] > spread[b]; });
    // No choice of the jobs from a depth on costs less than their cheapest branches at the prices.
    rest_.assign(jobs + 1, 0);
    for (std::size_t d = jobs; d > 0; --d)
      rest_[d - 1] = rest_[d] + branches_[order_[d - 1]].front().priced;
    choice_.resize(jobs);
    for (std::size_t t = 0; t < free_.size(); ++t)
      refund_ += prices_.per_gpu[t] * static_cast<double>(free_[t]);
  }

  /// Looks for what is cheaper than what is known. False if it was given up.
  bool run() {
    descend(0, 0, 0);
    return nodes_ >= 0;
  }
  [[nodiscard]] bool has_found() const { return !best_.empty(); }
  [[nodiscard]] const std::vector<std::size_t>& best() const { return best_; }

 private:
  struct Branch {
    double priced = 0;
    double cost = 0;
    std::size_t option = 0;
  };
  std::vector<Branch> branches_of(std::size_t job) const {
    const Row& row = program_.rows[job];
    std::vector<Branch> branches{{row.none, row.none, row.options.size()}};
    for (std::size_t i = 0; i < row.options.size(); ++i) {
      const Option& option = row.options[i];
      branches.push_back(
          {option.cost + prices_.per_gpu[option.type] * option.gpus, option.cost, i});
    }
    std::ranges::stable_sort(branches, {}, &Branch::priced);
    return branches;
  }

  void descend(std::size_t depth, double priced, double cost) {
    constexpr double kNothing = 1e-12;
    if (--nodes_ < 0) return;
    if (depth == order_.size()) {
      if (cost >= best_cost_ - kNothing) return;
      best_cost_ = cost;
      best_ = choice_;
      return;
    }
    const std::size_t job = order_[depth];
    const Row& row = program_.rows[job];
    for (const Branch& branch : branches_[job]) {
      const double bound = priced + branch.priced + rest_[depth + 1] - refund_;
      if (bound >= best_cost_ - kNothing) return;  // branches are in the order of their price
      const bool takes = branch.option < row.options.size();
      if (takes && free_[row.options[branch.option].type] < row.options[branch.option].gpus)
        continue;
      if (takes) free_[row.options[branch.option].type] -= row.options[branch.option].gpus;
      choice_[job] = branch.option;
      descend(depth + 1, priced + branch.priced, cost + branch.cost);
      if (takes) free_[row.options[branch.option].type] += row.options[branch.option].gpus;
      if (nodes_ < 0) return;
    }
  }

  const Program& program_;
  std::int64_t nodes_;
  double best_cost_;
  Prices prices_;
  std::vector<std::int64_t> free_;
  std::vector<std::size_t> order_;
  std::vector<std::vector<Branch>> branches_;  // by job, cheapest at the prices first
  std::vector<double> rest_;         // by depth: what the jobs from there on cost at least
  std::vector<std::size_t> choice_;  // by job
  std::vector<std::size_t> best_;
  double refund_ = 0;  // what all GPUs together cost at the prices
};

std::int64_t jobs_of(const Program& program) {
  std::int64_t jobs = 0;
  for (const Row& row : program.rows) jobs += row.count;
  return jobs;
}

std::int64_t table_cells(const Program& program) {
  std::int64_t options = 0;
  for (const Row& row : program.rows)
    options += row.count * (static_cast<std::int64_t>(row.options.size()) + 1);
  return options * (program.capacity.front() + 1);
}

}  // namespace

double cost_of(const Program& program, const Assignment& assignment) {
  double cost = 0;
  for (std::size_t r = 0; r < program.rows.size(); ++r) {
    const Row& row = program.rows[r];
    std::int32_t left = row.count;
    for (std::size_t i = 0; i < row.options.size(); ++i) {
      cost += assignment.taken[r][i] * row.options[i].cost;
      left -= assignment.taken[r][i];
    }
    cost += left * row.none;
  }
  return cost;
}

bool is_within_capacity(const Program& program, const Assignment& assignment) {
  std::vector<std::int64_t> free = program.capacity;
  for (std::size_t r = 0; r < program.rows.size(); ++r) {
    const auto& options = program.rows[r].options;
    for (std::size_t i = 0; i < options.size(); ++i)
      free[options[i].type] -= std::int64_t{assignment.taken[r][i]} * options[i].gpus;
  }
  return std::ranges::all_of(free, [](std::int64_t gpus) { return gpus >= 0; });
}

Assignment solve_by_prices(const Program& program, const SolveLimits& limits) {
  constexpr std::size_t kFewRows = 40;  // of which what they choose at each step is repaired
  Improver improver(program);
  std::vector<std::size_t> last;
  std::optional<Assignment> best;
  const auto consider = [&](std::span<const std::size_t> choices) {
    last.assign(choices.begin(), choices.end());
    improver.set(choices);
    improver.repair();
    improver.fill();
    if (!best || improver.cost() < best->cost - 1e-12) best = improver.result();
  };
  // The best prices need not lead to the best assignment: with few rows every step's choice that
  // is nearly feasible is repaired and compared.
  const Prices prices = find_prices(program, limits.iterations, [&](auto choices) {
    const bool few = choices.size() <= kFewRows;
    if (few && !std::ranges::equal(choices, last)) consider(choices);
  });
  std::vector<std::size_t> choices;
  for (const Row& row : program.rows) choices.push_back(choice_at(row, prices.per_gpu));
  consider(choices);
  improver.set(*best);
  // Pairs of moves grow with the square of the moves.
  if (improver.moves() > limits.exchange_moves) return std::move(*best);
  improver.exchange();
  return improver.result();
}

std::optional<Assignment> solve_exactly(const Program& program, std::int64_t nodes) {
  const Singles singles(program);
  Search search(singles.program(), nodes, std::numeric_limits<double>::infinity());
  if (!search.run()) return std::nullopt;
  return singles.join(search.best());
}

Assignment solve_one_type(const Program& program) {
  const Singles singles(program);
  const auto& rows = singles.program().rows;
  const auto gpus = static_cast<std::size_t>(std::max<std::int64_t>(0, program.capacity.front()));
  std::vector<double> cost(gpus + 1, 0);  // of the jobs so far within so many GPUs
  std::vector<double> next(gpus + 1);
  std::vector<std::vector<std::uint32_t>> chosen(rows.size());
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const auto none = static_cast<std::uint32_t>(rows[j].options.size());
    chosen[j].assign(gpus + 1, none);
    for (std::size_t g = 0; g <= gpus; ++g) {
      next[g] = cost[g] + rows[j].none;
      for (std::uint32_t i = 0; i < none; ++i) {
        const auto size = static_cast<std::size_t>(rows[j].options[i].gpus);
        if (size > g || cost[g - size] + rows[j].options[i].cost >= next[g]) continue;
        next[g] = cost[g - size] + rows[j].options[i].cost;
        chosen[j][g] = i;
      }
    }
    cost.swap(next);
  }
  std::vector<std::size_t> choices(rows.size());
  // From the last job back: what it chose leaves so many GPUs to those before it.
  for (std::size_t j = rows.size(), left = gpus; j > 0; --j) {
    choices[j - 1] = chosen[j - 1][left];
    if (choices[j - 1] < rows[j - 1].options.size())
      left -= static_cast<std::size_t>(rows[j - 1].options[choices[j - 1]].gpus);
  }
  return singles.join(choices);
}

Assignment solve(const Program& program, const SolveLimits& limits) {
  if (program.rows.empty()) return {};
  if (program.capacity.size() == 1 && table_cells(program) <= limits.table_cells)
    return solve_one_type(program);
  Assignment good = solve_by_prices(program, limits);
  if (jobs_of(program) > limits.exact_jobs) return good;
  const Singles singles(program);
  Search search(singles.program(), limits.search_nodes, good.cost);
  static_cast<void>(search.run());  // given up or not, what it found is better
  return search.has_found() ? singles.join(search.best()) : good;
}

}  // namespace berth::sia
