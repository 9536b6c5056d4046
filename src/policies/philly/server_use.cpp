#include "policies/philly/server_use.h"

#include <algorithm>

namespace berth {

void ServerUse::start(JobId job, std::span<const Slice> slices) {
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

void ServerUse::stop(JobId job) {
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

std::span<const JobId> ServerUse::singles_on(NodeId node) const {
  const auto server = servers_.find(node);
  if (server == servers_.end()) return {};
  return server->second.singles;
}

void ServerUse::list_with_gangs(std::vector<NodeId>& nodes) const {
  for (const auto& [node, server] : servers_)
    if (server.gangs > 0) nodes.push_back(node);
}

void ServerUse::list_with_singles(std::vector<NodeId>& nodes) const {
  for (const auto& [node, server] : servers_)
    if (!server.singles.empty()) nodes.push_back(node);
}

}  // namespace berth
