// What of Themis can be set from outside.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "policies/common/elastic.h"
#include "policies/themis/job_times.h"

namespace berth::themis {

/// Whose jobs are one app; a job that names neither study nor group is one by itself.
enum class AppOf : std::uint8_t { StudyOrGroup, Study, Job };
/// Whether a new app may open an auction for free GPUs, or waits until some lease ends.
enum class ArrivalRule : std::uint8_t { Waits, OpensAuction };

struct Options {
  double f = 0.8;  // part of the apps an offer is hidden from
  Duration lease = std::chrono::minutes{20};
  Duration align = std::chrono::seconds{60};  // leases end at multiples of this
  std::size_t max_bidders = 256;
  std::int32_t starve_leases = 3;
  ArrivalRule on_arrival = ArrivalRule::OpensAuction;
  AppOf app = AppOf::StudyOrGroup;
  Slowdown slowdown = Slowdown::Believed;
  ElasticRule elastic;
};

}  // namespace berth::themis
