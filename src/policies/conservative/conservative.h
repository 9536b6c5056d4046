// Conservative backfill: every waiting job holds a reservation, and nobody may delay anybody's.
//
// A profile per pool holds the free GPUs over the time to come: running jobs until their believed
// end, reservations over their whole estimate. A new job takes the earliest stretch that is free as
// long as it needs, over its acceptable pools. When something ends early the reservations are
// compressed: each, in queue order, moves to its earliest fit with all others in place, so never to
// a later time.
//
// Needs an estimate of duration. A job that outlives its estimate is believed to go on for as long
// as it has outlived it (at least a quarter of the estimate and 1 s): steps that grow, so that a
// long overrun is not planned around every second. Reservations that no longer fit then, or after a
// node was lost, are planned again in queue order from the first job that has to give way.
// Reservations count GPUs: one that is due but finds no place (consolidated gangs, cores) keeps its
// GPUs and tries at each pass. At most `max_reservations` jobs hold one; the others wait behind
// them without.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/policy.h"
#include "policies/common/ranked_set.h"
#include "policies/conservative/capacity_profile.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/policy_entry.h"

namespace berth::conservative {

class Conservative final : public Policy {
 public:
  explicit Conservative(std::size_t max_reservations) : max_reservations_(max_reservations) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "conservative"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::RunTime}; }
  void begin(const View& view) override;
  void on_arrival(const View&, JobId job) override { waiting_.push(kQueue, job); }
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_rate(const View&, JobId job) override { fresh_.push_back(job); }
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

  /// The start first promised to the job; kNever if it never held a reservation.
  [[nodiscard]] Time first_promise(JobId job) const noexcept { return first_promise_[job]; }
  /// How often reservations were compressed, for tests of cost.
  [[nodiscard]] std::uint64_t compressions() const noexcept { return compressions_; }

 private:
  static constexpr GroupId kQueue{};  // one queue for all

  enum class Held : std::uint8_t { Nothing, Reservation, Devices };
  struct Booking {
    Time start;
    Time end;
    Time made;  // when it was written down
    PoolId pool;
    Held held = Held::Nothing;
  };
  struct Due {
    Time at;
    JobId job;
    friend auto operator<=>(const Due&, const Due&) = default;
  };
  struct Slot {
    PoolId pool;
    Time start = kNever;
  };
  [[nodiscard]] static Duration length_of(const View& view, JobId job) noexcept;
  [[nodiscard]] static Time believed_end(const View& view, JobId job) noexcept;
  [[nodiscard]] static Time next_believed_end(const View& view, JobId job, Time end) noexcept;
  void drop_stale_ends();

  void learn_pools(const View& view, const Plan& plan, ShapeId shape);
  [[nodiscard]] Slot earliest_slot(const View& view, JobId job) const;
  void reserve(const View& view, JobId job, const Slot& slot);
  void unreserve(const View& view, JobId job);
  void reserve_or_strand(const View& view, JobId job);
  void leave_order(JobId job);

  void hold(const View& view, JobId job, PoolId pool);
  void release(const View& view, JobId job);
  void move_end(const View& view, JobId job, Time end);
  void correct_ends(const View& view);

  void plan_again_what_conflicts(const View& view);
  void compress(const View& view);
  void compress_one(const View& view, JobId job);
  void admit_waiting(const View& view, const Plan& plan);
  [[nodiscard]] bool start_due(const View& view, Plan& plan);
  [[nodiscard]] bool start_one(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool try_pool(const View& view, Plan& plan, JobId job, PoolId pool);

  std::size_t max_reservations_;
  Column<PoolId, CapacityProfile> profiles_;
  Column<PoolId, std::int64_t> usable_;  // GPUs, as the profile knows them
  Column<JobId, Booking> bookings_;
  Column<JobId, Time> first_promise_;
  Column<ShapeId, std::vector<PoolId>> pools_;  // where it could ever be placed
  std::vector<JobId> order_;                    // jobs with a reservation, in queue order
  RankedSet<Due> starts_;                       // the same by reserved start
  WaitingJobs<GroupId> waiting_;                // without reservation
  std::vector<JobId> stranded_;  // too large for the nodes that are up: wait for capacity
  std::vector<Due> ends_;        // heap of believed ends; stale ones are dropped as they surface
  std::vector<JobId> fresh_;     // started by the last pass: what it cost is known now
  bool freed_ = false;           // capacity came back earlier than believed
  std::uint64_t compressions_ = 0;
  std::vector<JobId> scratch_;
  BlockedPlaces blocked_;  // scratch of a pass
};

}  // namespace berth::conservative

namespace berth {

[[nodiscard]] PolicyEntry conservative_entry();

}  // namespace berth
