// What the connections of one server share. Private to the server's sources; everything here except
// the mailbox belongs to the I/O thread.
#pragma once

#include <utility>  // before Asio 1.74, which forgets it

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "api/fair_workers.h"
#include "api/server.h"
#include "base/log_limit.h"

namespace berth::api {

namespace asio = boost::asio;
using Socket = asio::generic::stream_protocol::socket;  // TCP or Unix, one type
using SteadyTime = std::chrono::steady_clock::time_point;

/// Brings work to the I/O thread from any other. What comes after the server has gone is dropped,
/// so that a service may answer as late as it likes.
class Mailbox {
 public:
  explicit Mailbox(asio::io_context& io) : io_(&io) {}
  template <class Work>
  void post(Work work) {
    const std::lock_guard lock(mutex_);
    if (io_ != nullptr) asio::post(*io_, std::move(work));
  }
  void close() {
    const std::lock_guard lock(mutex_);
    io_ = nullptr;
  }

 private:
  std::mutex mutex_;
  asio::io_context* io_;
};

class ConnectionBase : public LimitedConnection {
 public:
  virtual void start() = 0;
  /// Looks at its deadline; called a few times a second.
  virtual void sweep(SteadyTime now) = 0;
  /// Finish what is under way and go.
  virtual void begin_stop() = 0;
  virtual void close() = 0;
  [[nodiscard]] virtual const Peer& peer() const noexcept = 0;
};

struct ServerCore {
  ServerCore(Service& service, const ServerOptions& options);

  const ServerLimits limits;
  asio::io_context io{1};
  FairWorkers workers;
  std::shared_ptr<Mailbox> mailbox;
  Api api;
  std::set<std::shared_ptr<ConnectionBase>> connections;
  bool is_stopping = false;

  /// Who answers for a connection that has said nothing yet.
  [[nodiscard]] Holder holder_of(const Peer& peer);
  [[nodiscard]] static Holder holder_of(const Caller& caller);
  /// Makes room if there can be room; otherwise the refusal is noted.
  [[nodiscard]] bool has_room_for(const Holder& holder);
  void add(std::shared_ptr<ConnectionBase> connection, Holder holder);
  /// It has shown who it is. False: that user has no place for it.
  [[nodiscard]] bool reseat(const std::shared_ptr<ConnectionBase>& connection, Holder holder);
  /// Memory for a body that is announced: one user does not fill it for all.
  [[nodiscard]] bool take_memory(const std::string& who, std::size_t bytes);
  void give_memory(const std::string& who, std::size_t bytes);
  /// No descriptor was left for a new connection.
  void out_of_descriptors();
  enum class Loss : std::uint8_t { Refused, Cut, Late };
  /// Counts it, and says it once a minute. `cause` is a word that lives for ever.
  void note(Loss loss, std::string_view cause, std::string_view who);
  void drop(const std::shared_ptr<ConnectionBase>& connection);
  /// "Sun, 06 Nov 1994 08:49:37 GMT", made once a second.
  [[nodiscard]] const std::string& date();
  /// For requests that bring none.
  [[nodiscard]] std::string next_request_id();

 private:
  Service& service_;
  ConnectionLimiter limiter_;
  Logger* const log_;
  LogLimit log_limit_;
  std::map<std::string, std::size_t> memory_;  // bodies under way
  const std::time_t begun_ = std::time(nullptr);
  std::time_t dated_ = 0;
  std::string date_;
  std::uint64_t requests_ = 0;
};

[[nodiscard]] std::shared_ptr<ConnectionBase> make_plain_connection(ServerCore& core, Socket socket,
                                                                    Peer peer);

/// A certificate and its key, ready to use.
class TlsContext {
 public:
  virtual ~TlsContext() = default;
  [[nodiscard]] virtual std::shared_ptr<ConnectionBase> make_connection(ServerCore& core,
                                                                        Socket socket,
                                                                        Peer peer) = 0;
};
[[nodiscard]] Result<std::unique_ptr<TlsContext>> load_tls(const TlsFiles& files);

}  // namespace berth::api
