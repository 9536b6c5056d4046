#include "policies/gandiva/defragment.h"

#include <algorithm>
#include <optional>
#include <set>

namespace berth::gandiva {

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

}  // namespace berth::gandiva
