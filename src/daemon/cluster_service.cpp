#include "daemon/cluster_service.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "daemon/learnt.h"
#include "daemon/service_fault.h"
#include "daemon/share_settings.h"

namespace berth {

namespace {

constexpr std::size_t kMostMembers = 1'000;

}  // namespace

ClusterService::ClusterService(Parts parts)
    : parts_(std::move(parts)), started_wall_(parts_.clock.wall()), started_(parts_.clock.now()) {}

void ClusterService::set_trouble(std::string trouble) {
  const std::lock_guard lock{trouble_mutex_};
  trouble_ = std::move(trouble);
}

ClusterView ClusterService::cluster() {
  const SchedulerFigures figures = parts_.scheduler.figures();
  const StatusBoard::Counts counts = parts_.board.counts();
  ClusterView view;
  view.name = parts_.cluster.name;
  view.policy = figures.policy;
  if (const auto setting = parts_.board.setting("policy")) {
    if (auto choice = policy_choice_from(*setting)) view.settings = std::move(choice->settings);
  }
  view.version = parts_.version;
  view.generation = parts_.generation;
  view.started = started_wall_;
  view.uptime_seconds = to_seconds(parts_.clock.now() - started_);
  view.pending = counts.pending;
  view.running = counts.running;
  view.held = counts.held;
  view.gpus = static_cast<std::int32_t>(parts_.cluster.total_gpus());
  for (const NodeView& node : nodes()) view.gpus_used += node.gpus_used;
  for (const QueueOptions& queue : parts_.admission.options().queues)
    view.queues.push_back({.name = queue.name,
                           .max_time_limit = queue.max_time_limit,
                           .default_time_limit = queue.default_time_limit > 0
                                                     ? queue.default_time_limit
                                                     : queue.max_time_limit});
  view.passes = figures.passes;
  view.last_pass_seconds = figures.last_pass_seconds;
  view.worst_pass_seconds = figures.worst_pass_seconds;
  if (parts_.store.space_left() < parts_.reserve_bytes)
    view.trouble = "no space left for the journal: nothing new is taken";
  const std::lock_guard lock{trouble_mutex_};
  if (!trouble_.empty()) view.trouble = trouble_;
  return view;
}

std::vector<NodeView> ClusterService::nodes() {
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
  std::vector<bool> is_in_use(views.size());
  for (const StatusBoard::Holding& held : parts_.board.holdings()) {
    const auto found = at.find(held.where.node);
    if (found == at.end()) continue;
    NodeView& view = views[found->second];
    is_in_use[found->second] = true;
    // A description may have shrunk since: nobody is told of more than there is.
    view.cpus_used = std::min(view.cpus, view.cpus_used + held.cores);
    for (const std::int32_t device : held.where.devices) {
      if (static_cast<std::size_t>(device) < view.devices.size())
        view.devices[static_cast<std::size_t>(device)].push_back(held.job);
    }
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    NodeView& view = views[i];
    view.gpus_used = static_cast<std::int32_t>(
        std::ranges::count_if(view.devices, [](const auto& jobs) { return !jobs.empty(); }));
    if (view.state == "drained" && is_in_use[i]) view.state = "draining";
  }
  return views;
}

Answer<NodeView> ClusterService::set_node(const Caller& caller, const std::string& node,
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
  if (auto written =
          parts_.write_setting({.key = "node/" + node, .value = value, .by = caller.user});
      !written)
    return tl::unexpected<Fault>(std::move(written).error());
  for (NodeView& view : nodes()) {
    if (view.name == node) return view;
  }
  return fault(FaultKind::NotFound, node);
}

Answer<ClusterView> ClusterService::set_policy(
    const Caller& caller, const std::string& policy,
    const std::vector<std::pair<std::string, std::string>>& settings) {
  if (caller.role != Role::Admin) return needs(Role::Admin);
  const PolicyChoice choice{.policy = policy, .settings = settings};
  if (const auto made = make_policy(choice.policy, choice.settings); !made)
    return tl::unexpected<Fault>(
        Fault{.kind = FaultKind::BadRequest, .messages = made.error().messages});
  if (auto written =
          parts_.write_setting({.key = "policy", .value = to_text(choice), .by = caller.user});
      !written)
    return tl::unexpected<Fault>(std::move(written).error());
  ClusterView view = cluster();
  view.policy = policy;  // in effect after the pass under way
  return view;
}

// --- shares

std::vector<ShareView> ClusterService::shares(const Caller& caller) {
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
  if (const auto usage = parts_.store.usage(parts_.clock.wall(), parts_.half_life)) {
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
  double all_shares = 0, all_gpu_seconds = 0;
  for (const auto& [key, share] : by_key) {
    all_shares += share.shares;
    all_gpu_seconds += share.gpu_seconds;
  }
  std::vector<ShareView> shares;
  for (auto& [key, share] : by_key) {
    share.all_shares = all_shares;
    share.all_gpu_seconds = all_gpu_seconds;
    const bool visible =
        caller.role != Role::User || share.kind == "group" || share.name == caller.user;
    if (visible) shares.push_back(std::move(share));
  }
  return shares;
}

Answer<ShareView> ClusterService::set_share(const Caller& caller, const ShareView& share) {
  if (caller.role != Role::Admin) return needs(Role::Admin);
  if ((share.kind != "user" && share.kind != "group") || !is_plain_name(share.name))
    return fault(FaultKind::BadRequest, "a share is of a user or a group, by name");
  if (!(share.shares > 0) || share.gpu_limit < 0 || share.job_limit < 0 ||
      !(share.gpu_seconds_limit >= 0))
    return fault(FaultKind::BadRequest, "shares are above 0, limits not below 0");
  if (!share.members.empty() && share.kind != "group")
    return fault(FaultKind::BadRequest, "members: a user has none, a group has");
  if (share.members.size() > kMostMembers || !std::ranges::all_of(share.members, is_plain_name))
    return fault(FaultKind::BadRequest,
                 fmt::format("members: at most {} names of users", kMostMembers));
  if (auto written = parts_.write_setting(
          {.key = share_key(share), .value = to_setting(share), .by = caller.user});
      !written)
    return tl::unexpected<Fault>(std::move(written).error());
  return share;
}

std::string ClusterService::learnt_profiles(const Caller& caller) {
  const LearntKinds learnt{parts_.board.settings()};
  std::vector<LearntKind> kinds;
  for (const auto& [key, kind] : learnt.kinds()) {
    if (caller.role != Role::User || kind.user == caller.user) kinds.push_back(kind);
  }
  return learnt_yaml(kinds);
}

}  // namespace berth
