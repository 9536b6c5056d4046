// The catalogue of models that comes with the project, made from published measurements: a table of
// recipes says which source gives which part of which profile, and this carries it out. Same data,
// same file.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "perf/fit.h"
#include "perf/profile.h"

namespace berth {

/// One line of what `berth fit` prints.
struct FitRow {
  std::string model;
  std::string part;
  std::string source;
  std::string parameters;
  FitError error;
};

struct Catalogue {
  ProfileSet profiles;
  std::vector<FitRow> rows;
};

/// `directory` holds one folder per source.
[[nodiscard]] Result<Catalogue> fit_catalogue(const std::string& directory);

}  // namespace berth
