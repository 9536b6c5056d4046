// Quasi-shortest-service-first (Helios, SC 2021): within each virtual cluster the job with the
// least expected GPU time (GPUs times predicted run time) first; what is started runs to its end. A
// job that does not fit blocks its virtual cluster unless backfilling is on; one that has waited a
// day goes first. Predictions come from the run's estimator, by default Helios' own.
#pragma once

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] PolicyEntry qssf_entry();

}  // namespace berth
