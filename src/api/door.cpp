#include "api/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

namespace berth::api {

DoorLimits fitted(DoorLimits limits, std::size_t descriptors) {
  const std::size_t wanted = limits.strangers + limits.users + limits.admins;
  const std::size_t room = descriptors - descriptors / 4;  // the rest is for jobs, journal and logs
  if (wanted <= room) return limits;
  const auto shrink = [&](std::size_t& limit) {
    limit = std::max<std::size_t>(4, limit * room / wanted);
  };
  shrink(limits.strangers);
  shrink(limits.users);
  shrink(limits.admins);
  // One holder never has a whole room.
  limits.of_one_address = std::min(limits.of_one_address, limits.strangers / 2);
  limits.of_one_user = std::min(limits.of_one_user, limits.users / 2);
  limits.of_one_admin = std::min(limits.of_one_admin, limits.admins / 2);
  return limits;
}

Holder stranger_at(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &six) == 1) {
    if (IN6_IS_ADDR_LOOPBACK(&six)) return {Room::Strangers, "loopback"};
    if (IN6_IS_ADDR_V4MAPPED(&six))
      return stranger_at(address.substr(address.rfind(':') + 1));  // ::ffff:192.0.2.1
    std::fill(six.s6_addr + 8, six.s6_addr + 16, std::uint8_t{0});
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET6, &six, text.data(), text.size());
    return {Room::Strangers, std::string(text.data()) + "/64"};
  }
  const bool is_loopback =
      ::inet_pton(AF_INET, address.c_str(), &four) == 1 && ntohl(four.s_addr) >> 24U == 127;
  return {Room::Strangers, is_loopback ? "loopback" : address};
}

std::shared_ptr<Guest> Door::oldest(const Seats& seats) {
  for (const auto& [number, seat] : seats) {
    if (seat.guest->is_waiting()) return seat.guest;
  }
  return seats.begin()->second.guest;
}

const Door::Seats* Door::largest(const Hall& hall) {
  const Seats* most = nullptr;
  for (const auto& [name, seats] : hall.holders) {
    if (most == nullptr || seats.size() > most->size()) most = &seats;
  }
  return most;
}

std::size_t Door::count(const Holder& holder) const {
  const Hall& here = hall(holder.room);
  const auto found = here.holders.find(holder.name);
  return found == here.holders.end() ? 0 : found->second.size();
}

Door::Answer Door::ask(const Holder& holder, Clock::time_point now) const {
  const Hall& here = hall(holder.room);
  const auto found = here.holders.find(holder.name);
  const Seats* const own = found == here.holders.end() ? nullptr : &found->second;
  const std::size_t mine = own == nullptr ? 0 : own->size();
  if (holder.room == Room::Strangers) {
    if (mine >= limits_.of_one_address) return {true, oldest(*own), "address"};
    if (here.count < limits_.strangers) return {};
    return {true, oldest(*largest(here)), "strangers"};
  }
  const bool is_admin = holder.room == Room::Admins;
  if (mine >= (is_admin ? limits_.of_one_admin : limits_.of_one_user)) {
    // Clients that open many at once get the answer that they are too many; connections somebody
    // has left lying about make room.
    const std::string_view cause = is_admin ? "admin" : "user";
    for (const auto& [number, seat] : *own) {
      if (now - seat.since < limits_.patience) break;
      if (seat.guest->is_waiting()) return {true, seat.guest, cause};
    }
    return {false, {}, cause};
  }
  if (here.count < (is_admin ? limits_.admins : limits_.users)) return {};
  const std::string_view cause = is_admin ? "admins" : "users";
  const Seats* const most = largest(here);
  if (most == nullptr || most->size() <= mine) return {false, {}, cause};
  return {true, oldest(*most), cause};
}

void Door::enter(const std::shared_ptr<Guest>& guest, Holder holder, Clock::time_point now) {
  leave(guest);
  Hall& here = halls_.at(holder.room);
  const std::uint64_t number = next_++;
  here.holders[holder.name].emplace(number, Seat{guest, now});
  ++here.count;
  places_.emplace(guest, Place{std::move(holder), number});
}

bool Door::leave(const std::shared_ptr<Guest>& guest) {
  const auto place = places_.find(guest);
  if (place == places_.end()) return false;
  Hall& here = halls_.at(place->second.holder.room);
  const auto seats = here.holders.find(place->second.holder.name);
  seats->second.erase(place->second.number);
  if (seats->second.empty()) here.holders.erase(seats);
  --here.count;
  places_.erase(place);
  return true;
}

std::shared_ptr<Guest> Door::most_dispensable() const {
  for (const Room room : {Room::Strangers, Room::Users}) {
    if (const Seats* const most = largest(hall(room))) return oldest(*most);
  }
  return nullptr;
}

}  // namespace berth::api
