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
  Micros first = kNotYet;
  for (const auto& [id, shim] : shims_) {
    if (shim.stage != Stage::Gone) first = std::min(first, shim.next);
  }
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

void SimHost::tell(HostEvent event) {
  if (sink_) sink_(std::move(event));
}

Result<void> SimHost::launch(const LaunchOrder& order) {
  if (refusals_ > 0) {
    --refusals_;
    return fail("no more processes");
  }
  ++launches_;
  if (shims_.contains(order.attempt)) return {};
  Shim shim;
  shim.order = order;
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
  shim.left = std::max<Micros>(0, total - done_[order.job]);
  shim.stubborn = kind == "stubborn";
  shim.exit_code = kind == "run" ? static_cast<int>(number(2)) : 0;
  if (kind == "flaky" && failed_[order.job] < static_cast<int>(number(2))) {
    ++failed_[order.job];
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
  for (const std::string& device : shim.devices) {
    const auto active = std::ranges::count_if(
        on_device_[device], [&](AttemptId other) { return !shims_.at(other).suspended; });
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
  exits_[id] = exit;
  shim.stage = Stage::Gone;
  living_.erase(shim.order.job);
  for (const std::string& device : shim.devices) on_device_[device].erase(id);
  HostEvent event;
  event.kind = HostEventKind::Ended;
  event.job = exit.job;
  event.attempt = id;
  event.exit = exit;
  tell(std::move(event));
}

void SimHost::step(Micros now) {
  now_ = now;
  for (auto& [id, shim] : shims_) {
    if (shim.stage == Stage::Gone || shim.next > now) continue;
    if (shim.stage == Stage::Forked) {
      if (!claims_.emplace(id, false).second) {  // somebody was first: it leaves at once
        shim.stage = Stage::Gone;
        HostEvent event;
        event.kind = HostEventKind::LaunchLost;
        event.job = shim.order.job;
        event.attempt = id;
        return tell(std::move(event));
      }
      check(shim);
      living_[shim.order.job] = id;
      for (const std::string& device : shim.devices) on_device_[device].insert(id);
      shim.stage = Stage::Claimed;
      shim.next = now_ + options_.start_delay;
      return;
    }
    if (shim.stage == Stage::Claimed) return begin(id, shim);
    return end(id, shim, shim.kill_at && now_ >= *shim.kill_at);
  }
}

void SimHost::power_off() {
  for (auto& [id, shim] : shims_) shim.stage = Stage::Gone;
  living_.clear();
  on_device_.clear();
}

void SimHost::stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) {
  const auto found = shims_.find(attempt);
  if (found == shims_.end() || found->second.stage == Stage::Gone) return;
  Shim& shim = found->second;
  const bool at_once = how == Stop::Kill || !shim.stubborn;
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

void SimHost::suspend(AttemptId attempt) {
  const auto found = shims_.find(attempt);
  if (found == shims_.end() || found->second.stage != Stage::Running) return;
  Shim& shim = found->second;
  if (shim.suspended || shim.stopped != Stopped::No) return;
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
  shim.suspended = false;
  shim.resumed = now_;
  plan(shim);
}

Result<Finding> SimHost::look(JobNumber, AttemptId attempt) {
  const auto shim = shims_.find(attempt);
  const bool lives = shim != shims_.end() &&
                     (shim->second.stage == Stage::Claimed || shim->second.stage == Stage::Running);
  Finding finding;
  if (lives) {
    finding.found = Found::Alive;
  } else if (const auto exit = exits_.find(attempt); exit != exits_.end()) {
    finding.found = Found::Ended;
    finding.exit = exit->second;
  } else if (const auto claim = claims_.find(attempt); claim != claims_.end() && !claim->second) {
    finding.found = Found::Lost;
  } else {
    claims_[attempt] = true;
    finding.found = Found::Void;
  }
  return finding;
}

void SimHost::forget(AttemptId attempt) {
  // A claim is never forgotten while its shim may still be on its way.
  const auto shim = shims_.find(attempt);
  if (shim != shims_.end() && shim->second.stage == Stage::Forked) return;
  exits_.erase(attempt);
}

}  // namespace berth::test
