#include "policies/oasis/price_book.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/portable_math.h"

namespace berth::oasis {

namespace {
constexpr double kUnknown = -1;
}

PriceBook::PriceBook(const std::vector<Amounts>& capacity, std::int64_t horizon)
    : servers_(static_cast<std::uint32_t>(capacity.size())),
      resources_(capacity.empty() ? 0 : capacity.front().size()),
      horizon_(horizon),
      growth_(resources_, 0.0) {
  for (const Amounts& server : capacity) {
    BERTH_CHECK(server.size() == resources_, "every server has the same resources");
    capacity_.insert(capacity_.end(), server.begin(), server.end());
  }
  promised_.assign(capacity_.size() * static_cast<std::size_t>(horizon), 0);
  price_.assign(promised_.size(), kUnknown);
}

void PriceBook::set_range(double low, std::span<const double> high) {
  BERTH_CHECK(low > 0 && high.size() == resources_, "prices begin above zero, one end each");
  low_ = low;
  // A dearest price below the cheapest one: the price does not depend on what is promised.
  for (std::size_t r = 0; r < resources_; ++r)
    growth_[r] = high[r] > low ? portable_log(high[r] / low) : 0.0;
  std::ranges::fill(price_, kUnknown);
}

void PriceBook::set_capacity(std::uint32_t server, std::size_t resource, std::int64_t capacity) {
  capacity_[server * resources_ + resource] = capacity;
  const std::size_t begin = cell(server, resource, 0);
  std::fill_n(price_.begin() + static_cast<std::ptrdiff_t>(begin), horizon_, kUnknown);
}

void PriceBook::advance(std::int64_t first) {
  if (first <= first_) return;
  for (std::int64_t slot = first_; slot < std::min(first, first_ + horizon_); ++slot) {
    for (std::uint32_t s = 0; s < servers_; ++s) {
      for (std::size_t r = 0; r < resources_; ++r) {
        promised_[cell(s, r, slot)] = 0;
        price_[cell(s, r, slot)] = kUnknown;
      }
    }
  }
  first_ = first;
}

double PriceBook::total_capacity() const noexcept {
  double sum = 0;
  for (const std::int64_t amount : capacity_) sum += static_cast<double>(amount);
  return sum * static_cast<double>(horizon_);
}

double PriceBook::price(std::uint32_t server, std::size_t resource, std::int64_t slot) const {
  double& known = price_[cell(server, resource, slot)];
  if (known >= 0) return known;
  const std::int64_t most = capacity(server, resource);
  if (most <= 0) return known = std::numeric_limits<double>::infinity();  // all nodes are down
  const double share =
      static_cast<double>(promised(server, resource, slot)) / static_cast<double>(most);
  return known = low_ * portable_exp(growth_[resource] * share);
}

double PriceBook::unit_cost(std::uint32_t server, std::int64_t slot,
                            std::span<const std::int64_t> need) const {
  double sum = 0;
  for (std::size_t r = 0; r < resources_; ++r) {
    if (need[r] > 0) sum += price(server, r, slot) * static_cast<double>(need[r]);
  }
  return sum;
}

std::int64_t PriceBook::room(std::uint32_t server, std::int64_t slot,
                             std::span<const std::int64_t> need) const noexcept {
  std::int64_t units = std::numeric_limits<std::int64_t>::max();
  for (std::size_t r = 0; r < resources_; ++r) {
    if (need[r] == 0) continue;
    const std::int64_t free = capacity(server, r) - promised(server, r, slot);
    units = std::min(units, std::max<std::int64_t>(0, free) / need[r]);
  }
  return units;
}

void PriceBook::change(const Hold& hold, std::span<const std::int64_t> need, std::int64_t sign) {
  if (hold.slot < first_) return;
  BERTH_CHECK(hold.slot < end_slot(), "nothing is promised beyond the horizon");
  for (std::size_t r = 0; r < resources_; ++r) {
    const std::size_t at = cell(hold.server, r, hold.slot);
    promised_[at] += sign * hold.units * need[r];
    BERTH_DCHECK(promised_[at] >= 0, "only what was promised is released");
    price_[at] = kUnknown;
  }
}

void PriceBook::promise(std::span<const Hold> holds, std::span<const std::int64_t> need) {
  for (const Hold& hold : holds) change(hold, need, 1);
}

void PriceBook::release(std::span<const Hold> holds, std::span<const std::int64_t> need) {
  for (const Hold& hold : holds) change(hold, need, -1);
}

}  // namespace berth::oasis
