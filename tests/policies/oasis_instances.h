// Demands, prices and worths that the tests of OASiS' parts are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "policies/oasis/cheapest.h"
#include "policies/oasis/price_book.h"

namespace berth::oasis {

inline Finish finish_of(std::vector<double> worth) {
  const auto end = static_cast<std::int64_t>(worth.size());
  return {.first = 0, .end = end, .worth = [worth](std::int64_t slot) {
            return worth[static_cast<std::size_t>(slot)];
          }};
}

inline Demand workers_only(std::int64_t units, std::int64_t max_workers, std::int64_t amount = 1) {
  return {.units = units,
          .workers_for = linear_workers(1, max_workers),
          .worker = {amount},
          .servers = {},
          .helper = {},
          .workers_per_helper = 1};
}

/// Books of one to three servers with random promises.
inline PriceBook random_book(Rng& rng, std::int64_t slots) {
  std::vector<Amounts> capacity;
  for (std::uint64_t s = 0; s < 1 + rng.below(3); ++s)
    capacity.push_back({1 + static_cast<std::int64_t>(rng.below(5))});
  PriceBook book{capacity, slots};
  const std::vector<double> high{5 + 10 * rng.uniform()};
  book.set_range(0.05 + 0.2 * rng.uniform(), high);
  for (std::uint32_t s = 0; s < book.servers(); ++s) {
    for (std::int64_t t = 0; t < slots; ++t) {
      const auto most = static_cast<std::uint64_t>(book.capacity(s, 0));
      book.promise(std::vector<Hold>{{t, s, static_cast<std::int64_t>(rng.below(most + 1))}},
                   Amounts{1});
    }
  }
  return book;
}

inline std::vector<double> falling(Rng& rng, std::int64_t slots, double most) {
  std::vector<double> worth;
  for (std::int64_t t = 0; t < slots; ++t) worth.push_back(most * rng.uniform());
  std::ranges::sort(worth, std::ranges::greater{});
  return worth;
}

}  // namespace berth::oasis
