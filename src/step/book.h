// The directory of a job's steps (docs/adr/0009-steps.md). Per step a lock file, locked by the
// process that keeps the step as long as it lives, and a file with what is known of it. Whoever
// takes a number, devices or cores holds the lock of the whole directory while it looks and writes;
// whoever dies gives everything back with its lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/step.h"

namespace berth {

/// What a job holds, for its steps to share.
struct JobGrant {
  std::vector<std::int32_t> devices;
  std::vector<std::int32_t> cores;  // it is bound to; empty: it is not bound
  std::int32_t cpus = 0;            // cores it may use; 0: nobody counts them
  std::int32_t most_tasks = 0;      // as many as it asked for cores; 0: it asked for none
  std::string gpu_type{};           // of all its devices; empty: not known
  std::vector<std::string> nodes{};
};

/// What a step wants of it.
struct StepWish {
  std::string id;  // "interactive"; empty: the next number
  std::string name;
  std::int32_t tasks = 1;
  std::optional<std::int32_t> cpus;      // nothing: all
  std::optional<std::int32_t> gpus;      // for itself; nothing: it sees all, and so do others
  bool overlaps = false;                 // takes nothing for itself
  bool overcommits = false;              // more tasks than cores
  std::vector<std::string> gpu_types{};  // its devices are of one of these; none: of any
  std::vector<std::string> nodes{};      // where it runs; none: wherever the job does
};

/// Why a job can never hold such a step.
struct StepRefusal {
  enum class Kind : std::uint8_t { Devices, Cores, Nodes };
  Kind kind{};
  std::string why;  // for people
};
[[nodiscard]] std::optional<StepRefusal> refusal_of(const StepWish& wish, const JobGrant& grant);

/// A step that has begun: on record as running until finish(), or until this process is gone.
class StepEntry {
 public:
  StepEntry(std::string directory, Fd lock, StepView view)
      : directory_(std::move(directory)), lock_(std::move(lock)), view_(std::move(view)) {}
  [[nodiscard]] const StepView& view() const noexcept { return view_; }
  /// How it ended; its devices and cores are free from now on.
  [[nodiscard]] Result<void> finish(const StepView& ended);

 private:
  std::string directory_;
  Fd lock_;
  StepView view_;
};

class StepBook {
 public:
  explicit StepBook(std::string directory) : directory_(std::move(directory)) {}

  /// Nothing: others use what it wants, try again later. An error: it is refused (above), or the
  /// directory cannot be used.
  [[nodiscard]] Result<std::optional<StepEntry>> try_begin(const StepWish& wish,
                                                           const JobGrant& grant) const;

 private:
  std::string directory_;
};

/// Every step on record there, by id; "running" only if its keeper lives. The directory may belong
/// to somebody who means harm: what is no plain small file, or makes no sense, is passed over.
[[nodiscard]] std::vector<StepView> read_steps(const std::string& directory);

}  // namespace berth
