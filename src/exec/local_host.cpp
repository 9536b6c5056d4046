#include "exec/local_host.h"

#include <algorithm>
#include <filesystem>

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/boot_clock.h"
#include "base/crash_point.h"
#include "base/digest.h"
#include "exec/claim.h"
#include "exec/exits.h"
#include "exec/order_file.h"
#include "exec/remove_tree.h"
#include "exec/spawn_shim.h"
#include "exec/survivors.h"
#include "step/book.h"

namespace berth {

LocalHost::LocalHost(Options options, std::function<void(HostEvent)> sink)
    : options_(std::move(options)),
      directory_(options_.run_dir),
      watch_(directory_, std::move(sink)) {}

Result<std::unique_ptr<LocalHost>> LocalHost::open(Options options,
                                                   std::function<void(HostEvent)> sink) {
  if (options.shim.empty()) {
    BERTH_TRY(options.shim, find_shim());
  }
  if (::access(options.shim.c_str(), X_OK) != 0)
    return fail_with_errno(options.shim, "run the shim");
  // Shims work from elsewhere: the directory needs its full name.
  if (!options.run_dir.starts_with('/'))
    return fail(options.run_dir + ": must be an absolute path");
  std::unique_ptr<LocalHost> host(new LocalHost(std::move(options), std::move(sink)));
  BERTH_TRY_VOID(host->directory_.make());
  BERTH_TRY_VOID(host->watch_.start());
  return host;
}

Result<void> LocalHost::launch(const LaunchOrder& order) {
  const AttemptId attempt = order.attempt;
  if (watch_.has(attempt)) return {};
  ShimOrder shim{.order = order, .cgroups = {}};
  std::vector<std::string> refused;
  const auto groups =
      AttemptCgroups::make(options_.cgroup_roots, group_name(attempt),
                           {.cores = order.cores, .memory_mib = order.memory_mib}, refused);
  shim.cgroups = groups.directories();
  for (const std::string& root : refused)
    warn(attempt, "no control group there: limits not enforced", root);
  // The shim would find out as well, but only in a process of its own.
  const std::string bytes = encode_order(shim);
  if (auto readable = decode_order(bytes); !readable)
    return fail(fmt::format("job {}: launch order: {}", order.job, readable.error().text()));
  if (auto put = put_file(directory_.order(attempt), bytes); !put) {
    groups.remove();
    note_trouble("run-directory", "a job cannot be started", put.error());
    return put;
  }
  crash_point("host.order_written");
  auto pipe = spawn_shim(options_.shim, directory_, attempt);
  if (!pipe) {
    ::unlink(directory_.order(attempt).c_str());
    groups.remove();
    note_trouble("shim", "a job cannot be started", pipe.error());
    return tl::unexpected(std::move(pipe).error());
  }
  crash_point("host.spawned");
  watch_.add_made(order.job, attempt, std::move(*pipe));
  return {};
}

void LocalHost::stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) {
  if (how == Stop::Kill)
    send(attempt, {ShimAction::Kill, 0});
  else
    send(attempt, {ShimAction::Warn, grace_seconds});
}

void LocalHost::suspend(AttemptId attempt) { send(attempt, {ShimAction::Suspend, 0}); }

void LocalHost::resume(AttemptId attempt) { send(attempt, {ShimAction::Resume, 0}); }

void LocalHost::signal(AttemptId attempt, int number) {
  send(attempt, {ShimAction::Signal, number});
}

void LocalHost::signal_shell(AttemptId attempt, int number) {
  send(attempt, {ShimAction::SignalShell, number});
}

void LocalHost::set_cores(AttemptId attempt, const std::vector<std::int32_t>& cores) {
  if (!watch_.has(attempt)) return;
  if (const auto put = put_file(directory_.cores(attempt), cores_text(cores)); !put)
    return note_trouble("run-directory", "cores could not be changed", put.error());
  send(attempt, {ShimAction::Cores, 0});
}

void LocalHost::set_rate(AttemptId attempt, std::int32_t milli) {
  send(attempt, {ShimAction::Rate, milli});
}

void LocalHost::set_limit(AttemptId attempt, std::int64_t seconds) {
  static_assert(kMaxLimitOfRunning == kMaxCommandValue);
  send(attempt, {ShimAction::Limit, seconds});
}

void LocalHost::join(AttemptId attempt, std::uint32_t request) {
  send(attempt, {ShimAction::Join, request});
}

void LocalHost::send(AttemptId attempt, ShimCommand command) {
  if (!watch_.send(attempt, command)) warn(attempt, "a command did not reach the shim", "");
}

void LocalHost::warn(AttemptId attempt, std::string_view what, std::string_view detail) const {
  if (options_.log != nullptr)
    BERTH_LOG(*options_.log, Warn, "host", what, {"attempt", attempt_name(attempt)},
              {"detail", detail});
}

void LocalHost::note_trouble(std::string_view cause, std::string_view what,
                             const Error& error) const {
  const auto unsaid =
      options_.limit == nullptr ? std::optional<std::uint64_t>{0} : options_.limit->admit(cause);
  if (options_.log != nullptr && unsaid)
    BERTH_LOG(*options_.log, Error, "host", what, {"cause", cause}, {"why", error.text()},
              {"unsaid", *unsaid});
}

Result<Finding> LocalHost::look(JobNumber job, AttemptId attempt) {
  auto finding = try_look(job, attempt);
  if (!finding) {
    note_trouble("lost-attempt", "what became of an attempt cannot be told: its devices are kept",
                 finding.error());
    watch_.look_again(job, attempt);
  }
  return finding;
}

Result<Finding> LocalHost::try_look(JobNumber job, AttemptId attempt) {
  if (watch_.has(attempt)) return Finding{.found = Found::Alive, .cores = cores_of(attempt)};
  for (;;) {
    // The claim as it was before we looked for its process: one that appears later is for the next
    // round, or a shim that came in between would be taken for dead.
    BERTH_TRY(const auto claim, read_claim(directory_, attempt));
    if (auto shim = ShimHandle::open(directory_, attempt)) {
      watch_.add_found(job, attempt, std::move(*shim));
      return Finding{.found = Found::Alive, .cores = cores_of(attempt)};
    }
    auto record = read_exit(directory_, attempt);
    if (!record) return lost(attempt, record.error().text());
    if (*record) return Finding{.found = Found::Ended, .exit = std::move(**record)};
    if (claim && claim->by == Claimant::Nobody)
      return Finding{.found = Found::Void, .why = "it was never begun"};
    if (claim)
      return lost(attempt, claim->boot_id == boot_id() ? "its shim was killed"
                                                       : "the machine was restarted");
    BERTH_TRY(const Fd tombstone, try_claim(directory_, attempt, Claimant::Nobody));
    if (!tombstone.is_open()) continue;  // a shim was faster
    // Whoever runs in its name nevertheless had a claim that somebody removed.
    BERTH_TRY(const bool was_alive,
              end_survivors(directory_.claim(attempt), std::nullopt, groups_of(attempt)));
    return Finding{.found = Found::Void, .why = "nobody had begun it", .was_alive = was_alive};
  }
}

std::optional<std::vector<std::int32_t>> LocalHost::cores_of(AttemptId attempt) const {
  const auto text = get_file(directory_.cores(attempt));
  return text && *text ? cores_from(**text) : std::nullopt;
}

Result<Finding> LocalHost::lost(AttemptId attempt, std::string why) const {
  BERTH_TRY(const auto claim, read_claim(directory_, attempt));
  bool was_alive = false;
  if (claim && !claim->boot_id.empty() && claim->boot_id != boot_id()) {
    groups_of(attempt).remove();  // nothing survives a restart of the machine
  } else {
    BERTH_TRY(was_alive, end_survivors(directory_.claim(attempt), claim, groups_of(attempt)));
  }
  return Finding{.found = Found::Lost, .why = std::move(why), .was_alive = was_alive};
}

void LocalHost::forget(AttemptId attempt) {
  watch_.forget(attempt);
  // A shim that ended in peace has removed it itself.
  if (const auto tmp = get_file(directory_.tmp(attempt)); tmp && *tmp && (*tmp)->starts_with('/'))
    remove_tree(**tmp);
  // The order first: a shim still on its way may win the claim we are about to remove, and leaves
  // when it finds that there is nothing to do.
  for (const std::string& path :
       {directory_.order(attempt), directory_.cores(attempt), directory_.script(attempt),
        directory_.tmp(attempt), directory_.exit(attempt) + ".tmp", directory_.claim(attempt),
        directory_.exit(attempt)})
    ::unlink(path.c_str());
  std::error_code ignored;  // what the job's user has left there; links are not followed
  std::filesystem::remove_all(directory_.steps(attempt), ignored);
  groups_of(attempt).remove();
}

KeptSteps LocalHost::steps(AttemptId attempt) {
  const std::string directory = directory_.steps(attempt);
  return {directory, read_steps(directory)};
}

std::vector<AttemptId> LocalHost::present() const {
  std::vector<AttemptId> found;
  DIR* listing = ::opendir(directory_.path().c_str());
  if (listing == nullptr) return found;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name(entry->d_name);
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) continue;
    if (const auto attempt = attempt_named(name.substr(dot + 1))) found.push_back(*attempt);
  }
  ::closedir(listing);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// Schedulers with different directories may share a machine and a root.
std::string LocalHost::group_name(AttemptId attempt) const {
  Digest digest;
  digest.add(std::string_view(directory_.path()));
  return fmt::format("{}{:08x}.{}", kGroupPrefix, digest.value() >> 32U, attempt_name(attempt));
}

AttemptCgroups LocalHost::groups_of(AttemptId attempt) const {
  std::vector<std::string> directories;
  for (const std::string& root : options_.cgroup_roots)
    directories.push_back(root + "/" + group_name(attempt));
  return AttemptCgroups(std::move(directories));
}

}  // namespace berth
