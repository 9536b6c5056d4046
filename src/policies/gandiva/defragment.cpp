#include "policies/gandiva/defragment.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace berth::gandiva {

namespace {

using Ranked = std::set<std::tuple<std::int32_t, UnitId, std::size_t>>;  // free GPUs, server, row

/// The row of the server with the fewest free GPUs that are enough.
std::optional<std::size_t> fewest_from(const Ranked& servers, std::int32_t gpus, UnitId except) {
  auto found = servers.lower_bound({gpus, UnitId{0}, 0});
  if (found != servers.end() && std::get<UnitId>(*found) == except) ++found;
  return found == servers.end() ? std::nullopt : std::optional{std::get<std::size_t>(*found)};
}

/// The row of the server with the most free GPUs, of equal ones the lowest.
std::optional<std::size_t> most_free(const Ranked& servers) {
  if (servers.empty()) return std::nullopt;
  const std::int32_t most = std::get<std::int32_t>(*servers.rbegin());
  return std::get<std::size_t>(*servers.lower_bound({most, UnitId{0}, 0}));
}

}  // namespace

std::vector<Move> defragment(std::vector<Occupied> servers, double threshold) {
  Ranked sources;  // loose enough to give jobs away, and not passed over
  Ranked targets;
  const auto rank = [&](std::size_t row) {
    return std::tuple(servers[row].free, servers[row].server, row);
  };
  const auto enter = [&](std::size_t row) {
    targets.insert(rank(row));
    if (servers[row].free >= threshold * servers[row].gpus) sources.insert(rank(row));
  };
  for (std::size_t row = 0; row < servers.size(); ++row) {
    std::ranges::sort(servers[row].movable);
    enter(row);
  }
  const auto change_free = [&](std::size_t row, std::int32_t change) {
    targets.erase(rank(row));
    sources.erase(rank(row));
    servers[row].free += change;
    if (servers[row].free < servers[row].gpus) enter(row);  // idle: neither gives nor takes
  };
  std::vector<Move> moves;
  while (const auto row = most_free(sources)) {
    Occupied& from = servers[*row];
    const auto target = from.movable.empty()
                            ? std::nullopt
                            : fewest_from(targets, from.movable.front().first, from.server);
    if (!target) {  // its smallest job fits nowhere, so none does
      sources.erase(rank(*row));
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
