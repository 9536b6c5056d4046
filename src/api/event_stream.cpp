#include "api/event_stream.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include <fmt/format.h>

#include "base/split.h"
#include "wire/events.h"
#include "wire/writer.h"

namespace berth::api {

bool EventFilter::takes(const ServiceEvent& event) const {
  if (!jobs.empty() && std::ranges::find(jobs, event.job) == jobs.end()) return false;
  if (user && event.user != *user) return false;
  return !kind || event.kind == *kind;
}

std::string event_text(const ServiceEvent& event) {
  std::string text = fmt::format("id: {}\nevent: {}\n", event.sequence, event.kind);
  for (const std::string_view line : split(event.json, '\n'))
    fmt::format_to(std::back_inserter(text), "data: {}\n", line);
  text += '\n';
  return text;
}

struct EventStream::Buffer {
  const EventFilter filter;
  const std::size_t max_bytes;
  const std::function<void()> wake;

  std::mutex mutex;
  std::string bytes;
  std::uint64_t expected = 0;  // the sequence that follows; 0: whatever comes
  bool is_full = false;        // something did not fit: nothing more is taken

  void add(const ServiceEvent& event) {
    {
      const std::lock_guard lock(mutex);
      if (is_full) return;
      const bool was_empty = bytes.empty();
      std::string text;
      if (expected != 0 && event.sequence > expected) {  // no longer kept when we came
        const GapEvent gap{event.sequence - expected};
        text = fmt::format("event: gap\ndata: {}\n\n", wire::to_json(gap));
      }
      expected = event.sequence + 1;
      if (filter.takes(event)) text += event_text(event);
      if (text.empty()) return;
      if (bytes.size() + text.size() > max_bytes)
        is_full = true;
      else
        bytes += text;
      if (!was_empty) return;  // it was woken and has not looked yet
    }
    wake();
  }
};

EventStream::EventStream(Service& service, Options options)
    : service_(service), options_(std::move(options)) {}

EventStream::~EventStream() = default;

void EventStream::start(std::function<void()> wake) {
  buffer_.reset(new Buffer{std::move(options_.filter),
                           options_.max_bytes,
                           std::move(wake),
                           {},
                           "retry: 2000\n\n",
                           options_.after + 1,
                           false});
  // Numbers begin anew with each life of the scheduler: one from the future is from the past.
  if (options_.after > service_.latest()) {
    buffer_->bytes += "event: reset\ndata: {}\n\n";
    buffer_->expected = 0;
    options_.after = 0;
  }
  subscription_ = service_.subscribe(
      options_.after, [buffer = buffer_](const ServiceEvent& event) { buffer->add(event); });
}

BodySource::Piece EventStream::next(Because because) {
  const std::lock_guard lock(buffer_->mutex);
  Piece piece{std::exchange(buffer_->bytes, {}), buffer_->is_full};
  if (piece.is_last)
    piece.bytes += "event: overflow\ndata: {}\n\n";
  else if (piece.bytes.empty() && because == Because::Idle)
    piece.bytes = ":\n\n";
  return piece;
}

}  // namespace berth::api
