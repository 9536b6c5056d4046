// The part of a connection that sends an answer piece by piece, as its source has them: events, and
// output that is followed. Included by connection.h alone.
#pragma once

#include "api/connection.h"

namespace berth::api {

template <class Stream>
void Connection<Stream>::begin_stream(Answered answered) {
  source_ = std::move(answered.source);
  is_endless_ = source_->is_endless();
  if (is_endless_ || version_ == Version::Http10) keep_alive_ = false;
  count(answered.response.status);
  out_ = head_text(answered.response, wire_options(), std::nullopt);
  enter(State::Streaming, core_.limits.write_time);
  ++core_.api.meter().streams;
  if (is_head_) return write([](Connection& me) { me.end_stream(); });
  source_->start([weak = this->weak_from_this(), mailbox = core_.mailbox] {
    mailbox->post([weak] {
      if (const auto me = weak.lock()) me->pull(BodySource::Because::Woken);
    });
  });
  if (is_endless_) watch_for_leaving();
  is_busy_ = true;
  write([](Connection& me) { me.go_on(); });
}

template <class Stream>
void Connection<Stream>::pull(BodySource::Because because) {
  if (state_ != State::Streaming) return;
  if (is_busy_) {
    is_more_ = true;
    return;
  }
  is_busy_ = true;
  timer_.cancel();
  if (is_ending_) return on_piece({{}, true});
  if (!source_->blocks()) return on_piece(source_->next(because));
  core_.workers.post(
      asker_.empty() ? name_of_peer() : asker_, right_,
      [source = source_, because, weak = this->weak_from_this(), mailbox = core_.mailbox] {
        mailbox->post([weak, piece = source->next(because)]() mutable {
          if (const auto me = weak.lock()) me->on_piece(std::move(piece));
        });
      });
}

template <class Stream>
void Connection<Stream>::on_piece(BodySource::Piece piece) {
  if (state_ != State::Streaming) return;
  const bool is_last = piece.is_last || is_ending_;
  if (piece.bytes.empty() && !is_last) return rest();
  out_ = version_ == Version::Http11 ? chunk_text(piece.bytes, is_last) : std::move(piece.bytes);
  set_deadline(core_.limits.write_time);
  if (is_last)
    write([](Connection& me) { me.end_stream(); });
  else
    write([](Connection& me) { me.go_on(); });
}

template <class Stream>
void Connection<Stream>::go_on() {
  is_busy_ = false;
  is_more_ = false;
  pull(BodySource::Because::Woken);
}

template <class Stream>
void Connection<Stream>::rest() {
  is_busy_ = false;
  deadline_.reset();
  if (std::exchange(is_more_, false)) return pull(BodySource::Because::Woken);
  timer_.expires_after(source_->patience());
  timer_.async_wait([self = self()](error_code error) {
    if (!error) self->pull(BodySource::Because::Idle);
  });
}

template <class Stream>
void Connection<Stream>::end_stream() {
  --core_.api.meter().streams;
  state_ = State::Writing;
  source_.reset();
  is_busy_ = is_more_ = false;
  finish_answer();
}

template <class Stream>
void Connection<Stream>::watch_for_leaving() {
  stream_.async_read_some(asio::buffer(watched_), [self = self()](error_code error, std::size_t) {
    if (self->state_ != State::Streaming) return;
    if (error)
      self->close();
    else
      self->watch_for_leaving();
  });
}

}  // namespace berth::api
