// Parameter grids: one array whose jobs differ in named parameters. `lr=0.1,0.01` and `seed=1-5` are
// ten jobs, every combination once; zipped they are the first values together, then the second
// ones. The index of a job in its array says which combination it is, so that nothing beside the
// request has to be kept.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"

namespace berth {

/// Parameters with the values of one job, in the order of the request.
using GridPoint = std::vector<std::pair<std::string, std::string>>;

class Grid {
 public:
  /// From "lr=0.1,0.01" or "seed=1-9:2,20", one text for each parameter. The error says which text
  /// is wrong: no name, a name twice, lists of unequal length to be zipped, too many combinations.
  [[nodiscard]] static Result<Grid> parse(const std::vector<std::string>& texts, bool zip);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The last parameter changes fastest.
  [[nodiscard]] GridPoint point(std::int32_t index) const;
  [[nodiscard]] bool has(std::string_view name) const noexcept;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Axis {
    std::string name;
    std::vector<std::string> values;
  };
  std::vector<Axis> axes_;
  bool zip_ = false;
  std::size_t size_ = 1;
};

/// Each {name} that the point knows is replaced.
[[nodiscard]] std::string filled_in(std::string_view text, const GridPoint& point);
/// "BERTH_GRID_LR"
[[nodiscard]] std::string grid_variable(std::string_view name);

/// Of a job of a grid; nothing for any other job.
[[nodiscard]] GridPoint grid_point(const JobSpec& spec, std::int32_t index);
/// What people call it: "train lr=0.1 seed=1"; without a grid its plain name.
[[nodiscard]] std::string shown_name(const JobSpec& spec, std::int32_t index);
/// A grid is an array over all its combinations, unless the request names some of them.
void add_grid_array(JobSpec& spec);
/// What is wrong with the grid of this request: a parameter that is used nowhere, a {name} that is
/// none, an index beyond it.
[[nodiscard]] std::vector<std::string> grid_problems(const JobSpec& spec);

}  // namespace berth
