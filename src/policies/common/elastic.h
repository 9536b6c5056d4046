// Between how many devices an elastic policy may choose for a job. What the trace declares counts;
// a trace that says nothing leaves it to the policy's rule: most published schedulers take every
// job as elastic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/view.h"
#include "policies/params.h"

namespace berth {

struct ElasticRange {
  std::int32_t least = 1;
  std::int32_t most = 1;
  [[nodiscard]] bool is_fixed() const noexcept { return least == most; }
  friend bool operator==(const ElasticRange&, const ElasticRange&) = default;
};

struct ElasticRule {
  bool all = true;             // jobs that declare nothing are elastic, too
  std::int32_t max_gpus = 16;  // these grow so far, or to what they ask for if that is more
};

/// A fraction of a device is never resized, nor is a job that wants none.
[[nodiscard]] inline ElasticRange elastic_range(const JobRequest& request,
                                                const ElasticRule& rule) noexcept {
  if (request.gpus_max > 0) return {std::max(1, request.gpus_min), request.gpus_max};
  if (!rule.all || request.gpu_milli < 1000 || request.gpus == 0)
    return {request.gpus, request.gpus};
  return {1, std::max(request.gpus, rule.max_gpus)};
}
[[nodiscard]] inline ElasticRange elastic_range(const View& view, JobId job,
                                                const ElasticRule& rule) noexcept {
  return elastic_range(view.request(job), rule);
}

/// The two parameters every elastic policy takes.
[[nodiscard]] inline std::vector<ParamSpec> elastic_params() {
  return {{"elastic", "all", "all: every job; declared: only those whose trace gives a range"},
          {"max_gpus", "16", "jobs that declare no range grow to so many GPUs, or what they ask"}};
}
[[nodiscard]] inline Result<ElasticRule> elastic_rule(const Params& params) {
  BERTH_TRY(const std::size_t which, params.choice("elastic", {"all", "declared"}));
  BERTH_TRY(const std::int64_t most, params.integer("max_gpus", 1, 1'000'000));
  return ElasticRule{.all = which == 0, .max_gpus = static_cast<std::int32_t>(most)};
}

}  // namespace berth
