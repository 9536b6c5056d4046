// Who of the residents of a unit runs now: the ring's choice carried out in the plan, and the clock
// of each unit whose residents take turns. Units on which everybody runs have no clock and cost
// nothing.
#pragma once

#include <vector>

#include "policies/gandiva/growth.h"
#include "policies/gandiva/housing.h"
#include "policies/gandiva/observations.h"
#include "policies/kit/pass.h"

namespace berth::gandiva {

class Turns {
 public:
  Turns(const Options& options, Housing& housing, Growth& growth)
      : options_(options), housing_(housing), growth_(growth) {}

  /// Marks slices that are over, after a last look at the rates in them.
  void end_due_slices(const View& view, Observations& observations);
  /// Settles all units that have changed in this instant.
  void carry_out(Pass& pass);
  /// A full slice counts from the end of the switch, which is known once it has begun: called after
  /// the plan was carried out.
  void start_clocks(const View& view);
  /// Ends of the slices of all units whose residents take turns.
  [[nodiscard]] const HomeTimers& slices() const noexcept { return slices_; }

  /// It stops running, if it does, and pays when it goes on.
  void suspend(Plan& plan, JobId job, Reason reason);

 private:
  void stop(Pass& pass, Home home);
  void start(Pass& pass, Home home);
  void split_seats(Plan& plan, Home home);
  void stop_seat(Plan& plan, const Ring::Seat& seat);
  [[nodiscard]] bool start_seat(Pass& pass, Home home, const Ring::Seat& seat);
  [[nodiscard]] bool start_job(Pass& pass, Home home, JobId job);
  [[nodiscard]] bool share_with(Plan& plan, Home home, JobId host, JobId guest);
  [[nodiscard]] bool pick_devices(const View& view, Home home, JobId job);
  void set_clock(Home home);

  const Options& options_;
  Housing& housing_;
  Growth& growth_;
  HomeTimers slices_;
  std::vector<Home> new_slices_;  // begin in this instant
  std::vector<Slice> picked_;     // scratch
};

}  // namespace berth::gandiva
