// The job of host_bench: says when it began, and nothing else. Linked statically, so that what is
// measured is the way to the program and not the libraries of the program.
#include <cstdio>
#include <ctime>

int main() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("%lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
  return 0;
}
