// What happens in the scheduler as server-sent events: one subscription per reader, filtered, kept
// in a bounded buffer until the connection takes it. A reader who is too slow gets what fitted and
// then the end; it comes back with Last-Event-ID and loses nothing that is still kept.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/message.h"

namespace berth::api {

struct EventFilter {
  std::vector<JobNumber> jobs;  // empty: all
  std::optional<std::string> user;
  std::optional<std::string> kind;
  [[nodiscard]] bool takes(const ServiceEvent& event) const;
};

/// "id: 7\nevent: job\ndata: {…}\n\n"
[[nodiscard]] std::string event_text(const ServiceEvent& event);

class EventStream final : public BodySource {
 public:
  struct Options {
    EventFilter filter{};
    std::uint64_t after = 0;
    std::size_t max_bytes = 1U << 20U;
    std::chrono::milliseconds heartbeat{15'000};
  };
  EventStream(Service& service, Options options);
  ~EventStream() override;

  void start(std::function<void()> wake) override;
  [[nodiscard]] Piece next(Because because) override;
  [[nodiscard]] std::chrono::milliseconds patience() const override { return options_.heartbeat; }
  [[nodiscard]] bool blocks() const override { return false; }
  [[nodiscard]] bool is_endless() const override { return true; }

 private:
  struct Buffer;  // shared with the subscription, which any thread may be calling

  Service& service_;
  Options options_;
  std::shared_ptr<Buffer> buffer_;
  std::unique_ptr<Service::Subscription> subscription_;
};

}  // namespace berth::api
