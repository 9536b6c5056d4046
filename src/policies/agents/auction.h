// The auction of the arbiter: bidders say how badly off they would be with each of a few
// allocations (for fairness that is rho, finish time against the ideal), and the arbiter picks at
// most one bid of each so that the product of what is left is smallest (Nash welfare). Nothing is
// known here of jobs, devices or time.
//
// Exact for at most eight bidders (branch and bound). Beyond that greedy by log-improvement per
// GPU, with larger bids of the same bidder as upgrades, then one pass in which every pair of
// bidders shares out anew what the two have and what is unsold: O(b log b + n^2 bids^2).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace berth::agents {

inline constexpr std::size_t kMaxBids = 5;
inline constexpr std::size_t kExactBidders = 8;

struct Bid {
  std::int32_t gpus = 1;  // beyond what the bidder keeps anyway
  double badness = 1;     // with them; positive, lower is better
};

struct Bidder {
  double badness_now = 1;  // with nothing of this offer
  std::vector<Bid> bids;
};

/// The bid of each bidder, or none.
using Choice = std::vector<std::optional<std::uint32_t>>;

[[nodiscard]] Choice solve_exactly(std::span<const Bidder> bidders, std::int32_t gpus);
[[nodiscard]] Choice solve_greedily(std::span<const Bidder> bidders, std::int32_t gpus);
/// One or the other, by the number of bidders.
[[nodiscard]] Choice solve_auction(std::span<const Bidder> bidders, std::int32_t gpus);

/// Sum of log(badness now / badness then) over all bidders: what the auction maximises.
[[nodiscard]] double welfare(std::span<const Bidder> bidders, const Choice& choice);
[[nodiscard]] std::int32_t gpus_sold(std::span<const Bidder> bidders, const Choice& choice);

/// The hidden payment: the part of its bid each winner really gets, product of the others'
/// improvements with it over that without it. At most 1; 1 for who won nothing or is in nobody's
/// way. Makes telling the truth the best bid.
[[nodiscard]] std::vector<double> payments(std::span<const Bidder> bidders, std::int32_t gpus,
                                           const Choice& choice);

}  // namespace berth::agents
