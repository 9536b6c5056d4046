// `berth reproduce`: the headline of a paper, in shape, on the nearest workload at hand. Each entry
// says its setting, what was published, what we get and why they differ; docs/reproduction.md is
// made of these.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth {

struct ReproduceOptions {
  std::string data;    // folder of public traces and profiles; empty: only what needs none
  bool quick = false;  // fewer seeds, smaller workloads: for tests
  std::uint64_t seed = 1;
};

struct ReproducedFigure {
  std::string what;       // "average JCT against SJF-FFS, 480 jobs"
  std::string published;  // "up to 17 % lower"
  std::string ours;       // "11 % lower"
  std::string why;        // why they differ, one sentence; empty if they agree
};

struct Reproduced {
  std::string setting;  // cluster, workload, seeds: enough to do it again by hand
  std::vector<ReproducedFigure> figures;
  std::vector<std::string> notes;
};

struct Reproduction {
  std::string name;   // on the command line
  std::string paper;  // authors' title and venue, short
  bool needs_data = false;
  Result<Reproduced> (*run)(const ReproduceOptions&);
};

/// In the order of the page.
[[nodiscard]] std::span<const Reproduction> reproductions();

}  // namespace berth
