#include "daemon/dependency_targets.h"

#include <algorithm>
#include <numeric>

namespace berth {

std::vector<JobNumber> targets_of(const Dependency& dependency, const NamedJob& named,
                                  std::optional<std::int32_t> own_index) {
  // Only the first number of an array is also that of the array.
  const bool is_array = named.array == dependency.job && named.indices != nullptr;
  std::optional<std::int32_t> index;
  if (dependency.index != kWholeArray) index = dependency.index;
  if (dependency.kind == DependencyKind::AfterCorr) index = own_index;
  if (!is_array) {
    const bool is_itself = dependency.index == kWholeArray;
    return is_itself ? std::vector<JobNumber>{dependency.job} : std::vector<JobNumber>{};
  }
  const auto& indices = named.indices->indices;
  if (!index) {
    std::vector<JobNumber> all(indices.size());
    std::iota(all.begin(), all.end(), dependency.job);
    return all;
  }
  const auto found = std::ranges::lower_bound(indices, *index);
  if (found == indices.end() || *found != *index) return {};
  return {dependency.job + static_cast<JobNumber>(found - indices.begin())};
}

}  // namespace berth
