// The verbs by which Berth reads and commands a Slurm. Two links exist: the text commands of Slurm
// (slurm/text_link.h: needs nothing, enough to advise) and a small program compiled against the
// site's own libslurm (slurm/program_link.h: cheap enough to decide with every second). Tests have
// one without a Slurm.
//
// A call may take as long as slurmctld does; each has a deadline of its own and fails after it. A
// verb that failed may have been carried out all the same: only the next reading tells. One thread
// at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/facts.h"

namespace berth::slurm {

/// Where a waiting job is to run.
struct Placement {
  std::vector<std::string> nodes;
  std::int32_t tasks = 0, cpus = 0;  // 0: as it asked; with another number of nodes both are set
  /// After a requeue Slurm makes a job wait. True: begin at once. Only where none of the nodes held
  /// its last run: a node that did may refuse the launch, and the job ends as FAILED.
  bool begin_now = false;
  std::string qos{};  // set with it; empty: as it is
};

/// Why Slurm did not do it, as far as that tells the caller what to do.
enum class Refusal : std::uint8_t {
  Other,
  Unreachable,  // slurmctld or munge does not answer: try later
  NoSuchJob,    // the id is not (any more) known
  WrongState,   // it has begun or ended meanwhile: read again
  NotAllowed,   // rights are missing
};
struct LinkError {
  Refusal refusal = Refusal::Other;
  std::string text;
};
template <class T>
using Linked = tl::expected<T, LinkError>;

/// As `scontrol` takes it: "7", or "7_2" of a task that still waits with its array.
using JobRef = std::string;

class Link {
 public:
  virtual ~Link() = default;

  // --- reading

  [[nodiscard]] virtual Linked<Version> version() = 0;
  /// Jobs that are not over, and those that ended lately, as long as slurmctld keeps them.
  /// Nothing: nothing has changed since the last answer to this link.
  [[nodiscard]] virtual Linked<std::optional<std::vector<Job>>> jobs() = 0;
  [[nodiscard]] virtual Linked<std::optional<std::vector<Node>>> nodes() = 0;
  [[nodiscard]] virtual Linked<std::vector<Partition>> partitions() = 0;
  [[nodiscard]] virtual Linked<std::vector<Switch>> topology() = 0;
  [[nodiscard]] virtual Linked<std::vector<Reservation>> reservations() = 0;
  [[nodiscard]] virtual Linked<Config> config() = 0;

  // --- commanding

  /// Places and releases in one request.
  [[nodiscard]] virtual Linked<void> place(const JobRef& job, const Placement& placement) = 0;
  [[nodiscard]] virtual Linked<void> hold(const JobRef& job) = 0;
  [[nodiscard]] virtual Linked<void> release(const JobRef& job) = 0;
  /// Ends its run (SIGTERM, after KillWait SIGKILL); it waits again, held.
  [[nodiscard]] virtual Linked<void> requeue_held(const JobRef& job) = 0;
  [[nodiscard]] virtual Linked<void> cancel(const JobRef& job) = 0;
  /// To all its processes: its script, what that has started, and its steps.
  [[nodiscard]] virtual Linked<void> signal(const JobRef& job, int number) = 0;
  /// To its batch script alone.
  [[nodiscard]] virtual Linked<void> signal_script(const JobRef& job, int number) = 0;
  [[nodiscard]] virtual Linked<void> suspend(const JobRef& job) = 0;
  [[nodiscard]] virtual Linked<void> resume(const JobRef& job) = 0;
  [[nodiscard]] virtual Linked<void> set_time_limit(const JobRef& job, std::int64_t seconds) = 0;
  /// For people; users cannot change it.
  [[nodiscard]] virtual Linked<void> set_admin_comment(const JobRef& job,
                                                       const std::string& text) = 0;
  [[nodiscard]] virtual Linked<void> resume_node(const std::string& node) = 0;
};

}  // namespace berth::slurm
