// GPUs of one pool that are offered together: how many, and, where distance counts, on which
// machines. Machines are numbered by the offer, in the order of their NodeIds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/plan.h"
#include "core/view.h"
#include "policies/themis/apps.h"
#include "policies/themis/offer_map.h"

namespace berth::themis {

struct Offer {
  PoolId pool;
  std::int32_t left = 0;
  std::vector<NodeId> nodes = {};    // by machine
  std::optional<OfferMap> map = {};  // only where distance counts

  /// Machines on which some of these jobs have GPUs, ascending; none without a map.
  [[nodiscard]] std::vector<std::uint32_t> machines_of(const Plan& plan,
                                                       std::span<const JobId> jobs) const;
  /// The stake gets GPUs near to those it has. Nothing happens without a map.
  void take_near(Stake& stake, std::int32_t gpus);
};

/// What is free in the pool and what is held on ended leases.
[[nodiscard]] Offer make_offer(const View& view, const Plan& plan, const Apps& apps, PoolId pool,
                               Slowdown slowdown);

/// Which job of an app gets which of its pieces, if its GPUs are split like this: the largest gangs
/// choose first, each where it is already, then the tightest fit. Only for an offer with a map.
[[nodiscard]] std::vector<Pieces> deal(const Plan& plan, const Apps& apps, const Offer& offer,
                                       const Stake& stake, const AppSplit& split,
                                       std::span<const Piece> pieces);

}  // namespace berth::themis
