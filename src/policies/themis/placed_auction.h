// The partial-allocation auction (common/partial_allocation.h) where it matters on which machines
// GPUs are. Up to three bidders for up to eight GPUs are served exactly, by enumeration; beyond
// that greedily, unit by unit to the bidder that gains most per GPU. A step places the bidder's
// larger number afresh on what is left, and is computed again only if its machines were used
// meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/themis/offer_map.h"

namespace berth::themis {

/// What pieces of the offer are worth to a bidder, with what it holds anyway; 0 = nothing.
class PlacedValues {
 public:
  virtual ~PlacedValues() = default;
  [[nodiscard]] virtual double value(std::size_t bidder, std::span<const Piece> pieces) const = 0;
};

struct PlacedBidder {
  std::vector<std::int32_t> sizes;   // numbers of GPUs it can use, rising, all above zero
  std::vector<std::uint32_t> homes;  // machines it is on already, ascending
};

struct PlacedAllocation {
  std::vector<Pieces> pieces;
  std::vector<double> parts;  // of its pieces each bidder keeps, in [0, 1]
};

inline constexpr std::size_t kExactBidders = 3;
inline constexpr std::int32_t kExactGpus = 8;

/// Bidders for whom nothing is worth nothing get at least their smallest size as long as these fit,
/// in the order given. The map is unchanged afterwards.
[[nodiscard]] PlacedAllocation hold_placed_auction(std::span<const PlacedBidder> bidders,
                                                   const PlacedValues& values, OfferMap& offer);
[[nodiscard]] PlacedAllocation hold_placed_auction_greedily(std::span<const PlacedBidder> bidders,
                                                            const PlacedValues& values,
                                                            OfferMap& offer);

/// The better of staying near its machines and of going where the GPUs are closest together.
[[nodiscard]] Pieces best_place(const PlacedBidder& bidder, std::size_t id,
                                const PlacedValues& values, OfferMap& offer, std::int32_t gpus);

}  // namespace berth::themis
