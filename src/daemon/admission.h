// Whether a request can be taken: by its own sense, by what this cluster could ever hold, by what
// its user may ask. Everything that is wrong is said at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/feasibility.h"
#include "daemon/service.h"
#include "model/cluster.h"

namespace berth {

struct QueueOptions {
  std::string name = "main";
  std::int64_t default_time_limit = 0;  // seconds; 0 = none
  std::int64_t max_time_limit = 0;
  std::int32_t max_gpus = 0;
  std::int32_t priority = 0;    // added to the job's own
  std::int64_t idle_limit = 0;  // seconds an interactive session may be idle; 0 = for ever
};

struct AdmissionOptions {
  std::vector<QueueOptions> queues = {QueueOptions{}};  // the first one is the default
  std::size_t max_jobs = 1'000'000;                     // not over, in all
  std::size_t max_jobs_per_user = 100'000;
  std::int32_t max_user_priority = 0;  // a user may not go above; operators may
  std::string closed{};                // why nothing is taken here, and who takes it; empty: it is
};

class Admission {
 public:
  /// `exists`: such a job is or was there.
  Admission(const Cluster& cluster, const std::string& placement, AdmissionOptions options,
            std::function<std::size_t(JobNumber)> exists);
  /// Fills in what the request leaves open and says what is wrong with it. Safe from any thread.
  [[nodiscard]] Answer<void> admit(const Caller& caller, JobSpec& spec,
                                   std::vector<std::string>& notes);
  /// The same for a job that was admitted as `before`: only what is changed has to be allowed, so
  /// that what an operator gave, or a cluster that has become smaller, does not stand in the way.
  [[nodiscard]] Answer<void> admit_change(const Caller& caller, const JobSpec& before,
                                          JobSpec& spec, std::vector<std::string>& notes);
  [[nodiscard]] const AdmissionOptions& options() const noexcept { return options_; }

 private:
  [[nodiscard]] Answer<void> check(const Caller& caller, const JobSpec* before, JobSpec& spec,
                                   std::vector<std::string>& notes);
  void check_sense(const Caller& caller, const JobSpec* before, const JobSpec& spec,
                   Fault& bad) const;
  void check_queue(const Caller& caller, const JobSpec* before, JobSpec& spec,
                   std::vector<std::string>& notes, Fault& bad) const;
  void check_dependencies(const JobSpec* before, const JobSpec& spec, Fault& impossible) const;
  void choose_types(JobSpec& spec, std::vector<std::string>& notes, Fault& impossible) const;
  void check_cluster(const JobSpec& spec, Fault& impossible);
  void forget_shapes();

  const Cluster& cluster_;
  AdmissionOptions options_;
  std::function<std::size_t(JobNumber)> exists_;
  std::mutex mutex_;  // of what follows
  Trace names_;
  std::unique_ptr<Placement> placement_;
  ClusterState empty_;
  std::unique_ptr<ShapeMaker> shapes_;
  ShapeTable table_;
};

}  // namespace berth
