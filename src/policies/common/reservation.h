// One promise to the first job in order that has to wait: when, by the estimates, enough running
// jobs will have ended for it (the shadow), and what is left beside it then (extra). Whoever wants
// to go before it asks here: it must be over by then, or use only what is left. Made anew at each
// pass from the expected ends, which are kept here.
//
// Where gangs must be consolidated or cores are limited, the shadow is found by placing the job on
// the future free map, and who outlasts it must keep off the devices it would get.
#pragma once

#include <optional>
#include <vector>

#include "core/plan.h"
#include "policies/common/expected_ends.h"

namespace berth {

class Reservation {
 public:
  void begin(const View& view) { ends_.begin(view); }
  [[nodiscard]] ExpectedEnds& ends() noexcept { return ends_; }

  /// For a job of this shape, that cannot start now.
  void make(const View& view, const Plan& plan, const Shape& shape);
  /// How long a job of this shape that starts now in the pool may run at most; nothing: no limit.
  [[nodiscard]] std::optional<Duration> window(const View& view, const Shape& shape,
                                               PoolId pool) const;
  /// Will the job still run there when the promised time has come?
  [[nodiscard]] bool outlasts(const View& view, PoolId pool, JobId job) const;
  /// Gives a job that outlasts it, and was just started, its part of what is left. False: it took
  /// what is reserved, the start has to be undone.
  [[nodiscard]] bool spares(const View& view, const Plan& plan, JobId job);
  /// When, even if nothing happens, the promise moves or leaves more beside it, so that somebody
  /// may go before it who may not now: jobs outlive their estimates. kNever: it stays as it is.
  [[nodiscard]] Time next_change(const View& view) const;

 private:
  struct Shadow {
    PoolId pool;
    Time at = kNever;
    Time last = kNever;  // when the last job it waits for should end, or should have ended
    std::int64_t extra = 0;
    bool by_map = false;  // `reserved_` says which devices the job will take
  };
  [[nodiscard]] Shadow by_count(const View& view, const Shape& shape, PoolId pool) const;
  [[nodiscard]] Shadow by_map(const View& view, const Plan& plan, const Shape& shape, PoolId pool);

  ExpectedEnds ends_;
  Shadow shadow_;
  /// From when on another pool promises an earlier start than this one, should it come to that.
  struct Rival {
    Time at = kNever;
    bool wins_ties = false;
  };
  std::vector<Rival> rivals_;
  std::vector<Slice> reserved_;
};

}  // namespace berth
