// One benchmark case: a generated trace, a cluster, a policy; run in a child process of its own so
// that its time and its peak memory are its own.
#pragma once

#include <cstdint>
#include <string>

namespace berth::bench {

[[nodiscard]] std::uint64_t allocation_count() noexcept;

struct Case {
  std::string policy;
  std::string cluster;  // as --cluster takes it
  std::size_t jobs = 0;
  double load = 0.9;
  std::string placement = "best-fit";
};

struct Measured {
  bool ok = false;
  double seconds = 0;        // the run alone, trace already in memory
  double bytes_per_job = 0;  // peak memory of run and trace, less what an empty process needs
  std::uint64_t events = 0;
  std::uint64_t late_allocations = 0;  // in the second half of the run
  std::uint64_t late_passes = 0;
  double avg_jct = 0;
  std::uint64_t largest_queue = 0;
  char digest[17] = {};
  char error[160] = {};
};

[[nodiscard]] Measured measure(const Case& each);
/// Seconds to read a native CSV of that many generated rows.
[[nodiscard]] double measure_csv(std::size_t rows);

}  // namespace berth::bench
