// What happens, as server-sent events tell it: small, and enough to follow the queue without asking
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wire/describe.h"
#include "wire/view_fields.h"

namespace berth {

/// event: job
struct JobEvent {
  JobNumber job = 0;
  std::string name{}, user{};
  LiveState state{};
  std::string what{};   // the record that was written: submit, intent, started, end …
  std::int64_t at = 0;  // Unix microseconds
  std::string reason{};
  std::optional<std::int32_t> exit_code{};  // of one that is over
  std::int32_t signal = 0;
};
/// event: node, policy, token or cluster
struct SettingEvent {
  std::string key{};    // "node/n1", "policy"
  std::string value{};  // empty of a secret
};
/// event: gap
struct GapEvent {
  std::uint64_t missed = 0;
};

namespace wire {

template <>
struct Fields<JobEvent> {
  static constexpr std::string_view kName = "JobEvent";
  static constexpr std::string_view kMeaning = "event: job";
  template <class Event, class Visit>
  static void visit(Event& e, Visit& v) {
    v("job", e.job);
    v("name", e.name);
    v("user", e.user);
    v("state", e.state);
    v("what", e.what, "what was written of it: submit, intent, started, wish, end …");
    v("at", e.at, "Unix microseconds");
    v("reason", if_any(e.reason), "why it waits or how it ended");
    v("exit_code", if_any(e.exit_code), "of one that is over");
    v("signal", if_any(e.signal), "that ended it");
  }
};
template <>
struct Fields<SettingEvent> {
  static constexpr std::string_view kName = "SettingEvent";
  static constexpr std::string_view kMeaning = "event: node, policy, token or cluster";
  template <class Event, class Visit>
  static void visit(Event& e, Visit& v) {
    v("key", e.key);
    v("value", e.value, "empty of a secret");
  }
};
template <>
struct Fields<GapEvent> {
  static constexpr std::string_view kName = "GapEvent";
  static constexpr std::string_view kMeaning = "event: gap";
  template <class Event, class Visit>
  static void visit(Event& e, Visit& v) {
    v("missed", e.missed, "events that are no longer kept");
  }
};

}  // namespace wire

}  // namespace berth
