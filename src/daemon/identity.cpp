#include "daemon/identity.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/share_settings.h"

namespace berth {

namespace {

tl::unexpected<Fault> fault(FaultKind kind, std::string message) {
  return tl::unexpected<Fault>(Fault{.kind = kind, .messages = {std::move(message)}});
}

/// Root by the kernel's word; a token that says so is only a text.
bool is_root_here(const Caller& caller) { return caller.uid == 0 && caller.role == Role::Admin; }

/// How a job is treated, for those who may not say what it runs. What is not named here is the
/// owner's: a key that is added later is closed until somebody has thought about it. The name is
/// the owner's too: it is part of the paths that are written with the owner's rights.
constexpr std::array kTreatment{
    "group",          "queue",         "comment",  "gpus",           "gpus_min",    "gpus_max",
    "gpu_milli",      "gpu_type",      "cpus",     "memory_mib",     "nodes",       "exclusive",
    "time_limit",     "estimate",      "priority", "weight",         "preemptible", "requeue",
    "max_retries",    "warn_seconds",  "deadline", "soft_deadline",  "begin",       "dependencies",
    "any_dependency", "grace_seconds", "qos",      "gpu_memory_mib", "exclude",     "keep_unmet"};

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Identity::Identity(const StatusBoard& board, Options options)
    : board_(board), rules_(std::move(options.groups)), users_(std::move(options.lookup)) {}

std::optional<std::uint32_t> Identity::uid_of(const std::string& user) {
  const auto found = users_.find(user);
  if (!found || !*found) return std::nullopt;
  return (*found)->uid;
}

// --- users

Answer<void> Identity::check_account(const Caller& caller, const std::string& user,
                                     bool may_be_unknown) {
  const auto found = users_.find(user);
  if (!found) return fault(FaultKind::Unavailable, found.error().text());
  if (!*found) {
    // A scheduler that is not root runs everything as itself, known or not.
    const bool is_itself = ::geteuid() != 0 && user == fmt::format("uid{}", ::geteuid());
    if (may_be_unknown || is_itself) return {};
    return fault(FaultKind::Impossible, fmt::format("user: {} is not known on this machine", user));
  }
  const std::uint32_t uid = (*found)->uid;
  if (uid == 0) {
    if (is_root_here(caller)) return {};
    return fault(FaultKind::Forbidden,
                 "user: jobs of root are submitted by root at the scheduler's own socket, not by "
                 "others and not with a token");
  }
  const bool is_own = user == caller.user;
  // A scheduler that is not root runs everything as itself, whatever number it has.
  if (is_own && ::geteuid() != 0 && uid == ::geteuid()) return {};
  if (users_.is_system(uid))
    return fault(FaultKind::Forbidden,
                 fmt::format("user: {} (uid {}) is an account of the system: nobody is named as it",
                             user, uid));
  return {};
}

Answer<void> Identity::may_run_as(const Caller& caller, const std::string& user) {
  const bool is_own = user == caller.user;
  if (is_own && caller.uid != kNoUid) return {};  // the kernel vouches
  if (!is_own && caller.role != Role::Admin)
    return fault(FaultKind::Forbidden,
                 fmt::format("user: {} may not submit jobs of {}: naming somebody else needs an "
                             "admin",
                             caller.user, user));
  return check_account(caller, user, false);
}

Answer<void> Identity::may_vouch_for(const Caller& caller, const std::string& user) {
  if (user == caller.user) return {};
  if (caller.role != Role::Admin)
    return fault(FaultKind::Forbidden, "user: a token for somebody else needs an admin");
  return check_account(caller, user, true);
}

// --- groups

void Identity::read_table() {
  const std::uint64_t version = board_.settings_version();
  if (version == version_) return;
  with_share_.clear();
  by_member_.clear();
  for (const auto& [key, value] : board_.settings()) {
    const auto share = share_from_setting(key, value);
    if (!share || share->kind != "group") continue;
    with_share_.insert(share->name);
    for (const std::string& member : share->members) by_member_[member].insert(share->name);
  }
  version_ = version;
}

Answer<Identity::Groups> Identity::groups_of(const std::string& user) {
  std::optional<MachineUser> on_machine;
  if (rules_.from_unix) {
    auto found = users_.find(user);
    if (!found) return fault(FaultKind::Unavailable, found.error().text());
    on_machine = *std::move(found);
  }
  Groups groups;
  std::set<std::string> others, plain;  // with a share, and without one
  {
    const std::lock_guard lock{mutex_};
    read_table();
    if (const auto table = by_member_.find(user); rules_.from_table && table != by_member_.end())
      others = table->second;
    if (on_machine) {
      for (const std::string& name : on_machine->groups)
        (with_share_.contains(name) ? others : plain).insert(name);
    }
  }
  if (const auto said = rules_.users.find(user); said != rules_.users.end())
    groups.allowed = said->second;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(groups.allowed, name) == groups.allowed.end())
      groups.allowed.push_back(name);
  };
  if (on_machine && others.contains(on_machine->primary_group)) add(on_machine->primary_group);
  for (const std::string& name : others) add(name);
  groups.has_default = !groups.allowed.empty();
  // One without a share would be a way around the limits of those with one.
  if (!groups.has_default) groups.allowed.assign(plain.begin(), plain.end());
  return groups;
}

Answer<void> Identity::settle_group(const Caller& caller, JobSpec& spec) {
  if (rules_.any) return {};
  if (!spec.group.empty() && caller.role == Role::Admin) return {};
  const auto groups = groups_of(spec.user);
  if (!groups) return tl::unexpected<Fault>(groups.error());
  if (spec.group.empty()) {
    if (groups->has_default) spec.group = groups->allowed.front();
    return {};
  }
  if (std::ranges::find(groups->allowed, spec.group) != groups->allowed.end()) return {};
  return fault(FaultKind::Forbidden, fmt::format("group: {} may not use '{}' (may use: {})",
                                                 spec.user, spec.group, listed(groups->allowed)));
}

// --- changes

Answer<std::string> Identity::settle_changes(const Caller& caller, const JobSpec& spec,
                                             const std::string& changes) {
  nlohmann::json json = nlohmann::json::parse(changes, nullptr, false);
  if (!json.is_object()) return changes;  // said better where they are applied
  if (!may_run_as(caller, spec.user)) {
    std::vector<std::string> closed;
    for (const auto& [key, value] : json.items()) {
      if (std::ranges::find(kTreatment, key) == kTreatment.end()) closed.push_back(key);
    }
    if (!closed.empty())
      return fault(FaultKind::Forbidden, fmt::format("{}: what a job runs is for {} to change",
                                                     listed(closed), spec.user));
  }
  const auto group = json.find("group");
  if (group == json.end() || !group->is_string()) return changes;
  JobSpec asked;
  asked.user = spec.user;
  asked.group = group->get<std::string>();
  if (auto settled = settle_group(caller, asked); !settled)
    return tl::unexpected<Fault>(std::move(settled).error());
  if (asked.group == *group) return changes;
  *group = asked.group;
  return json.dump();
}

}  // namespace berth
