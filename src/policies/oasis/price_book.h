// What is promised to accepted jobs per server, resource and slot, and what one more unit costs
// there: L (U / L)^(promised / capacity), so L where nothing is promised and U where all is. A
// server stands for whatever shares one price: a machine, or a whole pool of equal ones. Slots lie
// in a ring from the current one on. Amounts are integers, so that a release takes back exactly
// what was promised; a price is computed when it is first asked for after a change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace berth::oasis {

using Amounts = std::vector<std::int64_t>;  // by resource

/// So many units (workers, parameter servers) on a server in a slot.
struct Hold {
  std::int64_t slot = 0;
  std::uint32_t server = 0;
  std::int64_t units = 0;
  friend bool operator==(const Hold&, const Hold&) = default;
};

class PriceBook {
 public:
  /// Capacity by server; every server has the same resources. Slots 0 to horizon - 1 are open.
  PriceBook(const std::vector<Amounts>& capacity, std::int64_t horizon);

  /// Cheapest price of every resource, dearest price of each.
  void set_range(double low, std::span<const double> high);
  void set_capacity(std::uint32_t server, std::size_t resource, std::int64_t capacity);
  /// Slots before this one are over; as many new ones open at the far end.
  void advance(std::int64_t first);

  [[nodiscard]] std::uint32_t servers() const noexcept { return servers_; }
  [[nodiscard]] std::int64_t first_slot() const noexcept { return first_; }
  [[nodiscard]] std::int64_t end_slot() const noexcept { return first_ + horizon_; }
  [[nodiscard]] std::int64_t promised(std::uint32_t server, std::size_t resource,
                                      std::int64_t slot) const noexcept {
    return promised_[cell(server, resource, slot)];
  }
  [[nodiscard]] std::int64_t capacity(std::uint32_t server, std::size_t resource) const noexcept {
    return capacity_[server * resources_ + resource];
  }
  /// Of all servers and slots open at once.
  [[nodiscard]] double total_capacity() const noexcept;
  [[nodiscard]] double price(std::uint32_t server, std::size_t resource, std::int64_t slot) const;
  /// Of one unit that needs these amounts.
  [[nodiscard]] double unit_cost(std::uint32_t server, std::int64_t slot,
                                 std::span<const std::int64_t> need) const;
  /// How many units more fit.
  [[nodiscard]] std::int64_t room(std::uint32_t server, std::int64_t slot,
                                  std::span<const std::int64_t> need) const noexcept;

  /// Holds of slots that are over are passed over.
  void promise(std::span<const Hold> holds, std::span<const std::int64_t> need);
  void release(std::span<const Hold> holds, std::span<const std::int64_t> need);

 private:
  void change(const Hold& hold, std::span<const std::int64_t> need, std::int64_t sign);
  [[nodiscard]] std::size_t cell(std::uint32_t server, std::size_t resource,
                                 std::int64_t slot) const noexcept {
    const auto at = static_cast<std::size_t>(slot % horizon_);
    return (server * resources_ + resource) * static_cast<std::size_t>(horizon_) + at;
  }

  std::uint32_t servers_;
  std::size_t resources_;
  std::int64_t horizon_;
  std::vector<std::int64_t> capacity_;  // by server, resource
  double low_ = 1;
  std::vector<double> growth_;  // by resource: ln(U / L)
  std::int64_t first_ = 0;
  std::vector<std::int64_t> promised_;  // by server, resource, slot of the ring
  mutable std::vector<double> price_;   // the same; negative: to be computed
};

}  // namespace berth::oasis
