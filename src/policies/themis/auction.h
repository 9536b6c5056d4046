// One pool's auction: the worst-off apps see the offer and bid, what they win is cut by the hidden
// payments, and what is left goes to other apps at random, then to the bidders that are worst off.
// It answers who gets how much, and where distance counts also where; grants.h carries it out.
//
// The values of bids are those of fairness.h; the allocation is common/partial_allocation.h, or
// placed_auction.h where distance counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/kit/pass.h"
#include "policies/themis/apps.h"
#include "policies/themis/offer.h"

namespace berth::themis {

class Auction {
 public:
  Auction(const Options& options, Apps& apps) : options_(options), apps_(apps) {}

  /// Who gets what of the offer. They are out of all markets until they are refreshed.
  [[nodiscard]] std::vector<Stake> hold(Pass& pass, Offer& offer);
  /// The worst-off part of the apps, as far as all of them can have something. Those before them
  /// whose gang is too large have missed an auction.
  std::vector<AppId> invite(const View& view, PoolId pool, std::int32_t gpus);

 private:
  [[nodiscard]] std::vector<AppId> worst_off(const View& view, PoolId pool, std::size_t count);
  void sell(const Pass& pass, Offer& offer, std::span<Stake> bidders) const;
  void sell_placed(const Pass& pass, Offer& offer, std::span<Stake> bidders) const;
  void serve_outsiders(Pass& pass, Offer& offer, std::vector<Stake>& stakes);
  void serve_bidders(Offer& offer, std::span<Stake> bidders) const;

  const Options& options_;
  Apps& apps_;
};

}  // namespace berth::themis
