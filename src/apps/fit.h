// `berth fit`: measurements in, parts of profiles with their errors out.
#pragma once

#include <string>

#include "apps/terminal.h"

namespace berth {

struct FitOptions {
  std::string kind = {};      // iteration, locality, pairs, cpu, memory or catalogue
  std::string input = {};     // CSV; for a catalogue the folder of the data
  std::string out = {};       // YAML; empty: the table alone, "-": standard output
  double gradient_bytes = 0;  // 0 = fitted
};

[[nodiscard]] Exit execute(const FitOptions& options);

}  // namespace berth
