#include "daemon/caller_directory.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "daemon/service_fault.h"

namespace berth {

namespace {

constexpr std::size_t kMostTokens = 100;  // of one user: all settings are kept in memory

/// Users do not take names from each other: theirs are kept behind the user's.
std::string own_token_name(const Caller& caller, const std::string& name) {
  return fmt::format("{}.{}", caller.user, name);
}

}  // namespace

bool is_plain_name(const std::string& text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@';
  });
}

Role CallerDirectory::role_of(const std::string& user, std::uint32_t uid) const {
  if (uid == 0 || uid == getuid() || parts_.admins.contains(user)) return Role::Admin;
  return parts_.operators.contains(user) ? Role::Operator : Role::User;
}

/// A role that somebody gave to a token of his own is good while he has it
/// himself; one that an admin gave to somebody else is good until the token is
/// revoked.
Role CallerDirectory::role_of_token(const TokenView& token) {
  if (token.role == Role::User || token.is_granted) return token.role;
  const Role now = role_of(token.user, kNoUid);
  if (now >= token.role) return token.role;
  return std::min(token.role,
                  role_of(token.user, parts_.identity.uid_of(token.user).value_or(kNoUid)));
}

Caller CallerDirectory::caller_of_peer(std::uint32_t uid, std::uint32_t gid) {
  constexpr Duration kKept = std::chrono::minutes{1};
  const Time now = parts_.clock.now();
  {
    const std::lock_guard lock{callers_mutex_};
    const auto known = peers_.find(uid);
    if (known != peers_.end() && now - known->second.second < kKept) return known->second.first;
  }
  Caller caller{.user = fmt::format("uid{}", uid), .uid = uid, .gid = gid};
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    caller.user = found->pw_name;
  caller.role = role_of(caller.user, uid);
  const std::lock_guard lock{callers_mutex_};
  peers_[uid] = {caller, now};
  return caller;
}

Answer<std::string> CallerDirectory::make_token(const Caller& caller, const TokenView& token) {
  TokenView asked = token;
  if (asked.user.empty()) asked.user = caller.user;
  if (auto allowed = parts_.identity.may_vouch_for(caller, asked.user); !allowed)
    return tl::unexpected<Fault>(std::move(allowed).error());
  if (asked.role > caller.role) return needs(Role::Admin);
  asked.is_granted = asked.user != caller.user;
  if (!is_plain_name(asked.name) || !is_plain_name(asked.user))
    return fault(FaultKind::BadRequest, "a token has a name of letters, digits and -_.@");
  asked.created = parts_.clock.wall() / 1'000'000;
  if (asked.expires != 0 && asked.expires <= asked.created)
    return fault(FaultKind::BadRequest, "expires: lies in the past");
  if (caller.role == Role::User) asked.name = own_token_name(caller, asked.name);
  if (parts_.board.setting("token/" + asked.name))
    return fault(FaultKind::Conflict, fmt::format("there is a token '{}'", asked.name));
  if (const auto kept = tokens(caller);
      kept && caller.role == Role::User && kept->size() >= kMostTokens)
    return fault(FaultKind::TooMany,
                 fmt::format("{} has {} tokens: revoke some", caller.user, kept->size()));
  const std::string text = new_token_text();
  const KeptToken kept{.view = asked, .hash = token_hash(text)};
  if (auto written = parts_.write_setting(
          {.key = "token/" + asked.name, .value = to_setting(kept), .by = caller.user});
      !written)
    return tl::unexpected<Fault>(std::move(written).error());
  return text;
}

Answer<std::vector<TokenView>> CallerDirectory::tokens(const Caller& caller) {
  std::vector<TokenView> views;
  for (const auto& [key, value] : parts_.board.settings()) {
    const auto token = token_from_setting(key, value);
    if (token && (caller.role == Role::Admin || token->view.user == caller.user))
      views.push_back(token->view);
  }
  return views;
}

Answer<void> CallerDirectory::revoke_token(const Caller& caller, const std::string& name) {
  // By the name that it was given, or as it is listed.
  std::array<std::string, 2> names{own_token_name(caller, name), name};
  if (caller.role != Role::User) std::swap(names[0], names[1]);
  for (const std::string& kept : names) {
    const std::string key = "token/" + kept;
    const auto setting = parts_.board.setting(key);
    const auto token = setting ? token_from_setting(key, *setting) : std::nullopt;
    if (token && (caller.role == Role::Admin || token->view.user == caller.user))
      return parts_.write_setting({.key = key, .value = {}, .by = caller.user});
  }
  return fault(FaultKind::NotFound, fmt::format("there is no token '{}'", name));
}

std::optional<Caller> CallerDirectory::caller_of(const std::string& text) {
  const std::string hash = token_hash(text);
  const std::int64_t now = parts_.clock.wall() / 1'000'000;
  TokenView token;
  {
    const std::lock_guard lock{callers_mutex_};
    if (const std::uint64_t version = parts_.board.settings_version(); version != tokens_version_) {
      tokens_by_hash_.clear();
      for (const auto& [key, value] : parts_.board.settings()) {
        if (auto kept = token_from_setting(key, value)) tokens_by_hash_[kept->hash] = *kept;
      }
      tokens_version_ = version;
    }
    const auto found = tokens_by_hash_.find(hash);
    if (found == tokens_by_hash_.end()) return std::nullopt;
    token = found->second.view;
  }
  if (token.expires != 0 && token.expires <= now) return std::nullopt;
  return Caller{.user = token.user, .uid = kNoUid, .gid = kNoUid, .role = role_of_token(token)};
}

}  // namespace berth
