// Times single passes of one policy on a cluster that stays as busy as asked: the population of a
// queue in balance at time zero, then one arrival for every departure on average, demand a little
// above capacity so that some always wait. In a child process of its own.
#pragma once

#include <cstdint>
#include <string>

namespace berth::bench {

struct PassCase {
  std::string policy;
  std::size_t nodes = 1250;  // of eight GPUs, half V100, half A100
  std::size_t active = 2000;
  double minutes = 60;         // of simulated time after the first pass …
  double budget_seconds = 60;  // … unless that takes more processor time
};

struct PassTimes {
  bool ok = false;
  std::uint64_t passes = 0;
  double minutes = 0;    // simulated
  double active = 0;     // mean over the passes: running or waiting
  double busy_gpus = 0;  // mean
  double p50_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
  double first_ms = 0;  // all of them at once on an empty cluster; not among the others
  char error[160] = {};
};

[[nodiscard]] PassTimes measure_passes(const PassCase& each);

}  // namespace berth::bench
