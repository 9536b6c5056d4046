// Attempts as processes of this machine, each kept by a shim of its own that outlives us. What must
// survive is in the run directory; nothing here does. Any thread may call any method; events come
// from one thread of ours, one at a time, with no lock held (exec/shim_watch.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/log_limit.h"
#include "exec/cgroup.h"
#include "exec/host.h"
#include "exec/run_dir.h"
#include "exec/shim_watch.h"

namespace berth {

class LocalHost final : public Host {
 public:
  struct Options {
    std::string run_dir;                    // made if missing; its parent exists
    std::string shim;                       // program; empty: find_shim()
    std::vector<std::string> cgroup_roots;  // see find_cgroup_roots(); empty: none
    Logger* log = nullptr;                  // outlives the host; null: silence
    LogLimit* limit = nullptr;              // outlives the host; null: everything is said
  };
  [[nodiscard]] static Result<std::unique_ptr<LocalHost>> open(Options options,
                                                               std::function<void(HostEvent)> sink);

  /// A second launch of an attempt that is under way changes nothing.
  [[nodiscard]] Result<void> launch(const LaunchOrder& order) override;
  void stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) override;
  void suspend(AttemptId attempt) override;
  void resume(AttemptId attempt) override;
  void signal(AttemptId attempt, int number) override;
  void signal_shell(AttemptId attempt, int number) override;
  void set_cores(AttemptId attempt, const std::vector<std::int32_t>& cores) override;
  void set_rate(AttemptId attempt, std::int32_t milli) override;
  void set_limit(AttemptId attempt, std::int64_t seconds) override;
  void join(AttemptId attempt, std::uint32_t request) override;
  /// Lost means that its processes are gone too: survivors are ended first, which may take seconds.
  [[nodiscard]] Result<Finding> look(JobNumber job, AttemptId attempt) override;
  [[nodiscard]] KeptSteps steps(AttemptId attempt) override;
  void forget(AttemptId attempt) override;

  /// Attempts that have files here, ascending. What the journal does not know may be looked at,
  /// stopped and forgotten.
  [[nodiscard]] std::vector<AttemptId> present() const;

 private:
  LocalHost(Options options, std::function<void(HostEvent)> sink);
  void warn(AttemptId attempt, std::string_view what, std::string_view detail) const;
  /// Once a minute for each cause.
  void note_trouble(std::string_view cause, std::string_view what, const Error& error) const;
  void send(AttemptId attempt, ShimCommand command);
  [[nodiscard]] Result<Finding> try_look(JobNumber job, AttemptId attempt);
  /// As it was last told; nothing: never.
  [[nodiscard]] std::optional<std::vector<std::int32_t>> cores_of(AttemptId attempt) const;
  [[nodiscard]] Result<Finding> lost(AttemptId attempt, std::string why) const;
  [[nodiscard]] std::string group_name(AttemptId attempt) const;
  [[nodiscard]] AttemptCgroups groups_of(AttemptId attempt) const;

  const Options options_;
  const RunDir directory_;
  ShimWatch watch_;
};

}  // namespace berth
