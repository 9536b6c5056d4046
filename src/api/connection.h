// One client from its first byte to its last: reads a request, has it admitted by its head, reads
// the body, has it answered, writes the answer, and begins anew. Requests sent ahead (pipelined)
// wait in the buffer, so answers keep their order. A template over the kind of stream, included by
// the two sources that make connections. I/O thread only.
#pragma once

#include "api/server_core.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>
#include <optional>

#include "api/request_head.h"
#include "api/wire.h"

namespace berth::api {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

/// What of `Stream` differs: a plain socket needs no handshake and says goodbye by closing.
template <class Stream>
struct StreamKind;

template <class Stream>
class Connection final : public ConnectionBase,
                         public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(ServerCore& core, Stream stream, Peer peer)
      : core_(core),
        peer_(std::move(peer)),
        stream_(std::move(stream)),
        buffer_(core.limits.header_bytes + kReadBytes),
        timer_(core.io) {}

  void start() override {
    set_deadline(core_.limits.header_time);
    StreamKind<Stream>::begin(stream_, [self = self()](error_code error) {
      if (error)
        self->close();
      else
        self->await_request();
    });
  }

  void sweep(SteadyTime now) override {
    if (!deadline_ || now < *deadline_) return;
    if (is_reading() && !is_late_) {  // tell it before we part
      is_late_ = true;
      core_.note(ServerCore::Loss::Late, "slow", name_of_peer());
      set_deadline(kGoodbye);
      socket().cancel();
    } else {
      close();
    }
  }

  void begin_stop() override {
    keep_alive_ = false;
    if (state_ == State::Idle || state_ == State::Draining) return close();
    if (state_ == State::Streaming && is_endless_) {
      is_ending_ = true;
      pull(BodySource::Because::Woken);
    }
  }

  void close() override {
    if (state_ == State::Closed) return;
    if (state_ == State::Streaming) --core_.api.meter().streams;
    state_ = State::Closed;
    give_memory();
    deadline_.reset();
    timer_.cancel();
    source_.reset();
    error_code ignored;
    socket().shutdown(Socket::shutdown_both, ignored);
    socket().close(ignored);
    core_.drop(self());
  }

  [[nodiscard]] const Peer& peer() const noexcept override { return peer_; }
  [[nodiscard]] bool is_waiting() const noexcept override {
    return state_ == State::Idle || is_reading() || state_ == State::Draining;
  }

 private:
  enum class State : std::uint8_t {
    Idle,
    Header,
    Body,
    Answering,
    Writing,
    Streaming,
    Draining,
    Closed
  };
  using Parser = http::request_parser<http::string_body>;
  static constexpr std::size_t kReadBytes = 64U << 10U;
  static constexpr std::chrono::milliseconds kGoodbye{2'000};

  [[nodiscard]] std::shared_ptr<Connection> self() { return this->shared_from_this(); }
  [[nodiscard]] Socket& socket() { return StreamKind<Stream>::socket(stream_); }
  [[nodiscard]] bool is_reading() const { return state_ == State::Header || state_ == State::Body; }
  void set_deadline(std::chrono::milliseconds time) {
    deadline_ = std::chrono::steady_clock::now() + time;
  }
  void enter(State state, std::chrono::milliseconds time) {
    state_ = state;
    set_deadline(time);
  }

  // Reading.

  void await_request() {
    if (core_.is_stopping) return close();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(core_.limits.header_bytes));
    parser_->body_limit(core_.api.options().max_submit_bytes);
    if (buffer_.size() > 0) return read_header();
    // Who has asked nothing yet has shown no reason to be waited for.
    enter(State::Idle, has_asked_ ? core_.limits.idle_time : core_.limits.header_time);
    stream_.async_read_some(buffer_.prepare(4'096),
                            [self = self()](error_code error, std::size_t count) {
                              if (self->state_ == State::Closed) return;
                              if (error) return self->close();
                              self->buffer_.commit(count);
                              self->read_header();
                            });
  }

  void read_header() {
    has_asked_ = true;
    enter(State::Header, core_.limits.header_time);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = self()](error_code error, std::size_t) {
                              if (self->state_ == State::Closed) return;
                              if (error)
                                self->refuse_unreadable(error);
                              else
                                self->admit();
                            });
  }

  void admit() {
    begun_ = std::chrono::steady_clock::now();
    const auto& request = parser_->get();
    version_ = request.version() >= 11 ? Version::Http11 : Version::Http10;
    is_head_ = request.method() == http::verb::head;
    keep_alive_ = request.keep_alive();
    request_id_ = request_id_from(request);
    const auto length = parser_->content_length();
    const bool has_body = parser_->chunked() || (length && *length > 0);
    const auto expects = expectation(request);
    if (!expects) return refuse(expects.error());
    Head head = head_from(request);
    head.request_id = request_id_;
    head.peer = peer_;
    auto admitted = core_.api.admit(head, has_body ? Api::Body::Announced : Api::Body::None);
    route_ = admitted ? admitted->route->name : "none";
    if (!admitted) {
      if (has_body) return refuse(admitted.error());
      return send(admitted.error());
    }
    if (!admitted->caller.user.empty() && !take_own_seat(admitted->caller))
      return refuse(error_response(503, "too many open connections of this user"));
    if (length && *length > admitted->max_body_bytes)
      return refuse(too_large(admitted->max_body_bytes));
    parser_->body_limit(admitted->max_body_bytes);
    admitted_ = *std::move(admitted);
    if (parser_->is_done()) return dispatch();
    if (*expects == Expects::Nothing) return read_body();
    out_ = "HTTP/1.1 100 Continue\r\n\r\n";
    write([](Connection& me) { me.read_body(); });
  }

  /// From now on it counts as its user's, and its questions wait in that user's line.
  bool take_own_seat(const Caller& caller) {
    right_ = caller.role == Role::Admin ? FairWorkers::Right::Admin : FairWorkers::Right::Common;
    asker_ = caller.user;
    if (peer_.is_local || is_known_) return true;
    is_known_ = core_.reseat(self(), ServerCore::holder_of(caller));
    return is_known_;
  }

  [[nodiscard]] std::string name_of_peer() const {
    return peer_.is_local ? "uid " + std::to_string(peer_.uid) : peer_.address;
  }

  void give_memory() {
    if (body_bytes_ > 0) core_.give_memory(payer_, std::exchange(body_bytes_, 0));
  }

  void read_body() {
    const auto length = parser_->content_length();
    const auto bytes =
        length ? static_cast<std::size_t>(*length) : std::size_t{admitted_.max_body_bytes};
    payer_ = asker_.empty() ? name_of_peer() : asker_;
    if (!core_.take_memory(payer_, bytes))
      return refuse(error_response(503, "too many large requests of this user at once"));
    body_bytes_ = bytes;
    enter(State::Body, core_.limits.body_time);
    http::async_read(stream_, buffer_, *parser_, [self = self()](error_code error, std::size_t) {
      if (self->state_ == State::Closed) return;
      if (error)
        self->refuse_unreadable(error);
      else
        self->dispatch();
    });
  }

  // Answering.

  void dispatch() {
    enter(State::Answering, core_.limits.answer_time);
    Reply reply = [weak = this->weak_from_this(), mailbox = core_.mailbox](Answered answered) {
      mailbox->post([weak, answered = std::move(answered)]() mutable {
        if (const auto me = weak.lock()) me->on_answer(std::move(answered));
      });
    };
    std::string body = std::move(parser_->get().body());
    if (admitted_.route->cost == RouteCost::Quick)
      return core_.api.answer(std::move(admitted_), std::move(body), std::move(reply));
    core_.workers.post(asker_.empty() ? name_of_peer() : asker_, right_,
                       [&api = core_.api, admitted = std::move(admitted_), body = std::move(body),
                        reply = std::move(reply)]() mutable {
                         api.answer(std::move(admitted), std::move(body), std::move(reply));
                       });
  }

  void on_answer(Answered answered) {
    if (state_ != State::Answering) return;
    give_memory();
    if (answered.source)
      begin_stream(std::move(answered));
    else
      send(answered.response);
  }

  /// An answer after which nothing more can be read: a body we do not want follows.
  void refuse(const Response& response) {
    keep_alive_ = false;
    send(response);
  }

  void refuse_unreadable(error_code error) {
    begun_ = std::chrono::steady_clock::now();
    route_ = "none";
    is_head_ = false;
    if (is_late_) return refuse(error_response(408, "the request did not come in time"));
    const auto answer =
        unreadable(error, state_ == State::Body ? admitted_.max_body_bytes
                                                : core_.api.options().max_submit_bytes);
    if (!answer) return close();
    refuse(*answer);
  }

  void send(const Response& response) {
    if (core_.is_stopping) keep_alive_ = false;
    count(response.status);
    out_ = head_text(response, wire_options(), response.body.size());
    if (!is_head_ && response.status != 204) out_ += response.body;
    enter(State::Writing, core_.limits.write_time);
    write([](Connection& me) { me.finish_answer(); });
  }

  void finish_answer() {
    if (keep_alive_) return await_request();
    if (is_endless_) return close();  // the watch is still reading
    drain();
  }

  [[nodiscard]] WireOptions wire_options() {
    if (request_id_.empty()) request_id_ = core_.next_request_id();
    return {version_, keep_alive_, core_.date(), request_id_};
  }

  void count(int status) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_;
    core_.api.meter().count(route_, status, took.count());
  }

  template <class Then>
  void write(Then then) {
    asio::async_write(stream_, asio::buffer(out_),
                      [self = self(), then](error_code error, std::size_t) {
                        if (self->state_ == State::Closed) return;
                        if (error) return self->close();
                        then(*self);
                      });
  }

  // Streaming (connection_streaming.h).

  void begin_stream(Answered answered);
  /// One look at the source or one write is under way at a time.
  void pull(BodySource::Because because);
  void on_piece(BodySource::Piece piece);
  void go_on();
  /// Until the source wakes us or its patience ends.
  void rest();
  void end_stream();
  /// A reader of a stream has nothing more to say: the end of its side is its leaving.
  void watch_for_leaving();

  // Parting: closing with bytes unread would reset the connection and lose our last answer.

  void drain() {
    enter(State::Draining, kGoodbye);
    StreamKind<Stream>::end(stream_, [self = self()] {
      if (self->state_ == State::Draining) self->drain_more();
    });
  }

  void drain_more() {
    stream_.async_read_some(asio::buffer(watched_), [self = self()](error_code error, std::size_t) {
      if (error)
        self->close();
      else if (self->state_ == State::Draining)
        self->drain_more();
    });
  }

  ServerCore& core_;
  const Peer peer_;
  Stream stream_;
  beast::flat_buffer buffer_;
  asio::steady_timer timer_;
  State state_ = State::Idle;
  std::optional<SteadyTime> deadline_;
  bool is_late_ = false;
  bool has_asked_ = false;
  bool is_known_ = false;  // by a token: it has a seat among its user's
  std::string asker_;
  std::string payer_;           // of the memory for a body
  std::size_t body_bytes_ = 0;  // so much of it
  FairWorkers::Right right_ = FairWorkers::Right::Common;

  // The request under way.
  std::optional<Parser> parser_;
  Admitted admitted_;
  SteadyTime begun_;
  std::string_view route_ = "none";
  std::string request_id_;
  Version version_ = Version::Http11;
  bool is_head_ = false;
  bool keep_alive_ = true;

  // Its answer.
  std::string out_;
  std::shared_ptr<BodySource> source_;
  bool is_endless_ = false;
  bool is_busy_ = false;
  bool is_more_ = false;
  bool is_ending_ = false;
  std::array<char, 512> watched_{};
};

}  // namespace berth::api

#include "api/connection_streaming.h"
