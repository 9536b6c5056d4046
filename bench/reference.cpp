#include "reference.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <queue>
#include <vector>

namespace berth::bench {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double reference_seconds() {
  constexpr std::size_t kRows = std::size_t{1} << 21U;  // 16 MiB: beyond most caches
  const double begun = processor_seconds();
  std::uint64_t state = 88172645463325252U;
  const auto next = [&state] {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    return state;
  };
  std::vector<std::uint64_t> table(kRows);
  for (std::uint64_t& row : table) row = next();
  std::priority_queue<std::uint64_t> heap;
  std::uint64_t at = 0;
  for (int step = 0; step < 400'000; ++step) {
    at = table[at % kRows] + next();  // the next row is known when this one was read
    heap.push(at);
    if (heap.size() > 2000) heap.pop();
  }
  std::sort(table.begin(), table.begin() + 300'000);
  volatile std::uint64_t result = heap.top() + table[1000];  // somebody wants it
  static_cast<void>(result);
  return processor_seconds() - begun;
}

}  // namespace berth::bench
