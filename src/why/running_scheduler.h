// What an explanation has to ask of the running scheduler beside its engine: clocks, which slot of
// the engine's trace is which job, and when nodes come up. The daemon implements it. Called in a
// forked copy of the process: an implementation must not take locks that other threads may hold.
#pragma once

#include <cstdint>
#include <optional>

#include "base/id.h"
#include "base/time.h"
#include "model/job_spec.h"

namespace berth {

class RunningScheduler {
 public:
  virtual ~RunningScheduler() = default;
  [[nodiscard]] virtual Time now() const = 0;           // the engine's clock
  [[nodiscard]] virtual std::int64_t wall() const = 0;  // Unix microseconds
  /// Nothing: it does not compete.
  [[nodiscard]] virtual std::optional<JobId> slot_of(JobNumber job) const = 0;
  [[nodiscard]] virtual JobNumber number_of(JobId slot) const = 0;
  /// A slot that no job has yet; nothing: all are taken.
  [[nodiscard]] virtual std::optional<JobId> spare_slot() const = 0;
  /// Puts the job that is asked about into a slot of its own, as if it competed. Nothing: there is
  /// no slot left, or the job is not one that an engine could bear.
  [[nodiscard]] virtual std::optional<JobId> suppose() = 0;
  /// When a node that boots is ready, if that is known.
  [[nodiscard]] virtual std::optional<Time> ready_about(NodeId node) const = 0;
};

}  // namespace berth
