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
#include "policies/common/parameter_servers.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/oasis/cheapest.h"
#include "policies/oasis/price_range.h"
#include "policies/oasis/slot_clock.h"
#include "policies/oasis/speed.h"
#include "policies/oasis/utility.h"
#include "policies/policy_entry.h"

namespace berth::oasis {

struct Options {
  Duration slot = std::chrono::minutes{10};
  std::int64_t horizon = 200;  // slots
  std::int64_t units = 128;    // of work in a table
  ElasticRule elastic;
  ParameterServers servers;
  bool value_by_work = false;  // a job is worth its weight times its GPU-slots
  double sensitivity = 0.1;    // steepness of utility without a hard deadline, per slot
  double critical = 5;         // with one
  double target = 15;          // slots after its shortest run time by which it is wanted
  double price_low = 0;        // 0 = learnt from the jobs seen
  double price_high = 0;
  bool reject_to_besteffort = false;  // who is refused runs on GPUs nobody was promised
  bool ahead = false;                 // who is accepted runs on them until its slots come

  [[nodiscard]] bool has_fixed_prices() const noexcept { return price_low > 0; }
};

class Oasis final : public Policy {
 public:
  Oasis(std::string name, const Options& options);
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
  enum class Standing : std::uint8_t { None, Planned, Guest };
  struct JobRow {
    Utility utility;
    std::vector<Hold> workers;  // by slot; the server is the pool
    std::vector<Hold> helpers;
    std::int64_t gpus_per_worker = 1;
    std::uint32_t generation = 0;  // of its entries in the agenda
    Standing standing = Standing::None;
  };
  struct Offer {
    Schedule schedule;
    std::int64_t gpus_per_worker = 1;
  };
  struct Appointment {  // at the beginning of the slot the job's number of GPUs changes
    std::int64_t slot;
    JobId job;
    std::uint32_t generation;
    friend auto operator<=>(const Appointment&, const Appointment&) = default;
  };

  // Before a schedule is made.
  [[nodiscard]] Speed speed_in(const View& view, JobId job, PoolId pool) const;
  [[nodiscard]] Utility utility_of(const View& view, JobId job, double shortest) const;
  [[nodiscard]] double worth(const View& view, JobId job, std::int64_t slot) const;
  void learn_prices(const View& view, JobId job, double shortest, double gpu_slots);
  void meet(const View& view, JobId job);
  [[nodiscard]] std::optional<Offer> best_offer(const View& view, JobId job) const;
  [[nodiscard]] std::string why_refused(const View& view, JobId job) const;

  // Promises.
  void catch_up(const View& view);
  void commit(const View& view, JobId job, Offer offer);
  void release_from(JobId job, std::int64_t slot);
  void relieve_overfull(const View& view);
  [[nodiscard]] std::optional<JobId> last_holder(PoolId pool, std::int64_t slot) const;
  void plan_again(const View& view, JobId job);
  void keep_appointments(const View& view);
  [[nodiscard]] bool is_valid(const Appointment& due) const;
  [[nodiscard]] bool is_awaited(std::int64_t slot) const;
  void end_schedule(const View& view, JobId job);
  void become_guest(const View& view, JobId job);
  [[nodiscard]] std::int64_t gpus_at(JobId job, std::int64_t slot) const;
  [[nodiscard]] PoolId pool_at(JobId job, std::int64_t slot) const;
  void push_appointment(std::int64_t slot, JobId job);

  // In the engine.
  void stop_changed(const View& view, Plan& plan);
  void start_planned(const View& view, Plan& plan);
  [[nodiscard]] bool start_in_place_of_guests(Plan& plan, JobId job, PoolId pool,
                                              std::int32_t gpus);
  void start_guests(const View& view, Plan& plan);
  void start_ahead(const View& view, Plan& plan);
  [[nodiscard]] bool try_start_guest(const View& view, Plan& plan, JobId job);

  std::string name_;
  Options options_;
  SlotClock clock_;
  std::optional<PriceBook> gpus_;
  std::optional<PriceBook> cores_;  // for parameter servers, if there are any
  std::optional<PriceRange> gpu_prices_;
  std::optional<PriceRange> core_prices_;
  std::vector<JobRow> rows_;         // by JobId
  std::vector<JobId> planned_;       // ascending
  std::vector<Appointment> agenda_;  // heap, earliest first; stale generations are dropped
  std::int64_t looked_at_ = -1;      // the last slot in which anything was
  std::vector<JobId> lost_;          // lost their devices with a node
  bool capacity_fell_ = false;
  std::optional<Offer> pending_;  // of the job being admitted
  std::vector<JobId> changed_;    // another number of GPUs than before
  std::vector<JobId> unplaced_;   // planned in this slot, but the placement found nothing
  std::vector<JobId> starting_;   // scratch
  std::vector<JobId> ahead_;      // planned, run outside of their slots; ascending
  WaitingByShape waiting_guests_;
  std::vector<JobId> running_guests_;  // ascending
  std::vector<bool> blocked_;          // scratch: shapes that found no place
};

}  // namespace berth::oasis

namespace berth {

[[nodiscard]] PolicyEntry oasis_entry();

}  // namespace berth
