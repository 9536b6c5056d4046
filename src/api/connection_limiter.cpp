#include "api/connection_limiter.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

namespace berth::api {

ConnectionLimits fitted(ConnectionLimits limits, std::size_t descriptors) {
  const std::size_t wanted = limits.strangers + limits.users + limits.admins;
  const std::size_t room = descriptors - descriptors / 4;  // the rest is for jobs, journal and logs
  if (wanted <= room) return limits;
  const auto shrink = [&](std::size_t& limit) {
    limit = std::max<std::size_t>(4, limit * room / wanted);
  };
  shrink(limits.strangers);
  shrink(limits.users);
  shrink(limits.admins);
  // One holder never has a whole class.
  limits.of_one_address = std::min(limits.of_one_address, limits.strangers / 2);
  limits.of_one_user = std::min(limits.of_one_user, limits.users / 2);
  limits.of_one_admin = std::min(limits.of_one_admin, limits.admins / 2);
  return limits;
}

Holder stranger_at(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &six) == 1) {
    if (IN6_IS_ADDR_LOOPBACK(&six)) return {CallerClass::Strangers, "loopback"};
    if (IN6_IS_ADDR_V4MAPPED(&six))
      return stranger_at(address.substr(address.rfind(':') + 1));  // ::ffff:192.0.2.1
    std::fill(six.s6_addr + 8, six.s6_addr + 16, std::uint8_t{0});
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET6, &six, text.data(), text.size());
    return {CallerClass::Strangers, std::string(text.data()) + "/64"};
  }
  const bool is_loopback =
      ::inet_pton(AF_INET, address.c_str(), &four) == 1 && ntohl(four.s_addr) >> 24U == 127;
  return {CallerClass::Strangers, is_loopback ? "loopback" : address};
}

std::shared_ptr<LimitedConnection> ConnectionLimiter::oldest(const Connections& connections) {
  for (const auto& [number, entry] : connections) {
    if (entry.connection->is_waiting()) return entry.connection;
  }
  return connections.begin()->second.connection;
}

const ConnectionLimiter::Connections* ConnectionLimiter::largest(const Pool& pool) {
  const Connections* most = nullptr;
  for (const auto& [name, connections] : pool.holders) {
    if (most == nullptr || connections.size() > most->size()) most = &connections;
  }
  return most;
}

std::size_t ConnectionLimiter::count(const Holder& holder) const {
  const Pool& here = pool(holder.caller_class);
  const auto found = here.holders.find(holder.name);
  return found == here.holders.end() ? 0 : found->second.size();
}

ConnectionLimiter::Answer ConnectionLimiter::ask(const Holder& holder,
                                                 Clock::time_point now) const {
  const Pool& here = pool(holder.caller_class);
  const auto found = here.holders.find(holder.name);
  const Connections* const own = found == here.holders.end() ? nullptr : &found->second;
  const std::size_t mine = own == nullptr ? 0 : own->size();
  if (holder.caller_class == CallerClass::Strangers) {
    if (mine >= limits_.of_one_address) return {true, oldest(*own), "address"};
    if (here.count < limits_.strangers) return {};
    return {true, oldest(*largest(here)), "strangers"};
  }
  const bool is_admin = holder.caller_class == CallerClass::Admins;
  if (mine >= (is_admin ? limits_.of_one_admin : limits_.of_one_user)) {
    // Clients that open many at once get the answer that they are too many; connections somebody
    // has left lying about make room.
    const std::string_view cause = is_admin ? "admin" : "user";
    for (const auto& [number, entry] : *own) {
      if (now - entry.since < limits_.patience) break;
      if (entry.connection->is_waiting()) return {true, entry.connection, cause};
    }
    return {false, {}, cause};
  }
  if (here.count < (is_admin ? limits_.admins : limits_.users)) return {};
  const std::string_view cause = is_admin ? "admins" : "users";
  const Connections* const most = largest(here);
  if (most == nullptr || most->size() <= mine) return {false, {}, cause};
  return {true, oldest(*most), cause};
}

void ConnectionLimiter::enter(const std::shared_ptr<LimitedConnection>& connection, Holder holder,
                              Clock::time_point now) {
  leave(connection);
  Pool& here = pools_.at(holder.caller_class);
  const std::uint64_t number = next_++;
  here.holders[holder.name].emplace(number, Entry{connection, now});
  ++here.count;
  places_.emplace(connection, Place{std::move(holder), number});
}

bool ConnectionLimiter::leave(const std::shared_ptr<LimitedConnection>& connection) {
  const auto place = places_.find(connection);
  if (place == places_.end()) return false;
  Pool& here = pools_.at(place->second.holder.caller_class);
  const auto connections = here.holders.find(place->second.holder.name);
  connections->second.erase(place->second.number);
  if (connections->second.empty()) here.holders.erase(connections);
  --here.count;
  places_.erase(place);
  return true;
}

std::shared_ptr<LimitedConnection> ConnectionLimiter::most_dispensable() const {
  for (const CallerClass caller_class : {CallerClass::Strangers, CallerClass::Users}) {
    if (const Connections* const most = largest(pool(caller_class))) return oldest(*most);
  }
  return nullptr;
}

}  // namespace berth::api
