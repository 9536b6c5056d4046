// Optimus (EuroSys 2018): every interval all jobs get their number of GPUs anew, one at a time
// where it shortens the remaining time most, with remaining work predicted from the losses and
// speed from what was measured.
//
// Jobs here train by all-reduce: workers are GPUs and there are no parameter servers (the models
// with them are in speed_fit, allocation and task_placement). A resized job keeps the batch of the
// whole gang and pays for its checkpoint and restart. A job that gets no first worker waits.
//
// A pass is O(active jobs + GPUs log jobs); between two of them only waiting jobs are looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/kit/pass.h"
#include "policies/optimus/allocation.h"
#include "policies/optimus/predictions.h"
#include "policies/optimus/task_placement.h"
#include "policies/policy_entry.h"

namespace berth::optimus {

/// How the devices of a new size are chosen: by the run's placement, or by task_placement.h.
enum class PlaceRule : std::uint8_t { Run, Even };

struct Options {
  PredictionOptions predictions;
  Duration interval = std::chrono::seconds{600};
  Duration overhead = std::chrono::seconds{30};  // of a resize or a restart
  double young_factor = 0.95;
  StartRule start = StartRule::AtOnce;  // of new jobs, if there is room for their first workers
  PlaceRule place = PlaceRule::Run;
  std::int32_t look_ahead = 1;  // GPUs more that a job is asked about
};

class Optimus final : public Policy {
 public:
  Optimus(std::string name, const Options& options)
      : name_(std::move(name)),
        options_(options),
        predictions_(options.predictions),
        allocator_(options.look_ahead),
        rounds_(options.interval) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Profile | Need::Reports,
            .preempts = true,
            .resizes = true,
            .also_uses = Ability::Batch};
  }

  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId) override { rounds_.stir(view.now); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  void reallocate(Pass& pass);
  void describe_jobs(const View& view, const Plan& plan);
  void add_job(const View& view, const Plan& plan, JobId job);
  [[nodiscard]] PoolId best_pool(const View& view, JobId job);
  [[nodiscard]] bool can_host(const View& view, JobId job, PoolId pool) const;
  void carry_out(Pass& pass, std::span<const TaskCounts> grants);
  void resize_in_place(Pass& pass, std::span<const TaskCounts> grants);
  [[nodiscard]] bool try_resize_in_place(Pass& pass, JobId job, std::int32_t gpus);
  void place_grants(Pass& pass, std::span<const TaskCounts> grants);
  [[nodiscard]] bool try_start(Pass& pass, JobId job, std::int32_t gpus, PlaceRule rule);
  [[nodiscard]] bool try_start_evenly(Pass& pass, JobId job, std::int32_t gpus);
  [[nodiscard]] TaskPlacer& placer_of(const Plan& plan, PoolId pool);
  void set_terms(Pass& pass, JobId job, std::int32_t gpus);
  void start_waiting(Pass& pass);
  [[nodiscard]] bool try_first_workers(Pass& pass, JobId job);
  [[nodiscard]] bool try_keep(Pass& pass, JobId job);

  std::string name_;
  Options options_;
  Predictions predictions_;
  Allocator allocator_;
  Rounds rounds_;  // settled while nothing runs: no pass would differ before the next event
  std::set<JobId> active_;
  std::set<JobId> waiting_;  // of those
  Column<PoolId, std::vector<NodeId>> nodes_;
  std::vector<std::int64_t> capacity_;                // scratch, by pool: thousandths of devices
  Column<PoolId, std::int64_t> used_;                 // scratch: thousandths of devices in use
  std::vector<AllocatedJob> jobs_;                    // scratch
  std::vector<const Trainee*> trainees_;              // scratch: in step with jobs_
  Column<ShapeId, std::int32_t> declined_;            // scratch: fewest GPUs with no room
  std::vector<std::unique_ptr<TaskPlacer>> placers_;  // scratch, by pool
  std::vector<Slice> slices_;                         // scratch
  std::vector<Slice> resized_;                        // scratch
};

}  // namespace berth::optimus

namespace berth {

[[nodiscard]] PolicyEntry optimus_entry();

}  // namespace berth
