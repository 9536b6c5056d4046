// The GPUs of an offer by machine and rack, and where so many of them are closest together. A
// change is O(log machines).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace berth::themis {

/// GPUs on one machine, by its number in the offer.
struct Piece {
  std::uint32_t machine = 0;
  std::int32_t gpus = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};
using Pieces = std::vector<Piece>;  // ascending by machine, none empty

[[nodiscard]] std::int32_t gpus_in(std::span<const Piece> pieces) noexcept;
[[nodiscard]] Pieces sum_of(std::span<const Piece> a, std::span<const Piece> b);
/// So many of them, giving up the machines with the fewest first.
[[nodiscard]] Pieces most_local(Pieces pieces, std::int32_t gpus);

class OfferMap {
 public:
  /// Free GPUs and rack of each machine.
  OfferMap(std::span<const std::int32_t> free, std::span<const std::uint32_t> racks);

  [[nodiscard]] std::int32_t free() const noexcept { return free_; }
  [[nodiscard]] std::int32_t free_on(std::uint32_t machine) const noexcept {
    return machines_[machine].free;
  }
  [[nodiscard]] std::uint32_t rack_of(std::uint32_t machine) const noexcept {
    return machines_[machine].rack;
  }
  [[nodiscard]] std::size_t machines() const noexcept { return machines_.size(); }
  [[nodiscard]] bool has(std::span<const Piece> pieces) const noexcept;
  void take(std::span<const Piece> pieces) { change(pieces, -1); }
  void give(std::span<const Piece> pieces) { change(pieces, +1); }

  /// The tightest machine that holds them, else the fewest machines of the tightest rack that does,
  /// else the fewest machines. There are at least so many.
  [[nodiscard]] Pieces best_fit(std::int32_t gpus) const;
  /// The same after as many as possible on these machines.
  [[nodiscard]] Pieces near(std::span<const std::uint32_t> homes, std::int32_t gpus);

 private:
  using Ranked = std::set<std::pair<std::int32_t, std::uint32_t>>;  // free GPUs, machine
  struct Machine {
    std::int32_t free = 0;
    std::uint32_t rack = 0;
  };
  void change(std::span<const Piece> pieces, std::int32_t sign);
  [[nodiscard]] static Pieces fewest(const Ranked& ranked, std::int32_t gpus);
  [[nodiscard]] std::optional<std::uint32_t> tightest_rack(std::int32_t gpus) const noexcept;

  std::vector<Machine> machines_;
  Ranked all_;
  std::vector<Ranked> by_rack_;
  std::vector<std::int32_t> rack_free_;
  std::int32_t free_ = 0;
};

}  // namespace berth::themis
