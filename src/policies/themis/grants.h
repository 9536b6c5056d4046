// Turns what apps have won into devices in the plan, and begins the leases that go with them. GPUs
// that stay with a job cost nothing. If a gang finds no place although it won enough GPUs (cores,
// memory, closeness), they go to waiting apps that do.
#pragma once

#include <cstdint>
#include <span>

#include "policies/kit/pass.h"
#include "policies/themis/apps.h"
#include "policies/themis/leases.h"
#include "policies/themis/offer.h"

namespace berth::themis {

class Grants {
 public:
  Grants(Apps& apps, Leases& leases) : apps_(apps), leases_(leases) {}

  /// Carries out an auction, and refreshes the apps that took part.
  void carry_out(Pass& pass, const Offer& offer, std::span<const Stake> stakes);
  /// A gang that missed too many auctions comes before all others. False: it does not fit yet, and
  /// what is free is held back, unless no more can come.
  [[nodiscard]] bool serve_starving(Pass& pass, PoolId pool, AppId app);

 private:
  void note(const View& view, JobId job, PoolId pool, std::int32_t gpus);
  void stop_ended(Pass& pass, PoolId pool);
  [[nodiscard]] bool keeps_place(const Plan& plan, const Offer& offer, JobId job, std::int32_t gpus,
                                 const Pieces& pieces) const;
  void fill_gaps(Pass& pass, PoolId pool);

  Apps& apps_;
  Leases& leases_;
};

}  // namespace berth::themis
