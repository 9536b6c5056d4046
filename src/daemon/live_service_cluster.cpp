// What can be asked of the cluster rather than of a job.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "daemon/learnt.h"
#include "daemon/live_service.h"
#include "daemon/share_settings.h"
#include "daemon/tokens.h"

namespace berth {

namespace {

tl::unexpected<Fault> fault(FaultKind kind, std::string message) {
  return tl::unexpected<Fault>(Fault{.kind = kind, .messages = {std::move(message)}});
}

tl::unexpected<Fault> needs(Role role) {
  return fault(FaultKind::Forbidden,
               fmt::format("this needs {} {}", role == Role::User ? "a" : "an", to_string(role)));
}

/// Users do not take names from each other: theirs are kept behind the user's.
std::string own_token_name(const Caller& caller, const std::string& name) {
  return fmt::format("{}.{}", caller.user, name);
}

constexpr std::size_t kMostTokens = 100;  // of one user: all settings are kept in memory
constexpr std::size_t kMostMembers = 1'000;

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@';
  });
}

}  // namespace

Answer<void> LiveService::write_setting(SettingRecord setting) {
  std::vector<RecordBody> bodies;
  bodies.emplace_back(std::move(setting));
  if (const auto written = parts_.journal.write(std::move(bodies)); !written)
    return fault(FaultKind::Unavailable, written.error().text());
  return {};
}

ClusterView LiveService::cluster(const Caller&) {
  const SchedulerFigures figures = parts_.scheduler.figures();
  const StatusBoard::Counts counts = parts_.board.counts();
  ClusterView view;
  view.policy = figures.policy;
  if (const auto setting = parts_.board.setting("policy")) {
    if (auto choice = policy_choice_from(*setting)) view.settings = std::move(choice->settings);
  }
  view.version = parts_.options.version;
  view.generation = parts_.generation;
  view.started = started_wall_;
  view.uptime_seconds = to_seconds(parts_.clock.now() - started_);
  view.pending = counts.pending;
  view.running = counts.running;
  view.held = counts.held;
  view.gpus = static_cast<std::int32_t>(parts_.cluster.total_gpus());
  for (const NodeView& node : nodes({})) view.gpus_used += node.gpus_used;
  for (const QueueOptions& queue : parts_.admission.options().queues)
    view.queues.push_back({.name = queue.name, .max_time_limit = queue.max_time_limit});
  view.passes = figures.passes;
  view.last_pass_seconds = figures.last_pass_seconds;
  view.worst_pass_seconds = figures.worst_pass_seconds;
  if (parts_.store.space_left() < parts_.options.reserve_bytes)
    view.trouble = "no space left for the journal: nothing new is taken";
  const std::lock_guard lock{trouble_mutex_};
  if (!trouble_.empty()) view.trouble = trouble_;
  return view;
}

std::vector<NodeView> LiveService::nodes(const Caller&) {
  std::vector<NodeView> views;
  std::map<std::string, std::size_t> at;
  const auto settings = parts_.board.settings();
  if (parts_.energy != nullptr) parts_.energy->count_until(parts_.clock.now());
  for (const Node& node : parts_.cluster.nodes) {
    NodeView view;
    view.name = node.name;
    view.state = "up";
    // What a person has said of it comes before whether it is on.
    for (const std::string& key : {"node/" + node.name, kPowerSetting + node.name}) {
      const auto setting = settings.find(key);
      if (setting == settings.end() || setting->second.empty()) continue;
      const std::size_t colon = setting->second.find(": ");
      view.state = setting->second.substr(0, colon);
      if (colon != std::string::npos) view.reason = setting->second.substr(colon + 2);
      break;
    }
    view.type = parts_.cluster.pools[node.pool.value].name;
    view.gpus = node.gpus;
    view.cpus = static_cast<std::int32_t>(node.cpus_milli / 1000);
    view.memory_mib = node.memory_mib;
    view.devices.resize(static_cast<std::size_t>(node.gpus));
    if (parts_.energy != nullptr) {
      view.energy_kwh = parts_.energy->joules(NodeId{static_cast<std::uint32_t>(views.size())});
      for (double& kwh : view.energy_kwh) kwh /= kJoulesPerKwh;
    }
    at[node.name] = views.size();
    views.push_back(std::move(view));
  }
  for (const auto& [job, held] : parts_.board.held_devices()) {
    for (const HeldDevices& here : held) {
      const auto found = at.find(here.node);
      if (found == at.end()) continue;
      NodeView& view = views[found->second];
      view.cpus_used += static_cast<std::int32_t>(here.cores.size());
      for (const std::int32_t device : here.devices) {
        if (static_cast<std::size_t>(device) < view.devices.size())
          view.devices[static_cast<std::size_t>(device)].push_back(job);
      }
    }
  }
  for (NodeView& view : views) {
    view.gpus_used = static_cast<std::int32_t>(
        std::ranges::count_if(view.devices, [](const auto& jobs) { return !jobs.empty(); }));
    if (view.state == "drained" && view.gpus_used > 0) view.state = "draining";
  }
  return views;
}

Answer<NodeView> LiveService::set_node(const Caller& caller, const std::string& node,
                                       const std::string& state, const std::string& reason) {
  if (caller.role == Role::User) return needs(Role::Operator);
  if (std::ranges::find(parts_.cluster.nodes, node, &Node::name) == parts_.cluster.nodes.end())
    return fault(FaultKind::NotFound, fmt::format("there is no node '{}'", node));
  if (state != "drain" && state != "down" && state != "resume")
    return fault(FaultKind::BadRequest,
                 fmt::format("'{}' is no state of a node (drain, down, resume)", state));
  std::string value;
  if (state != "resume") {
    value = state == "drain" ? "drained" : "down";
    value += fmt::format(": {}", reason.empty() ? "by " + caller.user : reason);
  }
  if (auto written = write_setting({.key = "node/" + node, .value = value, .by = caller.user});
      !written)
    return tl::unexpected<Fault>(std::move(written).error());
  for (NodeView& view : nodes(caller)) {
    if (view.name == node) return view;
  }
  return fault(FaultKind::NotFound, node);
}

Answer<ClusterView> LiveService::set_policy(
    const Caller& caller, const std::string& policy,
    const std::vector<std::pair<std::string, std::string>>& settings) {
  if (caller.role != Role::Admin) return needs(Role::Admin);
  const PolicyChoice choice{.policy = policy, .settings = settings};
  if (const auto made = make_policy(choice.policy, choice.settings); !made)
    return tl::unexpected<Fault>(
        Fault{.kind = FaultKind::BadRequest, .messages = made.error().messages});
  if (auto written = write_setting({.key = "policy", .value = to_text(choice), .by = caller.user});
      !written)
    return tl::unexpected<Fault>(std::move(written).error());
  ClusterView view = cluster(caller);
  view.policy = policy;  // in effect after the pass under way
  return view;
}

// --- shares

std::vector<ShareView> LiveService::shares(const Caller& caller) {
  std::map<std::string, ShareView> by_key;  // "user/alice"
  for (const auto& [key, value] : parts_.board.settings()) {
    if (auto share = share_from_setting(key, value)) by_key[key.substr(6)] = *std::move(share);
  }
  const auto entry = [&](const char* kind, const std::string& name) -> ShareView& {
    ShareView& share = by_key[fmt::format("{}/{}", kind, name)];
    share.kind = kind;
    share.name = name;
    return share;
  };
  if (const auto usage =
          parts_.store.usage(parts_.clock.wall(), parts_.options.fair_share_half_life)) {
    for (const Store::Usage& row : *usage) {
      entry("user", row.user).gpu_seconds += row.gpu_seconds;
      if (!row.group.empty()) entry("group", row.group).gpu_seconds += row.gpu_seconds;
    }
  }
  const auto count = [](ShareView& share, std::int32_t gpus) {
    share.gpus_now += gpus;
    ++(gpus > 0 ? share.jobs_now : share.waiting);
  };
  parts_.board.for_each([&](const LedgerJob& job) {
    const std::int32_t gpus = job.attempt ? job.attempt->gpus : 0;
    count(entry("user", job.spec->user), gpus);
    if (!job.spec->group.empty()) count(entry("group", job.spec->group), gpus);
  });
  std::vector<ShareView> shares;
  for (auto& [key, share] : by_key) {
    const bool visible =
        caller.role != Role::User || share.kind == "group" || share.name == caller.user;
    if (visible) shares.push_back(std::move(share));
  }
  return shares;
}

Answer<ShareView> LiveService::set_share(const Caller& caller, const ShareView& share) {
  if (caller.role != Role::Admin) return needs(Role::Admin);
  if ((share.kind != "user" && share.kind != "group") || !is_name(share.name))
    return fault(FaultKind::BadRequest, "a share is of a user or a group, by name");
  if (!(share.shares > 0) || share.gpu_limit < 0 || share.job_limit < 0 ||
      !(share.gpu_seconds_limit >= 0))
    return fault(FaultKind::BadRequest, "shares are above 0, limits not below 0");
  if (!share.members.empty() && share.kind != "group")
    return fault(FaultKind::BadRequest, "members: a user has none, a group has");
  if (share.members.size() > kMostMembers || !std::ranges::all_of(share.members, is_name))
    return fault(FaultKind::BadRequest,
                 fmt::format("members: at most {} names of users", kMostMembers));
  if (auto written =
          write_setting({.key = share_key(share), .value = to_setting(share), .by = caller.user});
      !written)
    return tl::unexpected<Fault>(std::move(written).error());
  return share;
}

// --- tokens

Answer<std::string> LiveService::make_token(const Caller& caller, const TokenView& token) {
  TokenView asked = token;
  if (asked.user.empty()) asked.user = caller.user;
  if (auto allowed = identity_.may_vouch_for(caller, asked.user); !allowed)
    return tl::unexpected<Fault>(std::move(allowed).error());
  if (asked.role > caller.role) return needs(Role::Admin);
  asked.is_granted = asked.user != caller.user;
  if (!is_name(asked.name) || !is_name(asked.user))
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
  if (auto written = write_setting(
          {.key = "token/" + asked.name, .value = to_setting(kept), .by = caller.user});
      !written)
    return tl::unexpected<Fault>(std::move(written).error());
  return text;
}

Answer<std::vector<TokenView>> LiveService::tokens(const Caller& caller) {
  std::vector<TokenView> views;
  for (const auto& [key, value] : parts_.board.settings()) {
    const auto token = token_from_setting(key, value);
    if (token && (caller.role == Role::Admin || token->view.user == caller.user))
      views.push_back(token->view);
  }
  return views;
}

Answer<void> LiveService::revoke_token(const Caller& caller, const std::string& name) {
  // By the name that it was given, or as it is listed.
  std::array<std::string, 2> names{own_token_name(caller, name), name};
  if (caller.role != Role::User) std::swap(names[0], names[1]);
  for (const std::string& kept : names) {
    const std::string key = "token/" + kept;
    const auto setting = parts_.board.setting(key);
    const auto token = setting ? token_from_setting(key, *setting) : std::nullopt;
    if (token && (caller.role == Role::Admin || token->view.user == caller.user))
      return write_setting({.key = key, .value = {}, .by = caller.user});
  }
  return fault(FaultKind::NotFound, fmt::format("there is no token '{}'", name));
}

std::optional<Caller> LiveService::caller_of(const std::string& text) {
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

std::string LiveService::learnt_profiles(const Caller& caller) {
  const LearntKinds learnt{parts_.board.settings()};
  std::vector<LearntKind> kinds;
  for (const auto& [key, kind] : learnt.kinds()) {
    if (caller.role != Role::User || kind.user == caller.user) kinds.push_back(kind);
  }
  return learnt_yaml(kinds);
}

}  // namespace berth
