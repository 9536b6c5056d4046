#include "core/intake.h"

#include <algorithm>

namespace berth {

Intake::Intake(const Trace& trace, const ClusterState& empty, Placement& placement,
               SideLimits limits, const RateModel& believed)
    : trace_(&trace),
      believed_(&believed),
      one_pool_(empty.pools() == 1),
      shapes_(trace, empty, placement, limits,
              empty.buses() != nullptr ? &believed.profiles() : nullptr) {}

void Intake::take(JobId job, JobTable& jobs, ShapeTable& shapes, KindTable& kinds) {
  const TraceJob& request = trace_->jobs[job.value];
  jobs.shape[job] = shapes_.shape_of(request, shapes);
  jobs.submitted[job] = request.submit;
  const auto [entry, is_new] = by_model_.try_emplace(request.model.value, std::nullopt);
  if (is_new) entry->second = believed_->profiles().find(trace_->text(request.model));
  if (!entry->second) ++without_profile_;
  jobs.profile[job] = entry->second.value_or(ProfileSet::fallback());
  // Of a model nobody knows the batch says nothing.
  const bool has_batch = request.batch_size > 0 && entry->second.has_value();
  jobs.batch[job] = has_batch ? std::max(1, request.batch_size / std::max(1, request.gpus)) : 0;
  // A traced duration stands for the device type the job names first, or for the only one there is.
  const Shape& shape = shapes[jobs.shape[job]];
  const bool names_type = !trace_->text(request.gpu_type).empty();
  const bool known = (one_pool_ || names_type) && !shape.pools.empty();
  jobs.reference[job] = known ? shape.pools.front() : kNoPool;
  jobs.kind[job] = kinds.intern({.shape = jobs.shape[job],
                                 .profile = jobs.profile[job],
                                 .reference = jobs.reference[job],
                                 .wanted = request.gpus,
                                 .batch = jobs.batch[job],
                                 .agreed = agreed_range(request),
                                 .says_range = request.gpus_min != 0 || request.gpus_max != 0});
}

}  // namespace berth
