// Limits how many connections each caller may hold, so that nobody shuts out anybody else. There
// are three classes that never compete: strangers (TCP, no token shown yet), users, and admins with
// root. Within a class one holder (an address, a user) has a limit of its own, and when the class
// is full the holder with the most connections gives one up for a holder with fewer. Strangers are
// never refused: the oldest goes, so that a request half sent cannot keep a whole one out.
// I/O thread only; closes nothing itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace berth::api {

struct ConnectionLimits {
  std::size_t strangers = 256;
  std::size_t of_one_address = 64;  // all of loopback is one, and so is a /64 of IPv6
  std::size_t users = 1'024;
  std::size_t of_one_user = 256;
  std::size_t admins = 128;
  std::size_t of_one_admin = 64;
  std::chrono::milliseconds patience{1'000};  // younger ones do not give way to their own holder's
};
/// What fits beside everything else that holds descriptors, of which the process may have so many.
[[nodiscard]] ConnectionLimits fitted(ConnectionLimits limits, std::size_t descriptors);

enum class CallerClass : std::uint8_t { Strangers, Users, Admins };
struct Holder {
  CallerClass caller_class = CallerClass::Strangers;
  std::string name;  // a user's, or an address
};
/// 127.0.0.2 is as much "loopback" as 127.0.0.1: every local user has all of them.
[[nodiscard]] Holder stranger_at(const std::string& address);

class LimitedConnection {
 public:
  virtual ~LimitedConnection() = default;
  /// Nothing of it is being answered: it is silent, half sent, or about to go.
  [[nodiscard]] virtual bool is_waiting() const noexcept = 0;
};

class ConnectionLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  explicit ConnectionLimiter(ConnectionLimits limits) : limits_(limits) {}

  struct Answer {
    bool may_enter = true;
    std::shared_ptr<LimitedConnection> gives_way{};  // close it first
    std::string_view cause{};  // of a refusal or of giving way: a word for log and metric
  };
  [[nodiscard]] Answer ask(const Holder& holder, Clock::time_point now) const;
  void enter(const std::shared_ptr<LimitedConnection>& connection, Holder holder,
             Clock::time_point now);
  /// True if it was there.
  bool leave(const std::shared_ptr<LimitedConnection>& connection);
  /// Who should go if descriptors run out: the oldest stranger, else one of who has the most.
  [[nodiscard]] std::shared_ptr<LimitedConnection> most_dispensable() const;
  [[nodiscard]] std::size_t count(const Holder& holder) const;

 private:
  struct Entry {
    std::shared_ptr<LimitedConnection> connection;
    Clock::time_point since;
  };
  using Connections = std::map<std::uint64_t, Entry>;  // the oldest first
  struct Pool {
    std::map<std::string, Connections> holders;
    std::size_t count = 0;
  };
  struct Place {
    Holder holder;
    std::uint64_t number = 0;
  };
  [[nodiscard]] const Pool& pool(CallerClass caller_class) const { return pools_.at(caller_class); }
  [[nodiscard]] static const Connections* largest(const Pool& pool);
  [[nodiscard]] static std::shared_ptr<LimitedConnection> oldest(const Connections& connections);

  const ConnectionLimits limits_;
  std::map<CallerClass, Pool> pools_{
      {CallerClass::Strangers, {}}, {CallerClass::Users, {}}, {CallerClass::Admins, {}}};
  std::map<std::shared_ptr<LimitedConnection>, Place> places_;
  std::uint64_t next_ = 0;
};

}  // namespace berth::api
