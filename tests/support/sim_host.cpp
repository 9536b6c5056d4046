#include "support/sim_host.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace berth::test {

namespace {
constexpr SimHost::Micros kNotYet = std::numeric_limits<SimHost::Micros>::max();
constexpr SimHost::Micros kSecond = 1'000'000;
}  // namespace

std::optional<SimHost::Micros> SimHost::next() const {
  Micros first = post_.empty() ? kNotYet : post_.begin()->first;
  for (const auto& [id, shim] : shims_) first = std::min(first, shim.next);
  if (first == kNotYet) return std::nullopt;
  return first;
}

std::size_t SimHost::alive() const {
  return static_cast<std::size_t>(std::ranges::count_if(shims_, [](const auto& entry) {
    return entry.second.stage == Stage::Claimed || entry.second.stage == Stage::Running;
  }));
}

double SimHost::seconds_done(JobNumber job) const {
  const auto found = done_.find(job);
  return found == done_.end() ? 0 : static_cast<double>(found->second) / kSecond;
}

double SimHost::seconds_worked(JobNumber job) const {
  const auto since = runs_since(job);
  return seconds_done(job) + (since ? static_cast<double>(now_ - *since) / kSecond : 0);
}

std::optional<SimHost::Micros> SimHost::runs_since(JobNumber job) const {
  const auto living = living_.find(job);
  if (living == living_.end()) return std::nullopt;
  const Shim& shim = shims_.at(living->second);
  if (shim.stage != Stage::Running || shim.suspended) return std::nullopt;
  return shim.resumed;
}

std::optional<double> SimHost::held(AttemptId attempt) const {
  const auto found = held_.find(attempt);
  if (found == held_.end()) return std::nullopt;
  return found->second;
}

void SimHost::tell(HostEvent event) {
  if (!sink_) return;
  const bool twice = options_.told_twice > 0 && rng_.uniform() < options_.told_twice;
  if (twice) post_.emplace(now_ + 1 + static_cast<Micros>(rng_.below(kSecond)), event);
  if (twice) count_("twice-told");
  if (options_.told_late == 0) return sink_(std::move(event));
  count_("late-events");
  const auto late = rng_.below(static_cast<std::uint64_t>(options_.told_late));
  post_.emplace(now_ + static_cast<Micros>(late), std::move(event));
}

SimHost::Fate SimHost::draw_fate() {
  if (options_.dies_unclaimed > 0 && rng_.uniform() < options_.dies_unclaimed)
    return Fate::DiesUnclaimed;
  if (options_.dies_claimed > 0 && rng_.uniform() < options_.dies_claimed) return Fate::DiesClaimed;
  if (options_.dies_unrecorded > 0 && rng_.uniform() < options_.dies_unrecorded)
    return Fate::DiesUnrecorded;
  return Fate::Lives;
}

/// All its processes are gone.
void SimHost::leave(AttemptId id) {
  const auto found = shims_.find(id);
  const Shim& shim = found->second;
  if (const auto mine = living_.find(shim.order.job); mine != living_.end() && mine->second == id)
    living_.erase(mine);
  for (const std::string& device : shim.devices) on_device_[device].erase(id);
  shims_.erase(found);
}

void SimHost::die(AttemptId id) {
  count_("shim-deaths");
  HostEvent event;
  event.kind = HostEventKind::LaunchLost;
  event.job = shims_.at(id).order.job;
  event.attempt = id;
  leave(id);
  tell(std::move(event));
}

Result<void> SimHost::launch(const LaunchOrder& order) {
  if (refusals_ > 0) {
    --refusals_;
    count_("refusals");
    return fail("no more processes");
  }
  ++launches_;
  if (!used_.insert(order.attempt).second)
    violations_.push_back(fmt::format("R8: attempt {} is made a second time or was void already",
                                      to_text(order.attempt)));
  if (options_.claim_delay > Options{}.claim_delay) count_("late-claims");
  if (shims_.contains(order.attempt)) return {};
  Shim shim;
  shim.order = order;
  shim.fate = draw_fate();
  shim.next = now_ + options_.claim_delay;
  for (const auto& [name, value] : order.env) {
    if (name == "DEVICE") shim.devices.push_back(value);
  }
  shims_.emplace(order.attempt, std::move(shim));
  return {};
}

/// When the next thing happens to a running one: its end, its limit, its kill.
void SimHost::plan(Shim& shim) const {
  shim.next = shim.suspended ? kNotYet : shim.resumed + shim.left;
  if (shim.limit_at && !shim.suspended) shim.next = std::min(shim.next, *shim.limit_at);
  if (shim.kill_at) shim.next = std::min(shim.next, *shim.kill_at);
}

void SimHost::begin(AttemptId id, Shim& shim) {
  const LaunchOrder& order = shim.order;
  const auto number = [&](std::size_t at) {
    return order.command.size() > at ? std::stod(order.command[at]) : 0.0;
  };
  const std::string& kind = order.command.front();
  const auto total = static_cast<Micros>(number(1) * kSecond);
  shim.stage = Stage::Running;
  shim.begun = now_;
  shim.resumed = now_;
  if (kind == "anew") done_[order.job] = 0;
  shim.left = std::max<Micros>(0, total - done_[order.job]);
  shim.stubborn = kind == "stubborn";
  shim.exit_code = kind == "run" ? static_cast<int>(number(2)) : 0;
  if (kind == "flaky" && failed_[order.job] < static_cast<int>(number(2))) {
    ++failed_[order.job];
    count_("flaky");
    shim.exit_code = 1;
  }
  if (order.time_limit > 0) shim.limit_at = now_ + order.time_limit * kSecond;
  plan(shim);
  HostEvent event;
  event.kind = HostEventKind::Started;
  event.job = order.job;
  event.attempt = id;
  event.pid = static_cast<std::int64_t>(1000 + launches_);
  tell(std::move(event));
}

void SimHost::check(const Shim& shim) {
  const JobNumber job = shim.order.job;
  if (living_.contains(job)) {
    violations_.push_back(fmt::format("I2: job {} has attempts {} and {} at once", job,
                                      to_text(living_[job]), to_text(shim.order.attempt)));
  }
  check_devices(shim);
}

void SimHost::check_devices(const Shim& shim) {
  for (const std::string& device : shim.devices) {
    const auto active = std::ranges::count_if(on_device_[device], [&](AttemptId other) {
      return other != shim.order.attempt && !shims_.at(other).suspended;
    });
    if (active >= options_.device_limit) {
      violations_.push_back(fmt::format("I3: {} gets attempt {} beside {} others", device,
                                        to_text(shim.order.attempt), active));
    }
  }
}

void SimHost::end(AttemptId id, Shim& shim, bool by_kill) {
  if (!shim.suspended) {
    const Micros worked = std::min(shim.left, now_ - shim.resumed);
    done_[shim.order.job] += worked;
  }
  const bool limit = shim.limit_at && now_ >= *shim.limit_at && shim.left > now_ - shim.resumed;
  ExitRecord exit;
  exit.job = shim.order.job;
  exit.attempt = id;
  exit.begun_clock = std::max<Micros>(1, shim.begun);
  exit.ended_clock = std::max<Micros>(1, now_);
  exit.stopped = shim.stopped;
  exit.timed_out = limit && !by_kill;
  if (by_kill) exit.signal = 9;
  if (exit.timed_out) exit.signal = 15;
  if (!by_kill && !exit.timed_out)
    exit.exit_code = shim.stopped == Stopped::No ? shim.exit_code : 143;
  if (shim.fate == Fate::DiesUnrecorded) return die(id);
  held_[id] = static_cast<double>(exit.ended_clock - exit.begun_clock) * 1e-6 *
              static_cast<double>(shim.devices.size());
  exits_[id] = exit;
  leave(id);
  HostEvent event;
  event.kind = HostEventKind::Ended;
  event.job = exit.job;
  event.attempt = id;
  event.exit = exit;
  tell(std::move(event));
}

void SimHost::claim(AttemptId id, Shim& shim) {
  if (shim.fate == Fate::DiesUnclaimed) return die(id);
  if (!claims_.emplace(id, false).second) {  // somebody was first: it leaves at once
    HostEvent event;
    event.kind = HostEventKind::LaunchLost;
    event.job = shim.order.job;
    event.attempt = id;
    shims_.erase(id);
    return tell(std::move(event));
  }
  check(shim);
  living_[shim.order.job] = id;
  for (const std::string& device : shim.devices) on_device_[device].insert(id);
  shim.stage = Stage::Claimed;
  shim.next = now_ + options_.start_delay;
}

void SimHost::step(Micros now) {
  now_ = now;
  if (!post_.empty() && post_.begin()->first <= now) {
    const HostEvent event = std::move(post_.begin()->second);
    post_.erase(post_.begin());
    if (sink_) sink_(event);
    return;
  }
  for (auto& [id, shim] : shims_) {
    if (shim.next > now) continue;
    if (shim.stage == Stage::Forked) return claim(id, shim);
    if (shim.stage == Stage::Claimed)
      return shim.fate == Fate::DiesClaimed ? die(id) : begin(id, shim);
    return end(id, shim, shim.kill_at && now_ >= *shim.kill_at);
  }
}

void SimHost::power_off() {
  shims_.clear();
  living_.clear();
  on_device_.clear();
}

void SimHost::stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) {
  const auto found = shims_.find(attempt);
  if (found == shims_.end()) return;
  Shim& shim = found->second;
  ++disturbances_[shim.order.job];
  const bool at_once = how == Stop::Kill || !shim.stubborn;
  if (!at_once) count_("stubborn");
  // It writes its checkpoint already: a second warning does not make it begin again.
  if (at_once && shim.stopped == Stopped::Warned && shim.stage == Stage::Running) return;
  if (shim.stopped == Stopped::No) shim.stopped = at_once ? Stopped::Warned : Stopped::Killed;
  if (shim.stage == Stage::Forked || shim.stage == Stage::Claimed) {
    shim.left = 0;
    shim.order.command = {"run", "0"};
    return;
  }
  if (at_once) {
    if (!shim.suspended) {
      done_[shim.order.job] += std::min(shim.left, now_ - shim.resumed);
      shim.left -= std::min(shim.left, now_ - shim.resumed);
    }
    shim.suspended = true;  // it only writes its checkpoint now
    shim.next = now_ + 10'000;
    shim.kill_at.reset();
    shim.limit_at.reset();
    return;
  }
  shim.kill_at = now_ + grace_seconds * kSecond;
  plan(shim);
}

std::int32_t SimHost::rate_of(JobNumber job) const {
  const auto alive = living_.find(job);
  if (alive == living_.end()) return 1000;
  const auto told = rates_.find(alive->second);
  return told == rates_.end() ? 1000 : told->second;
}

void SimHost::suspend(AttemptId attempt) {
  const auto found = shims_.find(attempt);
  if (found == shims_.end() || found->second.stage != Stage::Running) return;
  Shim& shim = found->second;
  if (shim.suspended || shim.stopped != Stopped::No) return;
  ++disturbances_[shim.order.job];
  const Micros worked = std::min(shim.left, now_ - shim.resumed);
  done_[shim.order.job] += worked;
  shim.left -= worked;
  shim.suspended = true;
  plan(shim);
}

void SimHost::resume(AttemptId attempt) {
  const auto found = shims_.find(attempt);
  if (found == shims_.end() || found->second.stage != Stage::Running) return;
  Shim& shim = found->second;
  if (!shim.suspended || shim.stopped != Stopped::No) return;
  check_devices(shim);
  shim.suspended = false;
  shim.resumed = now_;
  plan(shim);
}

void SimHost::set_limit(AttemptId attempt, std::int64_t seconds) {
  const auto found = shims_.find(attempt);
  if (found == shims_.end()) return;
  Shim& shim = found->second;
  shim.order.time_limit = seconds;
  if (shim.stage != Stage::Running || shim.stopped != Stopped::No) return;
  shim.limit_at.reset();
  if (seconds > 0) shim.limit_at = std::max(now_, shim.begun + seconds * kSecond);
  plan(shim);
}

Finding SimHost::find(AttemptId attempt) {
  const auto shim = shims_.find(attempt);
  const bool lives = shim != shims_.end() && shim->second.stage != Stage::Forked;
  if (lives) return {.found = Found::Alive};
  if (const auto exit = exits_.find(attempt); exit != exits_.end())
    return {.found = Found::Ended, .exit = exit->second};
  const auto claim = claims_.find(attempt);
  if (claim != claims_.end() && !claim->second) return {.found = Found::Lost};
  claims_[attempt] = true;
  return {.found = Found::Void};
}

Result<Finding> SimHost::look(JobNumber, AttemptId attempt) {
  used_.insert(attempt);
  Finding finding = find(attempt);
  ++found_[static_cast<std::size_t>(finding.found)];
  return finding;
}

void SimHost::forget(AttemptId attempt) {
  // A claim is never forgotten while its shim may still be on its way.
  const auto shim = shims_.find(attempt);
  if (shim != shims_.end() && shim->second.stage == Stage::Forked) return;
  exits_.erase(attempt);
}

}  // namespace berth::test
