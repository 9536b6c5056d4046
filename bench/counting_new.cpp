// Counts every allocation of the process: the event loop must not allocate once it is warm.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "cases.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}

namespace berth::bench {
std::uint64_t allocation_count() noexcept { return allocations.load(std::memory_order_relaxed); }
}  // namespace berth::bench

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
