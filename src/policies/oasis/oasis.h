// OASiS (INFOCOM 2018): online primal-dual admission of elastic jobs.
//
// Time goes in slots. When a job arrives, the cheapest schedule for every finish slot is found at
// the prices of the GPUs in each slot to come; prices rise with what is promised. If what the job
// is worth when done exceeds what its best schedule costs, it is accepted and the schedule is kept
// for good: so many GPUs in each slot, with gaps if that is cheaper. Otherwise it is refused.
//
// Needs run times, deadlines (if any), speeds by number of GPUs. A pool of equal devices is one
// server of the paper: a schedule says how many GPUs of which pool, the run's placement says which.
// Accepted jobs are never displaced by later ones. A job that is not done when its schedule ends
// asks again for what is left; if nobody would pay for that it runs on GPUs nobody was promised.
//
// An arrival costs O(slots log slots) per acceptable pool, a slot boundary what changes there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/common/elastic.h"
#include "policies/kit/beliefs.h"
#include "policies/kit/pass.h"
#include "policies/oasis/guests.h"
#include "policies/oasis/promises.h"
#include "policies/oasis/slot_clock.h"
#include "policies/oasis/speed.h"
#include "policies/oasis/utility.h"
#include "policies/policy_entry.h"

namespace berth::oasis {

enum class Value : std::uint8_t { Weight, Work };  // Work: its weight times its GPU-slots

struct Options {
  Duration slot = std::chrono::minutes{10};
  PromiseOptions promises;
  std::int64_t units = 128;  // of work in a table
  ElasticRule elastic;
  Value value = Value::Weight;
  double sensitivity = 0.1;           // steepness of utility without a hard deadline, per slot
  double critical = 5;                // with one
  double target = 15;                 // slots after its shortest run time by which it is wanted
  bool reject_to_besteffort = false;  // who is refused runs on GPUs nobody was promised
  bool ahead = false;                 // who is accepted runs on them until its slots come
};

class Oasis final : public Policy {
 public:
  Oasis(std::string name, const Options& options)
      : name_(std::move(name)), options_(options), clock_(options.slot), guests_(options.elastic) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Deadline | Need::Profile,
            .preempts = true,
            .resizes = true,
            .may_refuse = !options_.reject_to_besteffort};
  }
  void begin(const View& view) override;
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  // Before a schedule is made.
  [[nodiscard]] Speed speed_in(const View& view, JobId job, PoolId pool);
  [[nodiscard]] Utility utility_of(const View& view, JobId job, double shortest) const;
  [[nodiscard]] double worth(const View& view, JobId job, std::int64_t slot) const;
  void learn_prices(const View& view, JobId job, double shortest, double gpu_slots);
  void appraise(const View& view, JobId job);
  [[nodiscard]] std::optional<Offer> best_offer(const View& view, JobId job);
  [[nodiscard]] std::string why_refused(const View& view, JobId job) const;

  // When something has ended early or late, or was lost.
  void catch_up(const View& view);
  void accept(const View& view, JobId job, const Offer& offer);
  void relieve_overfull(const View& view);
  void plan_again(const View& view, JobId job);
  void end_schedule(const View& view, JobId job);

  // From schedules to devices.
  void stop_changed(Pass& pass);
  void start_planned(Pass& pass);
  [[nodiscard]] bool start_in_place_of_others(Plan& plan, JobId job, PoolId pool,
                                              std::int32_t gpus);
  void start_ahead(Pass& pass);

  std::string name_;
  Options options_;
  SlotClock clock_;
  Beliefs beliefs_;
  std::optional<Promises> promises_;  // from begin() on
  Guests guests_;
  Column<JobId, Utility> utility_;
  std::optional<Offer> pending_;  // of the job being admitted
  JobList ahead_;                 // have a schedule, run outside of their slots
  std::int64_t looked_at_ = -1;   // the last slot in which anything was
  JobList lost_;                  // lost their devices with a node
  bool capacity_fell_ = false;
  JobList changed_;              // another number of GPUs than before, or no place was found
  std::vector<JobId> starting_;  // scratch
};

}  // namespace berth::oasis

namespace berth {

[[nodiscard]] PolicyEntry oasis_entry();

}  // namespace berth
