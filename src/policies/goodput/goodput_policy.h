// What Pollux and Sia have in common: every `interval` GPUs are shared out anew by goodput, every
// job has the batch that makes it learn fastest where it stands, and a job that comes between two
// rounds starts at once at its smallest size if there is room. What a round decides is the policy's
// own.
//
// Rounds in which nothing can have changed are left out (round_clock.h). Between two rounds a pass
// costs O(kinds of waiting jobs).
#pragma once

#include <string>
#include <vector>

#include "base/params.h"
#include "core/policy.h"
#include "policies/goodput/goodput_jobs.h"
#include "policies/goodput/resizer.h"
#include "policies/goodput/round_clock.h"
#include "policies/kit/waiting_jobs.h"

namespace berth::goodput {

class GoodputPolicy : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile | Need::Reports | Need::RunTime,
            .preempts = true,
            .resizes = true,
            .also_uses = Ability::Batch | Ability::SubBatch};
  }
  void begin(const View& view) override { jobs_.begin(view); }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId) override { clock_.stir(view.now); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 protected:
  GoodputPolicy(std::string name, const Options& options)
      : name_(std::move(name)), jobs_(options), resizer_(jobs_), clock_(options.interval) {}

  /// New sizes for everybody. True if anybody is not where it was.
  virtual bool hold_round(Pass& pass) = 0;
  /// Where a waiting job is tried first; then in the others it accepts.
  [[nodiscard]] virtual PoolId first_pool(const View& view, JobId job) const {
    return view.shape(job).pools.front();
  }
  /// A job that waited holds devices now.
  virtual void on_start(const Plan&, JobId) {}

  /// The best batch for everybody who holds devices.
  void set_batches(Pass& pass);
  [[nodiscard]] Jobs& jobs() noexcept { return jobs_; }
  [[nodiscard]] const Jobs& jobs() const noexcept { return jobs_; }
  [[nodiscard]] Resizer& resizer() noexcept { return resizer_; }

 private:
  void list_waiting(Pass& pass);
  void start_waiting(Pass& pass);
  [[nodiscard]] bool try_start(Pass& pass, JobId job);

  std::string name_;
  Jobs jobs_;
  Resizer resizer_;
  RoundClock clock_;
  WaitingByKind waiting_;  // whoever has no devices
  bool is_anybody_running_ = false;
  std::vector<JobId> drained_;  // scratch
};

/// The parameters that all of them take, and `own`.
[[nodiscard]] std::vector<ParamSpec> params_with(std::vector<ParamSpec> own);
[[nodiscard]] Result<Options> read_options(const Params& params);

}  // namespace berth::goodput
