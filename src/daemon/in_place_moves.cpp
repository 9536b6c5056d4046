#include "daemon/in_place_moves.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/crash_point.h"
#include "base/device_mask.h"
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

bool InPlaceMoves::is_possible(JobNumber job, std::span<const Slice> slices) const {
  const Attempt* own = parts_.attempts.find(job);
  if (own == nullptr || parts_.rules.training == nullptr) return false;
  const bool runs = own->is_running && own->ending == Ending::ByItself && !own->is_suspended &&
                    !own->is_frozen && !own->is_set;
  if (!runs || common(own->slices, slices).empty()) return false;
  const auto record = parts_.job(job);
  // After a restart of ours it may not be connected again yet: it is asked as soon as it is.
  const bool has_before = own->extra_gpu_seconds != 0;
  return record && record->spec->tasks <= 1 &&
         (has_before || parts_.rules.training->can_resize(job));
}

std::optional<PendingStart> InPlaceMoves::target(JobNumber job) const {
  const auto move = moves_.find(job);
  if (move == moves_.end()) return std::nullopt;
  return move->second.to;
}

void InPlaceMoves::end_engine() {
  std::erase_if(moves_, [](const auto& entry) { return !entry.second.until; });
  for (auto& [job, move] : moves_) move.to.slices = move.asked;
}

bool InPlaceMoves::leaves(JobNumber job, const AttemptTable::Device& device) const {
  const auto move = moves_.find(job);
  if (move == moves_.end()) return false;
  const std::uint64_t kept = mask_on(move->second.to.slices, NodeId{device.first});
  return ((kept >> static_cast<unsigned>(device.second)) & 1U) == 0;
}

/// As for a preemption: not before it has run long enough, and never if it may not be preempted.
Time InPlaceMoves::due(const Attempt& attempt) const {
  const auto job = parts_.job(attempt.job);
  if (job && !job->spec->preemptible) return kNever;
  return attempt.since + parts_.rules.min_run;
}

Time InPlaceMoves::next_due() const {
  Time next = kNever;
  const Time now = parts_.clock.now();
  for (const auto& [job, move] : moves_) {
    const Time when = move.until.value_or(due(parts_.attempts.at(job)));
    if (move.until || when > now) next = std::min(next, when);  // otherwise it waits for others
  }
  return next;
}

std::vector<InPlaceMoves::Failed> InPlaceMoves::advance(
    const std::function<bool(JobNumber, std::span<const Slice>)>& is_clear) {
  const Time now = parts_.clock.now();
  std::vector<JobNumber> silent, done;
  for (auto& [job, move] : moves_) {
    const Attempt& attempt = parts_.attempts.at(job);
    if (move.until) {
      if (*move.until <= now) silent.push_back(job);
      continue;
    }
    const auto& requested = attempt.requested.empty() ? attempt.slices : attempt.requested;
    if (attempt.slices == move.to.slices && requested == move.to.slices) {
      done.push_back(job);
      continue;
    }
    if (due(attempt) > now) continue;
    if (!beyond(attempt.slices, move.to.slices).empty()) {
      ask(job, move, common(attempt.slices, move.to.slices));
    } else if (is_clear(job, beyond(move.to.slices, attempt.slices))) {
      if (attempt.slices != move.to.slices) hold(job, move, move.to.slices);
      ask(job, move, move.to.slices);
    }
  }
  for (const JobNumber job : done) moves_.erase(job);
  std::vector<Failed> failed;
  for (const JobNumber job : silent) {
    parts_.attempts.at(job).is_silent = true;
    failed.push_back({job,
                      fmt::format("its code has not answered for {:g} s that it can go on with "
                                  "other devices",
                                  to_seconds(parts_.rules.answer)),
                      moves_.at(job).to});
  }
  return failed;
}

void InPlaceMoves::ask(JobNumber job, Move& move, std::vector<Slice> slices) {
  constexpr std::uint64_t kOfALife = 1'000'000'000;  // no answer to an earlier life fits
  Attempt& attempt = parts_.attempts.at(job);
  move.id = parts_.generation * kOfALife + ++questions_;
  move.until = parts_.clock.now() + parts_.rules.answer;
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
  parts_.batch.signal({.kind = Signal::Kind::Resize,
                       .attempt = attempt.id,
                       .job = job,
                       .ask = {.id = move.id,
                               .devices = std::move(on_machine.devices),
                               .cores = std::move(on_machine.cores),
                               .deadline_seconds = to_seconds(parts_.rules.answer)}});
}

/// From now on it holds these, with the cores that belong to them.
void InPlaceMoves::hold(JobNumber job, const Move& move, const std::vector<Slice>& slices) {
  Attempt& attempt = parts_.attempts.at(job);
  const std::int32_t gpus = count_of(slices);
  // Its old cores are free for the new set: it often keeps most of them.
  parts_.attempts.give_cores(attempt);
  const auto record = parts_.job(job);
  attempt.where =
      parts_.attempts.take(slices, move.to.cores_milli, record ? record->spec.get() : nullptr);
  attempt.extra_gpu_seconds +=
      (attempt.gpus - gpus) *
      to_seconds(std::max(parts_.clock.now(), attempt.since) - attempt.since);
  parts_.attempts.relocate(attempt, slices);
  attempt.gpus = gpus;
  parts_.batch.record(ResizeRecord{.job = job,
                                   .attempt = attempt.id,
                                   .where = attempt.where,
                                   .gpus = gpus,
                                   .extra_gpu_seconds = attempt.extra_gpu_seconds,
                                   .reason = std::string{to_string(move.to.reason)}});
  if (attempt.where.size() == 1 && parts_.show_cores)
    parts_.show_cores(job, attempt.where.front().cores);
  std::vector<std::int32_t> cores = on_this_machine(attempt.where, parts_.cluster).cores;
  if (!cores.empty())
    parts_.batch.signal(
        {.kind = Signal::Kind::Cores, .attempt = attempt.id, .cores = std::move(cores)});
}

std::optional<InPlaceMoves::Failed> InPlaceMoves::handle(const ResizeAnswer& answer) {
  const auto found = moves_.find(answer.job);
  if (found == moves_.end() || !found->second.until || found->second.id != answer.id)
    return std::nullopt;
  crash_point("supervisor.answered");
  Move& move = found->second;
  move.until.reset();
  if (!answer.done)
    return Failed{answer.job, "its code cannot go on with other devices in place", move.to};
  if (parts_.attempts.at(answer.job).slices != move.asked) hold(answer.job, move, move.asked);
  return std::nullopt;
}

}  // namespace berth
