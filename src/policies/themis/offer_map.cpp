#include "policies/themis/offer_map.h"

#include <algorithm>
#include <tuple>

namespace berth::themis {

std::int32_t gpus_in(std::span<const Piece> pieces) noexcept {
  std::int32_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.gpus;
  return sum;
}

Pieces sum_of(std::span<const Piece> a, std::span<const Piece> b) {
  Pieces sum(a.begin(), a.end());
  sum.insert(sum.end(), b.begin(), b.end());
  std::ranges::sort(sum, {}, &Piece::machine);
  Pieces merged;
  for (const Piece& piece : sum) {
    if (!merged.empty() && merged.back().machine == piece.machine) {
      merged.back().gpus += piece.gpus;
    } else {
      merged.push_back(piece);
    }
  }
  return merged;
}

Pieces most_local(Pieces pieces, std::int32_t gpus) {
  std::ranges::sort(pieces, [](const Piece& a, const Piece& b) {
    return std::tuple(-a.gpus, a.machine) < std::tuple(-b.gpus, b.machine);
  });
  for (Piece& piece : pieces) {
    piece.gpus = std::min(piece.gpus, gpus);
    gpus -= piece.gpus;
  }
  std::erase_if(pieces, [](const Piece& piece) { return piece.gpus == 0; });
  std::ranges::sort(pieces, {}, &Piece::machine);
  return pieces;
}

OfferMap::OfferMap(std::span<const std::int32_t> free, std::span<const std::uint32_t> racks) {
  const std::uint32_t last = racks.empty() ? 0 : *std::ranges::max_element(racks);
  by_rack_.resize(last + 1);
  rack_free_.resize(last + 1);
  for (std::uint32_t i = 0; i < free.size(); ++i) {
    machines_.push_back({0, racks[i]});
    const Piece piece{i, free[i]};
    if (free[i] > 0) give({&piece, 1});
  }
}

void OfferMap::change(std::span<const Piece> pieces, std::int32_t sign) {
  for (const Piece& piece : pieces) {
    Machine& machine = machines_[piece.machine];
    Ranked& rack = by_rack_[machine.rack];
    all_.erase({machine.free, piece.machine});
    rack.erase({machine.free, piece.machine});
    machine.free += sign * piece.gpus;
    rack_free_[machine.rack] += sign * piece.gpus;
    free_ += sign * piece.gpus;
    if (machine.free == 0) continue;
    all_.emplace(machine.free, piece.machine);
    rack.emplace(machine.free, piece.machine);
  }
}

bool OfferMap::has(std::span<const Piece> pieces) const noexcept {
  return std::ranges::all_of(
      pieces, [&](const Piece& piece) { return piece.gpus <= free_on(piece.machine); });
}

/// The roomiest machines first, the rest on the tightest that holds it.
Pieces OfferMap::fewest(const Ranked& ranked, std::int32_t gpus) {
  Pieces pieces;
  for (auto roomiest = ranked.rbegin(); roomiest != ranked.rend(); ++roomiest) {
    if (roomiest->first >= gpus) {  // from here down none is used yet
      pieces.push_back({ranked.lower_bound({gpus, 0})->second, gpus});
      break;
    }
    pieces.push_back({roomiest->second, roomiest->first});
    gpus -= roomiest->first;
  }
  std::ranges::sort(pieces, {}, &Piece::machine);
  return pieces;
}

std::optional<std::uint32_t> OfferMap::tightest_rack(std::int32_t gpus) const noexcept {
  std::optional<std::uint32_t> best;
  for (std::uint32_t rack = 0; rack < rack_free_.size(); ++rack) {
    if (rack_free_[rack] >= gpus && (!best || rack_free_[rack] < rack_free_[*best])) best = rack;
  }
  return best;
}

Pieces OfferMap::best_fit(std::int32_t gpus) const {
  if (gpus <= 0) return {};
  if (const auto fit = all_.lower_bound({gpus, 0}); fit != all_.end()) return {{fit->second, gpus}};
  const auto rack = tightest_rack(gpus);
  return fewest(rack ? by_rack_[*rack] : all_, gpus);
}

Pieces OfferMap::near(std::span<const std::uint32_t> homes, std::int32_t gpus) {
  Pieces here;
  for (const std::uint32_t home : homes) {
    const std::int32_t some = std::min(gpus, free_on(home));
    if (some <= 0) continue;
    here.push_back({home, some});
    gpus -= some;
  }
  take(here);
  const Pieces rest = best_fit(gpus);
  give(here);
  return sum_of(here, rest);
}

}  // namespace berth::themis
