#include "api/server_core.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace berth::api {

std::string ServerCore::key_of(const Peer& peer) {
  return peer.is_local ? fmt::format("uid {}", peer.uid) : peer.address;
}

bool ServerCore::has_room_for(const Peer& peer) const {
  if (connections.size() >= limits.connections) return false;
  const auto count = per_peer.find(key_of(peer));
  return count == per_peer.end() || count->second < limits.connections_per_peer;
}

void ServerCore::add(std::shared_ptr<ConnectionBase> connection) {
  ++per_peer[key_of(connection->peer())];
  connections.insert(std::move(connection));
  ++api.meter().connections;
}

void ServerCore::drop(const std::shared_ptr<ConnectionBase>& connection) {
  if (connections.erase(connection) == 0) return;
  --api.meter().connections;
  const auto count = per_peer.find(key_of(connection->peer()));
  if (--count->second == 0) per_peer.erase(count);
}

const std::string& ServerCore::date() {
  const std::time_t now = std::time(nullptr);
  if (now != dated_) {
    dated_ = now;
    date_ = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(now));
  }
  return date_;
}

std::string ServerCore::next_request_id() { return fmt::format("{:x}-{:x}", begun_, ++requests_); }

}  // namespace berth::api
