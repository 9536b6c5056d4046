#include "policies/agents/auction.h"

#include <algorithm>
#include <tuple>

#include "base/portable_math.h"

namespace berth::agents {

namespace {

double gain(const Bidder& bidder, const std::optional<std::uint32_t>& bid) {
  return bid ? portable_log(bidder.badness_now / bidder.bids[*bid].badness) : 0;
}
std::int32_t cost(const Bidder& bidder, const std::optional<std::uint32_t>& bid) {
  return bid ? bidder.bids[*bid].gpus : 0;
}

class ExactSearch {
 public:
  ExactSearch(std::span<const Bidder> bidders, std::int32_t gpus)
      : bidders_(bidders),
        present_(bidders.size()),
        best_(bidders.size()),
        hope_(bidders.size() + 1) {
    for (std::size_t i = bidders.size(); i-- > 0;) {  // the most that those from i on could add
      double most = 0;
      for (std::uint32_t bid = 0; bid < bidders[i].bids.size(); ++bid)
        most = std::max(most, gain(bidders[i], bid));
      hope_[i] = hope_[i + 1] + most;
    }
    search(0, gpus, 0);
  }
  [[nodiscard]] Choice best() && { return std::move(best_); }

 private:
  void search(std::size_t i, std::int32_t gpus, double so_far) {
    if (so_far + hope_[i] <= best_gain_) return;
    if (i == bidders_.size()) {
      best_ = present_;
      best_gain_ = so_far;
      return;
    }
    for (std::uint32_t bid = 0; bid < bidders_[i].bids.size(); ++bid) {
      if (bidders_[i].bids[bid].gpus > gpus) continue;
      present_[i] = bid;
      search(i + 1, gpus - bidders_[i].bids[bid].gpus, so_far + gain(bidders_[i], bid));
    }
    present_[i].reset();
    search(i + 1, gpus, so_far);
  }

  std::span<const Bidder> bidders_;
  Choice present_;
  Choice best_;
  double best_gain_ = 0;
  std::vector<double> hope_;
};

/// The next bid of a bidder that gains most per additional GPU, within what is left.
struct Step {
  double per_gpu = 0;
  std::uint32_t bidder = 0;
  std::uint32_t bid = 0;
};

std::optional<Step> next_step(const Bidder& bidder, std::uint32_t id,
                              const std::optional<std::uint32_t>& held, std::int32_t left) {
  std::optional<Step> best;
  for (std::uint32_t bid = 0; bid < bidder.bids.size(); ++bid) {
    const std::int32_t more = bidder.bids[bid].gpus - cost(bidder, held);
    const double better = gain(bidder, bid) - gain(bidder, held);
    if (more <= 0 || more > left || better <= 0) continue;
    const Step step{better / more, id, bid};
    if (!best || step.per_gpu > best->per_gpu) best = step;
  }
  return best;
}

/// Shares out anew what two bidders have and what is unsold.
void swap_pair(const Bidder& a, const Bidder& b, std::optional<std::uint32_t>& bid_a,
               std::optional<std::uint32_t>& bid_b, std::int32_t& left) {
  const std::int32_t pot = left + cost(a, bid_a) + cost(b, bid_b);
  double most = gain(a, bid_a) + gain(b, bid_b) + 1e-12;
  const auto bids_of = [](const Bidder& bidder) {
    std::vector<std::optional<std::uint32_t>> bids{std::nullopt};
    for (std::uint32_t i = 0; i < bidder.bids.size(); ++i) bids.emplace_back(i);
    return bids;
  };
  for (const auto& x : bids_of(a)) {
    for (const auto& y : bids_of(b)) {
      if (cost(a, x) + cost(b, y) > pot || gain(a, x) + gain(b, y) <= most) continue;
      most = gain(a, x) + gain(b, y);
      bid_a = x;
      bid_b = y;
    }
  }
  left = pot - cost(a, bid_a) - cost(b, bid_b);
}

}  // namespace

Choice solve_exactly(std::span<const Bidder> bidders, std::int32_t gpus) {
  return ExactSearch(bidders, gpus).best();
}

Choice solve_greedily(std::span<const Bidder> bidders, std::int32_t gpus) {
  Choice choice(bidders.size());
  std::int32_t left = gpus;
  const auto worse = [](const Step& a, const Step& b) {  // total order: ends at the bidder
    return std::tuple(a.per_gpu, b.bidder) < std::tuple(b.per_gpu, a.bidder);
  };
  std::vector<Step> heap;
  const auto offer = [&](std::uint32_t id) {
    const auto step = next_step(bidders[id], id, choice[id], left);
    if (!step) return;
    heap.push_back(*step);
    std::ranges::push_heap(heap, worse);
  };
  for (std::uint32_t i = 0; i < bidders.size(); ++i) offer(i);
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, worse);
    const Step step = heap.back();
    heap.pop_back();
    const std::int32_t more =
        bidders[step.bidder].bids[step.bid].gpus - cost(bidders[step.bidder], choice[step.bidder]);
    if (more <= left) {
      left -= more;
      choice[step.bidder] = step.bid;
    }
    offer(step.bidder);  // its next upgrade, or what still fits
  }
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    for (std::size_t j = i + 1; j < bidders.size(); ++j)
      swap_pair(bidders[i], bidders[j], choice[i], choice[j], left);
  }
  return choice;
}

Choice solve_auction(std::span<const Bidder> bidders, std::int32_t gpus) {
  return bidders.size() <= kExactBidders ? solve_exactly(bidders, gpus)
                                         : solve_greedily(bidders, gpus);
}

double welfare(std::span<const Bidder> bidders, const Choice& choice) {
  double sum = 0;
  for (std::size_t i = 0; i < bidders.size(); ++i) sum += gain(bidders[i], choice[i]);
  return sum;
}

std::int32_t gpus_sold(std::span<const Bidder> bidders, const Choice& choice) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < bidders.size(); ++i) sum += cost(bidders[i], choice[i]);
  return sum;
}

std::vector<double> payments(std::span<const Bidder> bidders, std::int32_t gpus,
                             const Choice& choice) {
  std::vector<double> parts(bidders.size(), 1);
  const double all = welfare(bidders, choice);
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    if (!choice[i]) continue;
    std::vector<Bidder> others(bidders.begin(), bidders.end());
    others[i].bids.clear();
    const double without = welfare(others, solve_auction(others, gpus));
    parts[i] = std::min(1.0, portable_exp(all - gain(bidders[i], choice[i]) - without));
  }
  return parts;
}

}  // namespace berth::agents
