#include "policies/common/partial_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "base/portable_math.h"

namespace berth {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr double kTie = 1e-12;  // logarithms closer than this are equal
constexpr double kDynamicProgramLimit = 4e6;
constexpr std::uint32_t kLookAhead = 64;  // rows of a curve that one step may skip

/// Logarithms of all rows, one bidder after the other.
class Logs {
 public:
  explicit Logs(std::span<const BidCurve> bidders) {
    starts_.reserve(bidders.size());
    for (const BidCurve& curve : bidders) {
      starts_.push_back(values_.size());
      for (const BidRow& row : curve)
        values_.push_back(row.value > 0 ? portable_log(row.value) : kNothing);
    }
  }
  [[nodiscard]] double of(std::size_t bidder, std::size_t row) const noexcept {
    return values_[starts_[bidder] + row];
  }

 private:
  std::vector<std::size_t> starts_;
  std::vector<double> values_;
};

/// From the row a bidder has to a larger one.
struct Step {
  double per_gpu = 0;
  std::uint32_t bidder = 0;
  std::uint32_t row = 0;
};

/// Total order of a max-heap: the earlier bidder on a tie.
bool comes_later(const Step& a, const Step& b) noexcept {
  return std::tuple(a.per_gpu, b.bidder) < std::tuple(b.per_gpu, a.bidder);
}

class GreedyShare {
 public:
  GreedyShare(std::span<const BidCurve> bidders, const Logs& logs, std::uint32_t ahead)
      : GreedyShare(bidders, logs, ahead, RowChoice(bidders.size(), 0)) {}
  GreedyShare(std::span<const BidCurve> bidders, const Logs& logs, std::uint32_t ahead,
              RowChoice from)
      : bidders_(bidders), logs_(logs), ahead_(ahead), rows_(std::move(from)) {}

  /// Everybody who must have something gets its smallest useful row.
  void give_first_rows(std::int32_t& left) {
    for (std::size_t i = 0; i < bidders_.size(); ++i) {
      if (bidders_[i].front().value > 0) continue;
      BERTH_CHECK(bidders_[i].size() > 1 && bidders_[i][1].gpus <= left,
                  "bidders who need something fit together");
      rows_[i] = 1;
      left -= bidders_[i][1].gpus;
    }
  }

  /// Shares out what is left among all but `absent`.
  void share(std::int32_t left, std::optional<std::size_t> absent = std::nullopt) {
    heap_.clear();
    for (std::size_t i = 0; i < bidders_.size(); ++i) {
      if (i == absent) continue;
      if (const auto step = next_step(i, left)) heap_.push_back(*step);
    }
    std::ranges::make_heap(heap_, comes_later);
    while (!heap_.empty() && left > 0) {
      std::ranges::pop_heap(heap_, comes_later);
      const Step step = heap_.back();
      heap_.pop_back();
      const std::int32_t more = gpus_of(step.bidder, step.row) - gpus_of(step.bidder);
      if (more <= left) {
        left -= more;
        rows_[step.bidder] = step.row;
      }
      if (const auto next = next_step(step.bidder, left)) {
        heap_.push_back(*next);
        std::ranges::push_heap(heap_, comes_later);
      }
    }
  }

  [[nodiscard]] const RowChoice& rows() const noexcept { return rows_; }
  [[nodiscard]] double log_sum(std::optional<std::size_t> absent = std::nullopt) const noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (i != absent) sum += logs_.of(i, rows_[i]);
    return sum;
  }

 private:
  [[nodiscard]] std::int32_t gpus_of(std::size_t bidder) const noexcept {
    return bidders_[bidder][rows_[bidder]].gpus;
  }
  [[nodiscard]] std::int32_t gpus_of(std::size_t bidder, std::uint32_t row) const noexcept {
    return bidders_[bidder][row].gpus;
  }
  /// The step along the upper envelope: most gain per GPU, the shortest of equal ones.
  [[nodiscard]] std::optional<Step> next_step(std::size_t bidder, std::int32_t left) const {
    const std::uint32_t from = rows_[bidder];
    std::optional<Step> best;
    const auto end =
        std::min(static_cast<std::uint32_t>(bidders_[bidder].size()), from + 1 + ahead_);
    for (std::uint32_t row = from + 1; row < end; ++row) {
      const std::int32_t more = gpus_of(bidder, row) - gpus_of(bidder, from);
      if (more > left) break;
      const double per_gpu = (logs_.of(bidder, row) - logs_.of(bidder, from)) / more;
      if (per_gpu > (best ? best->per_gpu + kTie : 0.0))
        best = Step{per_gpu, static_cast<std::uint32_t>(bidder), row};
    }
    return best;
  }

  std::span<const BidCurve> bidders_;
  const Logs& logs_;
  std::uint32_t ahead_;  // 1 is enough for curves that never bend upwards
  RowChoice rows_;
  std::vector<Step> heap_;
};

/// Best sums by number of GPUs, of the bidders before or from each one on.
using Sums = std::vector<std::vector<double>>;

struct Best {
  double sum = kNothing;
  std::uint32_t row = 0;
};

/// The best row of a bidder with so many GPUs for it and for those summed up in `others`; the
/// largest of equal ones.
Best best_row(const BidCurve& curve, const Logs& logs, std::size_t bidder,
              const std::vector<double>& others, std::size_t gpus) {
  Best best;
  for (std::uint32_t row = 0; row < curve.size(); ++row) {
    const auto cost = static_cast<std::size_t>(curve[row].gpus);
    if (cost > gpus) break;
    if (row > 0 && curve[row].value <= curve[row - 1].value) continue;  // GPUs for nothing
    const double sum = logs.of(bidder, row) + others[gpus - cost];
    if (sum > kNothing && sum >= best.sum - kTie) best = {std::max(sum, best.sum), row};
  }
  return best;
}

/// sums[i][g]: the most that the first i bidders, or those from i on, make of g GPUs.
Sums sums_of_first(std::span<const BidCurve> bidders, const Logs& logs, std::size_t gpus) {
  Sums sums{std::vector<double>(gpus + 1, 0.0)};
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    std::vector<double> next(gpus + 1);
    for (std::size_t g = 0; g <= gpus; ++g) next[g] = best_row(bidders[i], logs, i, sums[i], g).sum;
    sums.push_back(std::move(next));
  }
  return sums;
}
Sums sums_of_rest(std::span<const BidCurve> bidders, const Logs& logs, std::size_t gpus) {
  Sums sums(bidders.size() + 1, std::vector<double>(gpus + 1, 0.0));
  for (std::size_t i = bidders.size(); i-- > 0;) {
    for (std::size_t g = 0; g <= gpus; ++g)
      sums[i][g] = best_row(bidders[i], logs, i, sums[i + 1], g).sum;
  }
  return sums;
}

RowChoice walk(std::span<const BidCurve> bidders, const Logs& logs, const Sums& rest,
               std::size_t gpus) {
  RowChoice rows(bidders.size(), 0);
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    rows[i] = best_row(bidders[i], logs, i, rest[i + 1], gpus).row;
    gpus -= static_cast<std::size_t>(bidders[i][rows[i]].gpus);
  }
  return rows;
}

/// Without a curve that bends upwards and with one step for all, the heap finds the optimum.
bool heap_is_exact(std::span<const BidCurve> bidders, const Logs& logs) {
  std::int32_t step = 0;
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    double last = std::numeric_limits<double>::infinity();
    for (std::uint32_t row = 1; row < bidders[i].size(); ++row) {
      const std::int32_t gpus = bidders[i][row].gpus - bidders[i][row - 1].gpus;
      if (step == 0) step = gpus;
      const double gain = logs.of(i, row) - logs.of(i, row - 1);
      if (gpus != step || gain > last + kTie) return false;
      last = gain;
    }
  }
  return true;
}

double program_size(std::span<const BidCurve> bidders, std::int32_t gpus) {
  double rows = 0;
  for (const BidCurve& curve : bidders) rows += static_cast<double>(curve.size());
  return rows * gpus;
}

PartialAllocation greedily(std::span<const BidCurve> bidders, const Logs& logs, std::int32_t gpus,
                           std::uint32_t ahead) {
  GreedyShare chosen{bidders, logs, ahead};
  std::int32_t left = gpus;
  chosen.give_first_rows(left);
  chosen.share(left);
  PartialAllocation result{chosen.rows(), std::vector<double>(bidders.size(), 1.0)};
  std::int32_t unsold = gpus;
  for (std::size_t i = 0; i < bidders.size(); ++i) unsold -= bidders[i][result.rows[i]].gpus;
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    if (result.rows[i] == 0) continue;
    // Without it the others share out what it has, starting from what they have.
    GreedyShare without{bidders, logs, ahead, result.rows};
    without.share(unsold + bidders[i][result.rows[i]].gpus, i);
    result.parts[i] = std::min(1.0, portable_exp(chosen.log_sum(i) - without.log_sum(i)));
  }
  return result;
}

PartialAllocation exactly(std::span<const BidCurve> bidders, const Logs& logs, std::int32_t gpus) {
  const auto all = static_cast<std::size_t>(std::max(0, gpus));
  const Sums first = sums_of_first(bidders, logs, all);
  const Sums rest = sums_of_rest(bidders, logs, all);
  PartialAllocation result{walk(bidders, logs, rest, all), {}};
  const double total = log_welfare(bidders, result.rows);
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    double without = kNothing;
    for (std::size_t g = 0; g <= all; ++g)
      without = std::max(without, first[i][g] + rest[i + 1][all - g]);
    const double others = total - logs.of(i, result.rows[i]);
    result.parts.push_back(result.rows[i] == 0 ? 1.0
                                               : std::min(1.0, portable_exp(others - without)));
  }
  return result;
}

}  // namespace

void make_monotone(BidCurve& curve) {
  for (std::size_t row = 1; row < curve.size(); ++row)
    curve[row].value = std::max(curve[row].value, curve[row - 1].value);
}

PartialAllocation hold_auction_greedily(std::span<const BidCurve> bidders, std::int32_t gpus) {
  return greedily(bidders, Logs{bidders}, gpus, kLookAhead);
}

PartialAllocation hold_auction_exactly(std::span<const BidCurve> bidders, std::int32_t gpus) {
  return exactly(bidders, Logs{bidders}, gpus);
}

PartialAllocation hold_auction(std::span<const BidCurve> bidders, std::int32_t gpus) {
  const Logs logs{bidders};
  if (heap_is_exact(bidders, logs)) return greedily(bidders, logs, gpus, 1);
  return program_size(bidders, gpus) <= kDynamicProgramLimit
             ? exactly(bidders, logs, gpus)
             : greedily(bidders, logs, gpus, kLookAhead);
}

std::int32_t gpus_kept(double part, std::int32_t gpus) noexcept {
  return static_cast<std::int32_t>(std::floor(part * gpus + 1e-9));
}

std::uint32_t row_kept(const BidCurve& curve, std::uint32_t row, double part) {
  const std::int32_t most = gpus_kept(part, curve[row].gpus);
  while (curve[row].gpus > most) --row;
  return row;
}

double log_welfare(std::span<const BidCurve> bidders, const RowChoice& rows) {
  double sum = 0;
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    const double value = bidders[i][rows[i]].value;
    sum += value > 0 ? portable_log(value) : kNothing;
  }
  return sum;
}

std::int32_t hand_out(std::span<const BidCurve> bidders, std::span<const std::uint32_t> ids,
                      RowChoice& rows, std::int32_t left) {
  using Key = std::tuple<double, std::uint32_t, std::size_t>;
  const auto key_of = [&](std::size_t i) {
    const double value = bidders[i][rows[i]].value;
    return Key{value, value > 0 ? ids[i] : 0U, i};
  };
  std::vector<Key> heap;
  for (std::size_t i = 0; i < bidders.size(); ++i) heap.push_back(key_of(i));
  std::ranges::make_heap(heap, std::ranges::greater{});
  while (!heap.empty() && left > 0) {
    std::ranges::pop_heap(heap, std::ranges::greater{});
    const std::size_t i = std::get<2>(heap.back());
    heap.pop_back();
    if (rows[i] + 1 >= bidders[i].size()) continue;
    const std::int32_t more = bidders[i][rows[i] + 1].gpus - bidders[i][rows[i]].gpus;
    if (more > left) continue;  // and less will be left later
    left -= more;
    ++rows[i];
    heap.push_back(key_of(i));
    std::ranges::push_heap(heap, std::ranges::greater{});
  }
  return left;
}

std::vector<std::size_t> who_can_take_part(std::span<const std::int32_t> least, std::int32_t gpus) {
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < least.size(); ++i) {
    if (least[i] > gpus) continue;
    gpus -= least[i];
    members.push_back(i);
  }
  return members;
}

}  // namespace berth
