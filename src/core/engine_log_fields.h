// How the log of an engine writes what it was told: one list of fields for writing and for reading,
// so that the two cannot differ. put() appends a value, get<T>() reads the same value back. The
// order of fields is the format: logs of running schedulers are read with it after an upgrade
// (docs/adr/0008-replay.md), so a field is never moved. For core/engine_log.cpp alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "core/executor.h"
#include "model/trace.h"

namespace berth::engine_log {

template <class T>
void pass_field(ByteWriter& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    out.flag(value);
  else if constexpr (std::is_floating_point_v<T>)
    out.real(static_cast<double>(value));
  else if constexpr (std::is_enum_v<T>)
    out.natural(static_cast<std::uint64_t>(value));
  else if constexpr (std::is_unsigned_v<T>)
    out.natural(value);
  else if constexpr (std::is_integral_v<T>)
    out.integer(value);
  else if constexpr (std::is_same_v<T, Time>)
    out.integer(value.time_since_epoch().count());
  else if constexpr (std::is_same_v<T, Duration>)
    out.integer(value.count());
  else
    out.natural(value.value);  // an id
}

template <class T>
void pass_field(ByteReader& in, T& value) {
  if constexpr (std::is_same_v<T, bool>)
    value = in.flag();
  else if constexpr (std::is_floating_point_v<T>)
    value = static_cast<T>(in.real());
  else if constexpr (std::is_enum_v<T> || std::is_unsigned_v<T>)
    value = static_cast<T>(in.natural());
  else if constexpr (std::is_integral_v<T>)
    value = static_cast<T>(in.integer());
  else if constexpr (std::is_same_v<T, Time>)
    value = Time{Duration{in.integer()}};
  else if constexpr (std::is_same_v<T, Duration>)
    value = Duration{in.integer()};
  else
    value.value = static_cast<decltype(value.value)>(in.natural());
}

template <class T>
void pass_field(ByteWriter& out, const std::optional<T>& value) {
  out.flag(value.has_value());
  if (value) pass_field(out, *value);
}
template <class T>
void pass_field(ByteReader& in, std::optional<T>& value) {
  value.reset();
  if (in.flag()) pass_field(in, value.emplace());
}

template <class Bytes, class... Fields>
void pass_fields(Bytes& bytes, Fields&... fields) {
  (pass_field(bytes, fields), ...);
}

template <class Bytes, class Job>
void pass_job(Bytes& bytes, Job& job) {
  pass_fields(bytes, job.id, job.submit, job.gpus, job.gpus_min, job.gpus_max, job.gpu_milli,
              job.cpus_milli, job.memory_mib, job.batch_size, job.priority, job.weight, job.kind,
              job.iterations, job.user, job.group, job.queue, job.name, job.model, job.study,
              job.gpu_type, job.duration, job.estimate, job.status, job.failure,
              job.failed_attempts, job.deadline, job.soft_deadline, job.cancel_at, job.preemptible);
}

template <class Bytes, class AnyEvent>
void pass_event(Bytes& bytes, AnyEvent& event) {
  pass_fields(bytes, event.kind, event.outcome, event.job, event.node, event.phase, event.failure,
              event.asks_policy);
}

/// One byte: whether work and a beginning follow, and the basis. Logs of a version that knew no
/// basis have 0 there, which reads as a believed rate.
inline std::uint64_t flags_of(const RateChange& change) {
  std::uint64_t basis = 0;
  switch (change.basis) {
    case RateBasis::Believed: basis = 0; break;
    case RateBasis::Exact: basis = 1; break;
    case RateBasis::Awaited: basis = 2; break;
    case RateBasis::Measured: basis = 3; break;
  }
  return (change.begun ? 8U : 0U) | basis << 1U | (change.work ? 1U : 0U);
}

inline RateBasis basis_in(std::uint64_t flags) {
  constexpr std::array kBases{RateBasis::Believed, RateBasis::Exact, RateBasis::Awaited,
                              RateBasis::Measured};
  return kBases[flags >> 1U & 3U];
}

// Whole answers of an executor.

inline void put(ByteWriter& out, bool value) { out.flag(value); }
inline void put(ByteWriter& out, Time value) { pass_field(out, value); }
inline void put(ByteWriter& out, const StartReceipt& receipt) {
  const std::uint64_t rate = receipt.rate.raw();
  pass_fields(out, receipt.held_from, receipt.work_from, rate, receipt.phase);
}
inline void put(ByteWriter& out, const Entitlements& said) {
  out.natural(said.shares.size());
  for (const auto& [who, shares] : said.shares) {
    out.text(who);
    out.real(shares);
  }
  out.natural(said.uses.size());
  for (const auto& [user, group, gpu_seconds] : said.uses) {
    out.text(user);
    out.text(group);
    out.real(gpu_seconds);
  }
}
inline void put(ByteWriter& out, const JobPast& past) {
  pass_fields(out, past.first_start, past.held, past.service, past.preemptions, past.failures,
              past.profile);
  out.natural(past.slices.size());
  for (const Slice& slice : past.slices) pass_fields(out, slice.node, slice.gpus, slice.devices);
}
inline void put(ByteWriter& out, const std::optional<TrainingReport>& report) {
  out.flag(report.has_value());
  if (report) pass_fields(out, report->epochs, report->loss, report->noise_scale);
}
inline void put(ByteWriter& out, const std::vector<double>& losses) {
  out.natural(losses.size());
  for (const double loss : losses) out.real(loss);
}
inline void put(ByteWriter& out, const std::vector<RateChange>& changes) {
  out.natural(changes.size());
  for (const RateChange& change : changes) {
    pass_field(out, change.job);
    out.natural(flags_of(change));
    if (change.work) pass_field(out, *change.work);
    if (change.begun) pass_field(out, *change.begun);
    out.natural(change.rate.raw());
  }
}

inline void get(ByteReader& in, bool& value) { value = in.flag(); }
inline void get(ByteReader& in, Time& value) { pass_field(in, value); }
inline void get(ByteReader& in, StartReceipt& receipt) {
  std::uint64_t rate = 0;
  pass_fields(in, receipt.held_from, receipt.work_from, rate, receipt.phase);
  receipt.rate = Rate::from_raw(rate);
}
inline void get(ByteReader& in, Entitlements& said) {
  said.shares.resize(static_cast<std::size_t>(in.natural()));
  for (auto& [who, shares] : said.shares) {
    who = in.text();
    shares = in.real();
  }
  said.uses.resize(static_cast<std::size_t>(in.natural()));
  for (auto& [user, group, gpu_seconds] : said.uses) {
    user = in.text();
    group = in.text();
    gpu_seconds = in.real();
  }
}
/// Its slices lie in `slices`.
inline void get(ByteReader& in, JobPast& past, std::vector<Slice>& slices) {
  pass_fields(in, past.first_start, past.held, past.service, past.preemptions, past.failures,
              past.profile);
  slices.resize(static_cast<std::size_t>(in.natural()));
  for (Slice& slice : slices) pass_fields(in, slice.node, slice.gpus, slice.devices);
  past.slices = slices;
}
inline void get(ByteReader& in, std::optional<TrainingReport>& report) {
  report.reset();
  if (!in.flag()) return;
  report.emplace();
  pass_fields(in, report->epochs, report->loss, report->noise_scale);
}
inline void get(ByteReader& in, std::vector<double>& losses) {
  losses.resize(static_cast<std::size_t>(in.natural()));
  for (double& loss : losses) loss = in.real();
}
inline void get(ByteReader& in, std::vector<RateChange>& changes) {
  changes.resize(static_cast<std::size_t>(in.natural()));
  for (RateChange& change : changes) {
    pass_field(in, change.job);
    const std::uint64_t flags = in.natural();
    if ((flags & 1U) != 0) pass_field(in, change.work.emplace());
    if ((flags & 8U) != 0) pass_field(in, change.begun.emplace());
    change.basis = basis_in(flags);
    change.rate = Rate::from_raw(in.natural());
  }
}
template <class T>
[[nodiscard]] T get(ByteReader& in) {
  T value{};
  get(in, value);
  return value;
}

}  // namespace berth::engine_log
