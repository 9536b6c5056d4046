// The matcher of the topology tree for gangs that mind their neighbours: the place it would take
// anyway, then again and again another one on the same level without the servers where the gang and
// those on them disturb each other as much as on the last one or more, until there is none. So
// closeness comes first, quiet second, tightness third.
//
// Every repeat asks servers one by one from the tightest on; there are at most kQuieter of them.
#pragma once

#include <optional>
#include <vector>

#include "core/bus_table.h"
#include "core/topology_index.h"

namespace berth {

inline constexpr int kQuieter = 8;

/// `bus_milli` is what the gang takes of a server's bus. `buses` may be absent: then this is
/// find().
[[nodiscard]] std::optional<Match> find_quiet(const TopologyIndex& index, const BusTable* buses,
                                              std::int32_t bus_milli, const MatchQuery& query,
                                              std::vector<DeviceSet>& buffer);

}  // namespace berth
