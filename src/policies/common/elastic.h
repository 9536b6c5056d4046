// Between how many devices an elastic policy may choose for a job. What its request agrees to
// counts (model/elastic.h). A simulated trace that declares nothing may be taken as elastic all the
// same, as most published schedulers do; a job that really runs is not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/params.h"
#include "core/view.h"
#include "model/elastic.h"

namespace berth {

struct ElasticRule {
  bool all = false;            // jobs of a trace that declare nothing are elastic, too
  std::int32_t max_gpus = 16;  // these grow so far, or to what they ask for if that is more
};

/// The one question every policy asks before it gives a job another size than it asked for.
[[nodiscard]] inline ElasticRange elastic_range(const View& view, JobId job,
                                                const ElasticRule& rule = {.all = false}) noexcept {
  const JobRequest& request = view.request(job);
  const bool says_nothing = request.gpus_min == 0 && request.gpus_max == 0;
  const bool may_suppose = rule.all && !view.sizes_are_agreed();
  if (!may_suppose || !says_nothing || request.gpu_milli < 1000 || request.gpus == 0)
    return agreed_range(request);
  return {1, std::max(request.gpus, rule.max_gpus)};
}

/// Powers of two within the range, its ends, and `also` if it is above zero; rising. Few enough to
/// compare all of them, and a best size lies between two that differ by a factor of two.
[[nodiscard]] inline std::vector<std::int32_t> doubling_sizes(const ElasticRange& range,
                                                              std::int32_t also) {
  std::vector<std::int32_t> sizes{range.least, range.most};
  if (also > 0) sizes.push_back(also);
  for (std::int32_t size = 1; size < range.most; size *= 2) {
    if (size > range.least) sizes.push_back(size);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// The two parameters every elastic policy takes.
[[nodiscard]] inline std::vector<ParamSpec> elastic_params() {
  return {{"elastic", "declared",
           "declared: jobs whose trace gives a range; all: every job of a simulated trace"},
          {"max_gpus", "16", "jobs that declare no range grow to so many GPUs, or what they ask"}};
}
[[nodiscard]] inline Result<ElasticRule> elastic_rule(const Params& params) {
  ElasticRule rule;
  BERTH_TRY(rule.all, params.choice<bool>("elastic", {{"all", true}, {"declared", false}}));
  BERTH_TRY(rule.max_gpus, params.whole<std::int32_t>("max_gpus", 1, 1'000'000));
  return rule;
}

}  // namespace berth
