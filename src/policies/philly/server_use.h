// Which servers hold gangs and which hold single GPUs, so that the two can be kept apart and single
// ones moved out of a gang's way. Start and stop cost O(servers of
// the job).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/allocation.h"

namespace berth::philly {

class ServerUse {
 public:
  void start(JobId job, std::span<const Slice> slices);
  void stop(JobId job);
  /// In the order of their starts.
  [[nodiscard]] std::span<const JobId> singles_on(NodeId node) const;
  /// Adds the servers that hold gangs.
  void list_with_gangs(std::vector<NodeId>& nodes) const;
  void list_with_singles(std::vector<NodeId>& nodes) const;

 private:
  struct Server {
    std::int32_t gangs = 0;
    std::vector<JobId> singles;
  };
  struct Place {
    bool is_single = false;
    std::vector<NodeId> nodes;
  };
  std::map<NodeId, Server> servers_;  // those that hold somebody
  std::map<JobId, Place> places_;
};

inline void ServerUse::start(JobId job, std::span<const Slice> slices) {
  if (slices.empty()) return;
  Place& place = places_[job];
  place.is_single = slices.size() == 1 && slices.front().gpus == 1;
  for (const Slice& slice : slices) {
    place.nodes.push_back(slice.node);
    Server& server = servers_[slice.node];
    if (place.is_single)
      server.singles.push_back(job);
    else
      ++server.gangs;
  }
}

inline void ServerUse::stop(JobId job) {
  const auto place = places_.find(job);
  if (place == places_.end()) return;
  for (const NodeId node : place->second.nodes) {
    const auto server = servers_.find(node);
    if (place->second.is_single)
      std::erase(server->second.singles, job);
    else
      --server->second.gangs;
    if (server->second.gangs == 0 && server->second.singles.empty()) servers_.erase(server);
  }
  places_.erase(place);
}

inline std::span<const JobId> ServerUse::singles_on(NodeId node) const {
  const auto server = servers_.find(node);
  if (server == servers_.end()) return {};
  return server->second.singles;
}

inline void ServerUse::list_with_gangs(std::vector<NodeId>& nodes) const {
  for (const auto& [node, server] : servers_)
    if (server.gangs > 0) nodes.push_back(node);
}

inline void ServerUse::list_with_singles(std::vector<NodeId>& nodes) const {
  for (const auto& [node, server] : servers_)
    if (!server.singles.empty()) nodes.push_back(node);
}

}  // namespace berth::philly
