#include "policies/list_order/list_order.h"

namespace berth {

Int128 ListOrder::key_of(const View& view, JobId job) const {
  switch (key_) {
    case ListKey::Arrival: return 0;  // the order of JobIds is the order of arrival
    case ListKey::RunTime: return view.estimated_left(job).count();
    case ListKey::Gpus: return view.gpus(job);
  }
  return 0;
}

void ListOrder::on_arrival(const View& view, JobId job) {
  queues_.push(view.jobs.shape[job], {key_of(view, job), job});
}

void ListOrder::decide(const View& view, Plan& plan, Rng&) {
  // Strict looks at the head of the whole queue whether it fits or not; skip only at heads that
  // may.
  const bool is_strict = pass_ == PassRule::Strict;
  queues_.pass([&](ShapeId shape) { return is_strict || plan.has_room(view.shapes[shape]); },
               [&](JobId job) {
                 if (plan.try_start(job)) return Tried::Started;
                 return is_strict ? Tried::Enough : Tried::NoPlace;
               });
}

}  // namespace berth
