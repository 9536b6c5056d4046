#include "policies/conservative/entry.h"

#include "policies/conservative/conservative.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto reservations, params.integer("max_reservations", 1, 1'000'000));
  return std::make_unique<Conservative>(static_cast<std::size_t>(reservations));
}

}  // namespace

PolicyEntry conservative_entry() {
  return {.name = "conservative",
          .summary = "backfill that delays no waiting job: every one holds a reservation",
          .params = {{"max_reservations", "1000",
                      "jobs that hold a reservation at most; the others wait behind them"}},
          .make = make};
}

}  // namespace berth
