#include "policies/themis/placed_auction.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "base/portable_math.h"

namespace berth::themis {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr double kTie = 1e-12;

double log_of(double value) { return value > 0 ? portable_log(value) : kNothing; }

/// Every way to give a bidder one of its sizes, or nothing.
struct Option {
  Pieces pieces;
  double log_value = 0;
};

std::int32_t gpus_at_home(const Pieces& pieces, std::span<const std::uint32_t> homes) {
  std::int32_t sum = 0;
  for (const Piece& piece : pieces)
    sum += std::ranges::binary_search(homes, piece.machine) ? piece.gpus : 0;
  return sum;
}

class Enumeration {
 public:
  Enumeration(std::span<const PlacedBidder> bidders, const PlacedValues& values,
              const OfferMap& offer)
      : free_(offer.machines()), options_(bidders.size()) {
    for (std::uint32_t i = 0; i < free_.size(); ++i) free_[i] = offer.free_on(i);
    for (std::size_t i = 0; i < bidders.size(); ++i) {
      Pieces present;
      list_options(bidders[i], 0, 0, present, [&](const Pieces& pieces) {
        options_[i].push_back({pieces, log_of(values.value(i, pieces))});
      });
      // Of equal choices the first is taken: the one that moves least.
      std::ranges::stable_sort(options_[i], std::ranges::greater{}, [&](const Option& option) {
        return gpus_at_home(option.pieces, bidders[i].homes);
      });
    }
  }

  /// The most of the sum of logarithms without `absent`; the first of equal choices.
  [[nodiscard]] double solve(std::optional<std::size_t> absent, std::vector<Pieces>* chosen) {
    absent_ = absent;
    best_ = kNothing;
    present_.assign(options_.size(), nullptr);
    search(0, 0, chosen);
    return best_;
  }

 private:
  /// More on machines of low number first.
  template <class Add>
  void list_options(const PlacedBidder& bidder, std::uint32_t machine, std::int32_t sum,
                    Pieces& present, const Add& add) {
    if (machine == free_.size()) {
      if (sum == 0 || std::ranges::binary_search(bidder.sizes, sum)) add(present);
      return;
    }
    const std::int32_t most = bidder.sizes.empty() ? 0 : bidder.sizes.back() - sum;
    for (std::int32_t gpus = std::min(most, free_[machine]); gpus >= 0; --gpus) {
      if (gpus > 0) present.push_back({machine, gpus});
      list_options(bidder, machine + 1, sum + gpus, present, add);
      if (gpus > 0) present.pop_back();
    }
  }

  void search(std::size_t bidder, double sum, std::vector<Pieces>* chosen) {
    if (bidder == options_.size()) {
      if (sum <= best_ + kTie) return;
      best_ = sum;
      if (chosen == nullptr) return;
      chosen->clear();
      for (const Option* option : present_) chosen->push_back(option ? option->pieces : Pieces{});
      return;
    }
    if (bidder == absent_) {
      search(bidder + 1, sum, chosen);
      return;
    }
    for (const Option& option : options_[bidder]) {
      if (option.log_value == kNothing || !fits(option.pieces)) continue;
      present_[bidder] = &option;
      change(option.pieces, -1);
      search(bidder + 1, sum + option.log_value, chosen);
      change(option.pieces, +1);
    }
  }
  [[nodiscard]] bool fits(const Pieces& pieces) const {
    return std::ranges::all_of(
        pieces, [&](const Piece& piece) { return piece.gpus <= free_[piece.machine]; });
  }
  void change(const Pieces& pieces, std::int32_t sign) {
    for (const Piece& piece : pieces) free_[piece.machine] += sign * piece.gpus;
  }

  std::vector<std::int32_t> free_;
  std::vector<std::vector<Option>> options_;
  std::vector<const Option*> present_;
  std::optional<std::size_t> absent_;
  double best_ = kNothing;
};

class Greedy {
 public:
  struct Holding {
    Pieces pieces;
    std::size_t size = 0;  // sizes it has passed
    double log_value = 0;
  };
  Greedy(std::span<const PlacedBidder> bidders, const PlacedValues& values, OfferMap& offer)
      : bidders_(bidders), values_(values), offer_(offer) {}

  void start() {
    for (std::size_t i = 0; i < bidders_.size(); ++i)
      holdings_.push_back({{}, 0, log_of(values_.value(i, {}))});
    for (std::size_t i = 0; i < bidders_.size(); ++i) {  // everybody who has nothing
      if (holdings_[i].log_value > kNothing || bidders_[i].sizes.empty()) continue;
      if (const auto step = next_step(i)) carry_out(*step);
    }
  }

  void share(std::optional<std::size_t> absent) {
    std::vector<Step> heap;
    const auto later = [](const Step& a, const Step& b) {
      return std::tuple(a.per_gpu, b.bidder) < std::tuple(b.per_gpu, a.bidder);
    };
    const auto offer_next = [&](std::size_t bidder) {
      auto step = next_step(bidder);
      if (!step || step->per_gpu <= 0) return;
      heap.push_back(*std::move(step));
      std::ranges::push_heap(heap, later);
    };
    for (std::size_t i = 0; i < bidders_.size(); ++i)
      if (i != absent) offer_next(i);
    while (!heap.empty()) {
      std::ranges::pop_heap(heap, later);
      const Step step = std::move(heap.back());
      heap.pop_back();
      if (is_possible(step)) carry_out(step);  // otherwise its machines were used meanwhile
      offer_next(step.bidder);
    }
  }

  /// Takes everything back out of the map.
  void undo() {
    for (const Holding& holding : holdings_) offer_.give(holding.pieces);
  }
  void redo(const std::vector<Holding>& holdings) {
    undo();
    holdings_ = holdings;
    for (const Holding& holding : holdings_) offer_.take(holding.pieces);
  }
  void drop(std::size_t bidder) {
    offer_.give(holdings_[bidder].pieces);
    holdings_[bidder].pieces.clear();
  }
  [[nodiscard]] const std::vector<Holding>& holdings() const noexcept { return holdings_; }
  [[nodiscard]] double log_sum(std::size_t absent) const noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < holdings_.size(); ++i)
      if (i != absent) sum += holdings_[i].log_value;
    return sum;
  }

 private:
  struct Step {
    double per_gpu = 0;
    std::size_t bidder = 0;
    std::size_t size = 0;
    double log_value = 0;
    Pieces pieces;
  };
  /// To its next size, placed afresh on what is left and what it has.
  [[nodiscard]] std::optional<Step> next_step(std::size_t bidder) {
    const Holding& holding = holdings_[bidder];
    const auto& sizes = bidders_[bidder].sizes;
    if (holding.size == sizes.size()) return std::nullopt;
    const std::int32_t gpus = sizes[holding.size];
    const std::int32_t more = gpus - gpus_in(holding.pieces);
    if (more > offer_.free()) return std::nullopt;
    offer_.give(holding.pieces);
    Step step{0, bidder, holding.size + 1, 0,
              best_place(bidders_[bidder], bidder, values_, offer_, gpus)};
    offer_.take(holding.pieces);
    step.log_value = log_of(values_.value(bidder, step.pieces));
    step.per_gpu = (step.log_value - holding.log_value) / more;
    return step;
  }
  [[nodiscard]] bool is_possible(const Step& step) {
    const Pieces& own = holdings_[step.bidder].pieces;
    offer_.give(own);
    const bool possible = offer_.has(step.pieces);
    offer_.take(own);
    return possible;
  }
  void carry_out(const Step& step) {
    Holding& holding = holdings_[step.bidder];
    offer_.give(holding.pieces);
    offer_.take(step.pieces);
    holding = {step.pieces, step.size, step.log_value};
  }

  std::span<const PlacedBidder> bidders_;
  const PlacedValues& values_;
  OfferMap& offer_;
  std::vector<Holding> holdings_;
};

/// Nothing if the bidders that need something cannot all have it.
std::optional<PlacedAllocation> exactly(std::span<const PlacedBidder> bidders,
                                        const PlacedValues& values, const OfferMap& offer) {
  Enumeration all{bidders, values, offer};
  PlacedAllocation result;
  const double total = all.solve(std::nullopt, &result.pieces);
  if (total == kNothing) return std::nullopt;
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    const double others = total - log_of(values.value(i, result.pieces[i]));
    const double without = all.solve(i, nullptr);
    result.parts.push_back(
        result.pieces[i].empty() ? 1.0 : std::min(1.0, portable_exp(others - without)));
  }
  return result;
}

}  // namespace

Pieces best_place(const PlacedBidder& bidder, std::size_t id, const PlacedValues& values,
                  OfferMap& offer, std::int32_t gpus) {
  Pieces afresh = offer.best_fit(gpus);
  if (bidder.homes.empty()) return afresh;
  Pieces near = offer.near(bidder.homes, gpus);
  return values.value(id, afresh) > values.value(id, near) * (1 + kTie) ? afresh : near;
}

PlacedAllocation hold_placed_auction_greedily(std::span<const PlacedBidder> bidders,
                                              const PlacedValues& values, OfferMap& offer) {
  Greedy greedy{bidders, values, offer};
  greedy.start();
  greedy.share(std::nullopt);
  const auto chosen = greedy.holdings();
  PlacedAllocation result;
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    result.pieces.push_back(chosen[i].pieces);
    result.parts.push_back(1.0);
    if (chosen[i].pieces.empty()) continue;
    const double with = greedy.log_sum(i);
    greedy.drop(i);  // the others share out what it has, starting from what they have
    greedy.share(i);
    const double without = greedy.log_sum(i);
    if (without > kNothing) result.parts.back() = std::min(1.0, portable_exp(with - without));
    greedy.redo(chosen);
  }
  greedy.undo();
  return result;
}

PlacedAllocation hold_placed_auction(std::span<const PlacedBidder> bidders,
                                     const PlacedValues& values, OfferMap& offer) {
  if (bidders.size() <= kExactBidders && offer.free() <= kExactGpus)
    if (auto exact = exactly(bidders, values, offer)) return *std::move(exact);
  return hold_placed_auction_greedily(bidders, values, offer);
}

}  // namespace berth::themis
