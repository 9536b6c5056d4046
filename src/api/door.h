// How many connections who may hold, so that nobody shuts out anybody else. Three rooms that never
// take each other's places: strangers (TCP, no token shown yet), users, and admins with root. In
// each room one holder (an address, a user) has a limit of its own, and when the room is full the
// holder with the most gives way to one with fewer. Strangers are never refused: the oldest goes,
// so that a request half sent cannot keep a whole one out. I/O thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace berth::api {

struct DoorLimits {
  std::size_t strangers = 256;
  std::size_t of_one_address = 64;  // all of loopback is one, and so is a /64 of IPv6
  std::size_t users = 1'024;
  std::size_t of_one_user = 256;
  std::size_t admins = 128;
  std::size_t of_one_admin = 64;
  std::chrono::milliseconds patience{1'000};  // younger ones do not give way to their own holder's
};
/// What fits beside everything else that holds descriptors, of which the process may have so many.
[[nodiscard]] DoorLimits fitted(DoorLimits limits, std::size_t descriptors);

enum class Room : std::uint8_t { Strangers, Users, Admins };
struct Holder {
  Room room = Room::Strangers;
  std::string name;  // a user's, or an address
};
/// 127.0.0.2 is as much "loopback" as 127.0.0.1: every local user has all of them.
[[nodiscard]] Holder stranger_at(const std::string& address);

class Guest {
 public:
  virtual ~Guest() = default;
  /// Nothing of it is being answered: it is silent, half sent, or about to go.
  [[nodiscard]] virtual bool is_waiting() const noexcept = 0;
};

class Door {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Door(DoorLimits limits) : limits_(limits) {}

  struct Answer {
    bool may_enter = true;
    std::shared_ptr<Guest> gives_way{};  // close it first
    std::string_view cause{};            // of a refusal or of giving way: a word for log and metric
  };
  [[nodiscard]] Answer ask(const Holder& holder, Clock::time_point now) const;
  void enter(const std::shared_ptr<Guest>& guest, Holder holder, Clock::time_point now);
  /// True if it was there.
  bool leave(const std::shared_ptr<Guest>& guest);
  /// Who should go if descriptors run out: the oldest stranger, else one of who has the most.
  [[nodiscard]] std::shared_ptr<Guest> most_dispensable() const;
  [[nodiscard]] std::size_t count(const Holder& holder) const;

 private:
  struct Seat {
    std::shared_ptr<Guest> guest;
    Clock::time_point since;
  };
  using Seats = std::map<std::uint64_t, Seat>;  // the oldest first
  struct Hall {
    std::map<std::string, Seats> holders;
    std::size_t count = 0;
  };
  struct Place {
    Holder holder;
    std::uint64_t number = 0;
  };
  [[nodiscard]] const Hall& hall(Room room) const { return halls_.at(room); }
  [[nodiscard]] static const Seats* largest(const Hall& hall);
  [[nodiscard]] static std::shared_ptr<Guest> oldest(const Seats& seats);

  const DoorLimits limits_;
  std::map<Room, Hall> halls_{{Room::Strangers, {}}, {Room::Users, {}}, {Room::Admins, {}}};
  std::map<std::shared_ptr<Guest>, Place> places_;
  std::uint64_t next_ = 0;
};

}  // namespace berth::api
