// What the connections of one server share. Private to the server's sources; everything here except
// the mailbox belongs to the I/O thread.
#pragma once

#include <utility>  // before Asio 1.74, which forgets it

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "api/server.h"

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

class ConnectionBase {
 public:
  virtual ~ConnectionBase() = default;
  virtual void start() = 0;
  /// Looks at its deadline; called a few times a second.
  virtual void sweep(SteadyTime now) = 0;
  /// Finish what is under way and go.
  virtual void begin_stop() = 0;
  virtual void close() = 0;
  [[nodiscard]] virtual const Peer& peer() const noexcept = 0;
};

struct ServerCore {
  ServerCore(Service& service, const ServerOptions& options)
      : limits(options.limits),
        workers(options.workers),
        mailbox(std::make_shared<Mailbox>(io)),
        api(service, options.api) {}

  const ServerLimits limits;
  asio::io_context io{1};
  asio::thread_pool workers;
  std::shared_ptr<Mailbox> mailbox;
  Api api;
  std::set<std::shared_ptr<ConnectionBase>> connections;
  std::unordered_map<std::string, std::size_t> per_peer;
  bool is_stopping = false;

  [[nodiscard]] bool has_room_for(const Peer& peer) const;
  void add(std::shared_ptr<ConnectionBase> connection);
  void drop(const std::shared_ptr<ConnectionBase>& connection);
  /// "Sun, 06 Nov 1994 08:49:37 GMT", made once a second.
  [[nodiscard]] const std::string& date();
  /// For requests that bring none.
  [[nodiscard]] std::string next_request_id();

 private:
  [[nodiscard]] static std::string key_of(const Peer& peer);
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
