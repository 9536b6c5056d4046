// What people and programs ask of a running scheduler, as the bodies of their requests, and the
// small answers that are no views. What is not named in a request stays as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/describe.h"
#include "wire/view_fields.h"

namespace berth {

/// Do something to one job; the verb is in the path.
struct ActionReason {
  std::string why{};
  std::optional<std::int32_t> signal{};
  std::optional<bool> shell_only{};
};
/// Do something to many jobs; empty parts do not restrict, all of them empty is refused.
struct JobAction {
  Verb verb{};
  std::vector<JobNumber> ids{};
  std::optional<std::string> user{}, group{}, queue{}, name{}, study{};
  std::vector<std::string> states{};  // "pending", or "all"
  std::string why{};
  std::optional<std::int32_t> signal{};
  std::optional<bool> shell_only{};
};
/// Step into a running job: the number of a request in its directory of steps.
struct JobJoin {
  std::int32_t request = 0;
};
struct NodeReason {
  std::string reason{};
};
struct PolicySetting {
  std::string policy{};
  std::vector<std::pair<std::string, std::string>> settings{};
};
struct ShareChange {
  std::string kind{}, name{};
  std::optional<double> shares{};
  std::optional<std::int32_t> gpu_limit{}, job_limit{};
  std::optional<double> gpu_seconds_limit{};
  std::optional<std::vector<std::string>> members{};
};
struct TokenRequest {
  std::string name{};
  std::optional<std::string> user{};
  std::optional<std::string> role{};
  std::optional<std::int64_t> expires{};  // Unix seconds; 0: never
};

struct NewToken {
  std::string token{}, name{}, user{};
  Role role{};
  std::int64_t expires = 0;
};
struct LearntProfiles {
  std::string profiles{};
};
struct Health {
  std::string status{};
};
struct ErrorText {
  std::string code{};
  std::vector<std::string> messages{};
};
struct ErrorAnswer {
  ErrorText error{};
};

namespace wire {

inline constexpr std::size_t kMaxNumbers = 10'000;
inline constexpr std::size_t kMaxWhyBytes = 1'024;
inline constexpr std::size_t kMostMembers = 1'000;
inline constexpr std::size_t kMostStates = 32;
inline constexpr double kMuch = 1e15;
inline constexpr std::int64_t kMostRequests = (1 << 23) - 1;
inline constexpr std::int64_t kMany = 1'000'000'000;
inline constexpr std::int64_t kLastSecond = 253'402'300'799;  // the year 9999

template <>
struct Fields<ActionReason> {
  static constexpr std::string_view kName = "Reason";
  template <class Reason, class Visit>
  static void visit(Reason& r, Visit& v) {
    v("why", at_most(r.why, kMaxWhyBytes), "for people");
    v("signal", within(r.signal, std::int64_t{1}, std::int64_t{64}));
    v("shell_only", if_any(r.shell_only),
      "a signal: to the job's own processes, not to what they started");
  }
};

template <>
struct Fields<JobJoin> {
  static constexpr std::string_view kName = "Join";
  template <class Join, class Visit>
  static void visit(Join& j, Visit& v) {
    v("request", within(j.request, std::int64_t{1}, kMostRequests),
      "number of a request in the job's directory of steps");
  }
};

template <>
struct Fields<JobAction> {
  static constexpr std::string_view kName = "Action";
  static constexpr std::string_view kMeaning =
      "at least one of ids, user, group, queue, name, study, state";
  template <class Asked, class Visit>
  static void visit(Asked& a, Visit& v) {
    v("verb", needed(a.verb));
    v("ids", at_most(a.ids, kMaxNumbers));
    v("user", if_any(a.user));
    v("group", if_any(a.group));
    v("queue", if_any(a.queue));
    v("name", if_any(a.name));
    v("study", if_any(a.study));
    v("state", one_or_many(a.states, kMostStates));
    v("why", at_most(a.why, kMaxWhyBytes));
    v("signal", within(a.signal, std::int64_t{1}, std::int64_t{64}));
    v("shell_only", if_any(a.shell_only),
      "a signal: to the job's own processes, not to what they started");
  }
};

template <>
struct Fields<NodeReason> {
  static constexpr std::string_view kName = "NodeReason";
  template <class Reason, class Visit>
  static void visit(Reason& r, Visit& v) {
    v("reason", at_most(r.reason, kMaxWhyBytes));
  }
};

template <>
struct Fields<PolicySetting> {
  static constexpr std::string_view kName = "Policy";
  template <class Policy, class Visit>
  static void visit(Policy& p, Visit& v) {
    v("policy", needed(p.policy));
    v("settings", p.settings);
  }
};

template <>
struct Fields<ShareChange> {
  static constexpr std::string_view kName = "ShareChange";
  template <class Change, class Visit>
  static void visit(Change& c, Visit& v) {
    v("kind", needed(one_of(c.kind, kShareKinds)));
    v("name", needed(c.name));
    v("shares", within(c.shares, 0.0, 1e9));
    v("gpu_limit", within(c.gpu_limit, std::int64_t{0}, kMany));
    v("job_limit", within(c.job_limit, std::int64_t{0}, kMany));
    v("gpu_seconds_limit", within(c.gpu_seconds_limit, 0.0, kMuch));
    v("members", at_most(c.members, kMostMembers), "of a group: all of them");
  }
};

inline constexpr auto kRoleWords = words<Role>();

template <>
struct Fields<TokenRequest> {
  static constexpr std::string_view kName = "TokenRequest";
  template <class Request, class Visit>
  static void visit(Request& r, Visit& v) {
    v("name", needed(r.name));
    v("user", if_any(r.user), "whom it stands for (default: you)");
    v("role", one_of(r.role, kRoleWords));
    v("expires", within(r.expires, std::int64_t{0}, kLastSecond), "Unix seconds; 0: never");
  }
};

template <>
struct Fields<NewToken> {
  static constexpr std::string_view kName = "NewToken";
  template <class Token, class Visit>
  static void visit(Token& t, Visit& v) {
    v("token", t.token, "shown this once");
    v("name", t.name);
    v("user", t.user);
    v("role", t.role);
    v("expires", or_null(t.expires));
  }
};

template <>
struct Fields<LearntProfiles> {
  static constexpr std::string_view kName = "Profiles";
  template <class Answer, class Visit>
  static void visit(Answer& p, Visit& v) {
    v("profiles", p.profiles, "a profile file, YAML (docs/formats/profiles.md)");
  }
};

inline constexpr std::array<std::string_view, 2> kHealths{"ok", "trouble"};
template <>
struct Fields<Health> {
  static constexpr std::string_view kName = "Health";
  template <class Answer, class Visit>
  static void visit(Answer& h, Visit& v) {
    v("status", one_of(h.status, kHealths));
  }
};

template <>
struct Fields<ErrorText> {
  static constexpr std::string_view kName = "";
  template <class Text, class Visit>
  static void visit(Text& e, Visit& v) {
    v("code", e.code,
      "bad_request, unauthorized, forbidden, not_found, conflict, impossible, too_many, "
      "unavailable "
      "…");
    v("messages", e.messages);
  }
};
template <>
struct Fields<ErrorAnswer> {
  static constexpr std::string_view kName = "Error";
  template <class Answer, class Visit>
  static void visit(Answer& e, Visit& v) {
    v("error", e.error);
  }
};

}  // namespace wire

}  // namespace berth
