// Jobs that ask for cores and memory and for no device, served beside the policy by one rule that is
// the same under every policy: after the policy has decided, those that wait are looked at by
// priority, then by arrival, and each starts on the node where it leaves the fewest cores over. One
// that does not fit is passed over. They hold no device, so that no policy has to know of them: it
// is told neither of their coming nor of their going, and never stops one.
#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "core/engine_plan.h"
#include "core/view.h"

namespace berth {

class CoresLane {
 public:
  /// It waits. A job that waits already may be named again.
  void add(const View& view, JobId job);
  /// It is over or has left.
  void remove(const View& view, JobId job);
  /// Starts whoever fits.
  void decide(const View& view, EnginePlan& plan);

 private:
  using Key = std::tuple<std::int64_t, Time, JobId>;  // less urgent, later, id
  [[nodiscard]] static Key key_of(const View& view, JobId job);
  [[nodiscard]] static bool try_start(const View& view, EnginePlan& plan, JobId job);

  std::set<Key> waiting_;
};

}  // namespace berth
