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
  blocked_.assign(view.shapes.size(), false);
  for (;;) {
    const ShapeId* best = nullptr;
    for (const ShapeId& shape : queues_.active()) {
      if (blocked_[shape.value]) continue;
      // Strict looks at the head of the whole queue whether it fits or not; skip only at heads that
      // may.
      if (pass_ == PassRule::Skip && !plan.has_room(view.shapes[shape])) continue;
      if (best == nullptr || queues_.top(shape) < queues_.top(*best)) best = &shape;
    }
    if (best == nullptr) return;
    const ShapeId shape = *best;
    if (plan.try_start(queues_.top(shape).job)) {
      queues_.pop(shape);
    } else if (pass_ == PassRule::Strict) {
      return;
    } else {
      blocked_[shape.value] = true;  // all jobs of a shape are alike to the placement
    }
  }
}

}  // namespace berth
