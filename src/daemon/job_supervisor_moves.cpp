// How a job goes on with other devices without being stopped. Its training code is asked, one step
// at a time: first to leave what others get, then, once what is new is free, to take that. A step
// that gives devices up is on record after the answer, one that takes some before the question, so
// that at any instant, also after a crash, the record holds all that its processes may use. The hub
// repeats what is on record to whoever connects: code and record agree again by that.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/crash_point.h"
#include "base/device_mask.h"
#include "daemon/job_supervisor.h"
#include "daemon/launch.h"

namespace berth {

namespace {

std::uint64_t mask_on(std::span<const Slice> slices, NodeId node) {
  std::uint64_t mask = 0;
  for (const Slice& slice : slices) mask |= slice.node == node ? slice.devices : 0;
  return mask;
}

std::vector<Slice> common(std::span<const Slice> a, std::span<const Slice> b) {
  std::vector<Slice> both;
  for (Slice slice : a) {
    slice.devices &= mask_on(b, slice.node);
    slice.gpus = std::popcount(slice.devices);
    if (slice.gpus > 0) both.push_back(slice);
  }
  return both;
}

std::vector<Slice> beyond(std::span<const Slice> a, std::span<const Slice> b) {
  std::vector<Slice> rest;
  for (Slice slice : a) {
    slice.devices &= ~mask_on(b, slice.node);
    slice.gpus = std::popcount(slice.devices);
    if (slice.gpus > 0) rest.push_back(slice);
  }
  return rest;
}

std::int32_t count_of(std::span<const Slice> slices) {
  std::int32_t gpus = 0;
  for (const Slice& slice : slices) gpus += slice.gpus;
  return gpus;
}

}  // namespace

/// Processes of a gang are as many as its devices: another number of them is another start.
bool JobSupervisor::can_change_in_place(JobNumber job, std::span<const Slice> slices) const {
  const auto found = attempts_.find(job);
  if (found == attempts_.end() || rules_.training == nullptr) return false;
  const Attempt& own = found->second;
  const bool runs = own.is_running && own.ending == Ending::ByItself && !own.is_suspended &&
                    !own.is_frozen && !own.is_set;
  if (!runs || common(own.slices, slices).empty()) return false;
  const auto record = parts_.job(job);
  // After a restart of ours it may not be connected again yet: it is asked as soon as it is.
  const bool has_before = own.extra_gpu_seconds != 0;
  return record && record->spec->tasks <= 1 && (has_before || rules_.training->can_resize(job));
}

/// It is about to give this device up.
bool JobSupervisor::leaves(JobNumber job, const std::pair<std::uint32_t, int>& device) const {
  const auto move = moves_.find(job);
  if (move == moves_.end()) return false;
  const std::uint64_t kept = mask_on(move->second.to.slices, NodeId{device.first});
  return ((kept >> static_cast<unsigned>(device.second)) & 1U) == 0;
}

/// As for a preemption: not before it has run long enough, and never if it may not be preempted.
Time JobSupervisor::move_due(const Attempt& attempt) const {
  const auto job = parts_.job(attempt.job);
  if (job && !job->spec->preemptible) return kNever;
  return attempt.since + rules_.min_run;
}

void JobSupervisor::go_on_with_moves() {
  const Time now = parts_.clock.now();
  std::vector<JobNumber> silent, done;
  for (auto& [job, move] : moves_) {
    const Attempt& attempt = attempts_.at(job);
    if (move.until) {
      if (*move.until <= now) silent.push_back(job);
      continue;
    }
    const std::vector<Slice>& requested =
        attempt.requested.empty() ? attempt.slices : attempt.requested;
    if (attempt.slices == move.to.slices && requested == move.to.slices) {
      done.push_back(job);
      continue;
    }
    if (move_due(attempt) > now) continue;
    if (!beyond(attempt.slices, move.to.slices).empty()) {
      ask(job, move, common(attempt.slices, move.to.slices));
    } else if (is_clear(job, beyond(move.to.slices, attempt.slices))) {
      if (attempt.slices != move.to.slices) hold(job, move, move.to.slices);
      ask(job, move, move.to.slices);
    }
  }
  for (const JobNumber job : done) moves_.erase(job);
  for (const JobNumber job : silent) {
    attempts_.at(job).is_silent = true;
    stop_and_start(job, fmt::format("its code has not answered for {:g} s that it can go on with "
                                    "other devices",
                                    to_seconds(rules_.answer)));
  }
}

void JobSupervisor::ask(JobNumber job, Move& move, std::vector<Slice> slices) {
  constexpr std::uint64_t kOfALife = 1'000'000'000;  // no answer to an earlier life fits
  Attempt& attempt = attempts_.at(job);
  move.id = parts_.generation * kOfALife + ++questions_;
  move.until = parts_.clock.now() + rules_.answer;
  attempt.requested = slices;
  // It keeps the cores it is bound to until it has answered.
  std::vector<HeldDevices> where;
  for (const Slice& slice : slices) {
    HeldDevices held;
    held.node = parts_.cluster.nodes[slice.node.value].name;
    for (const std::int32_t device : DeviceMask{slice.devices}) held.devices.push_back(device);
    const auto own = std::ranges::find(attempt.where, held.node, &HeldDevices::node);
    if (own != attempt.where.end()) held.cores = own->cores;
    where.push_back(std::move(held));
  }
  move.asked = std::move(slices);
  HeldDevices on_machine = on_this_machine(where, parts_.cluster);
  signals_.push_back({.kind = Signal::Kind::Resize,
                      .attempt = attempt.id,
                      .job = job,
                      .ask = {.id = move.id,
                              .devices = std::move(on_machine.devices),
                              .cores = std::move(on_machine.cores),
                              .deadline_seconds = to_seconds(rules_.answer)}});
}

/// From now on it holds these, with the cores that belong to them.
void JobSupervisor::hold(JobNumber job, const Move& move, const std::vector<Slice>& slices) {
  Attempt& attempt = attempts_.at(job);
  for (const Slice& slice : beyond(attempt.slices, slices)) {
    for (const std::int32_t device : DeviceMask{slice.devices}) {
      const auto here = on_device_.find({slice.node.value, device});
      here->second.erase(job);
      if (here->second.empty()) on_device_.erase(here);
    }
  }
  for (const Slice& slice : slices) {
    for (const std::int32_t device : DeviceMask{slice.devices})
      on_device_[{slice.node.value, device}].insert(job);
  }
  const std::int32_t gpus = count_of(slices);
  for (const HeldDevices& held : attempt.where) cores_.give(held.node, held.cores);
  attempt.where = where(job, {.slices = slices,
                              .gpus = gpus,
                              .reason = move.to.reason,
                              .cores_milli = move.to.cores_milli});
  attempt.extra_gpu_seconds +=
      (attempt.gpus - gpus) *
      to_seconds(std::max(parts_.clock.now(), attempt.since) - attempt.since);
  attempt.slices = slices;
  attempt.gpus = gpus;
  records_.emplace_back(ResizeRecord{.job = job,
                                     .attempt = attempt.id,
                                     .where = attempt.where,
                                     .gpus = gpus,
                                     .extra_gpu_seconds = attempt.extra_gpu_seconds,
                                     .reason = std::string{to_string(move.to.reason)}});
  if (attempt.where.size() == 1) hold_cores(attempt, attempt.where.front().cores);
  std::vector<std::int32_t> cores = on_this_machine(attempt.where, parts_.cluster).cores;
  if (!cores.empty())
    signals_.push_back(
        {.kind = Signal::Kind::Cores, .attempt = attempt.id, .cores = std::move(cores)});
}

void JobSupervisor::handle(const ResizeAnswer& answer) {
  const auto found = moves_.find(answer.job);
  if (found == moves_.end() || !found->second.until || found->second.id != answer.id) return;
  crash_point("supervisor.answered");
  Move& move = found->second;
  move.until.reset();
  if (!answer.done)
    return stop_and_start(answer.job, "its code cannot go on with other devices in place");
  if (attempts_.at(answer.job).slices != move.asked) hold(answer.job, move, move.asked);
}

/// The old way: warning, checkpoint, stop and start.
void JobSupervisor::stop_and_start(JobNumber job, std::string why) {
  const PendingStart to = moves_.at(job).to;
  Attempt& attempt = attempts_.at(job);
  attempt.is_set = true;
  // Of a policy that is gone, and the new one has not taken it up yet: it stays as it is.
  if (!attempt.is_granted) return void(moves_.erase(job));
  preempt(job, std::move(why));
  push_aside(job, to.slices);
  pending_[job] = to;
}

}  // namespace berth
