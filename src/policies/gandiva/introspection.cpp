#include "policies/gandiva/introspection.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/int128.h"

namespace berth::gandiva {

void SeenRate::raise_to(const SeenRate& other) noexcept {
  const bool is_better =
      are_alike(*this, other) ? other.value > value : other.is_measured && other.is_seen();
  if (is_better) *this = other;
}

double packing_score(const PackedRates& a, const PackedRates& b) noexcept {
  const auto share = [](const PackedRates& rates) {
    return rates.isolated > 0 ? rates.packed / rates.isolated : 0.0;
  };
  return share(a) + share(b);
}

bool is_worth_moving(double speed_here, double speed_there, double horizon, double cost) noexcept {
  return (speed_there - speed_here) * horizon > speed_there * cost;
}

namespace {

/// Servers in buckets by free GPUs: "fewest that still fits" and "most" are looks at a few buckets.
class FreeBuckets {
 public:
  using Place = std::pair<UnitId, std::size_t>;  // the server and its row
  void insert(std::int32_t free, const Place& place) {
    if (buckets_.size() <= static_cast<std::size_t>(free))
      buckets_.resize(static_cast<std::size_t>(free) + 1);
    buckets_[static_cast<std::size_t>(free)].insert(place);
  }
  void erase(std::int32_t free, const Place& place) {
    if (buckets_.size() > static_cast<std::size_t>(free))
      buckets_[static_cast<std::size_t>(free)].erase(place);
  }
  [[nodiscard]] std::optional<std::size_t> fewest_from(std::int32_t gpus, UnitId except) const {
    for (std::size_t free = static_cast<std::size_t>(gpus); free < buckets_.size(); ++free) {
      for (const auto& [server, row] : buckets_[free]) {
        if (server != except) return row;
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<std::size_t> most() const {
    for (std::size_t free = buckets_.size(); free-- > 0;) {
      if (!buckets_[free].empty()) return buckets_[free].begin()->second;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::set<Place>> buckets_;
};

}  // namespace

std::vector<Move> defragment(std::vector<Occupied> servers, double threshold) {
  FreeBuckets sources;  // loose enough to give jobs away, and not passed over
  FreeBuckets targets;
  const auto place = [&](std::size_t row) { return FreeBuckets::Place{servers[row].server, row}; };
  for (std::size_t row = 0; row < servers.size(); ++row) {
    std::ranges::sort(servers[row].movable);
    targets.insert(servers[row].free, place(row));
    if (servers[row].free >= threshold * servers[row].gpus)
      sources.insert(servers[row].free, place(row));
  }
  const auto change_free = [&](std::size_t row, std::int32_t change) {
    targets.erase(servers[row].free, place(row));
    sources.erase(servers[row].free, place(row));
    servers[row].free += change;
    if (servers[row].free == servers[row].gpus) return;  // idle: neither gives nor takes any more
    targets.insert(servers[row].free, place(row));
    if (servers[row].free >= threshold * servers[row].gpus)
      sources.insert(servers[row].free, place(row));
  };
  std::vector<Move> moves;
  while (const auto row = sources.most()) {
    Occupied& from = servers[*row];
    const auto target = from.movable.empty()
                            ? std::nullopt
                            : targets.fewest_from(from.movable.front().first, from.server);
    if (!target) {  // its smallest job fits nowhere, so none does
      sources.erase(from.free, place(*row));
      from.movable.clear();
      continue;
    }
    const auto [gpus, job] = from.movable.front();
    moves.push_back({job, from.server, servers[*target].server});
    from.movable.erase(from.movable.begin());  // moved once: a job has a cooldown
    change_free(*row, gpus);
    change_free(*target, -gpus);
  }
  return moves;
}

std::int32_t grown(std::int32_t current, std::int32_t most, std::int32_t free,
                   GrowStep step) noexcept {
  const std::int32_t wanted = step == GrowStep::Double ? current * 2 : current + free;
  return std::max(current, std::min({wanted, most, current + free}));
}

std::map<AffinityClass, std::int64_t> deserved(const std::map<AffinityClass, std::int64_t>& demand,
                                               std::int64_t gpus) {
  std::int64_t total = 0;
  for (const auto& [affinity, gpus_wanted] : demand) total += gpus_wanted;
  std::map<AffinityClass, std::int64_t> shares;
  for (const auto& [affinity, gpus_wanted] : demand) {
    const Int128 share = total == 0 ? Int128{0} : Int128{gpus} * gpus_wanted / total;
    shares[affinity] = std::min(gpus_wanted, static_cast<std::int64_t>(share));
  }
  return shares;
}

}  // namespace berth::gandiva
