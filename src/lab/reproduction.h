// `berth reproduce`: the headline of a paper, in shape, on the nearest workload at hand. Each entry
// says its setting, what was published, what we get and why they differ; docs/reproduction.md is
// made of these.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

enum class Judgement : std::uint8_t {
  Measured,    // nothing published to hold it against
  Reproduced,  // as large as published, or larger
  InShape,     // better, as published, but by less, or not everywhere
  Missed,
};

/// The figure a reader would cite, for the table at the end of `berth reproduce all`.
struct Headline {
  std::string published;
  std::string ours;
  Judgement verdict = Judgement::Measured;
};

/// Both say how many times better than the rival; for a published range take the lower end.
[[nodiscard]] Judgement judged(double ours, double published) noexcept;
/// The least and the largest gain over several settings. If some setting shows none, the verdict is
/// InShape at best.
[[nodiscard]] Judgement judged_everywhere(double least, double most, double published) noexcept;
[[nodiscard]] std::string_view to_string(Judgement verdict) noexcept;

struct Reproduced {
  std::string setting;  // cluster, workload, seeds: enough to do it again by hand
  Headline headline;
  std::vector<ReproducedFigure> figures;
  std::vector<std::string> notes;
};

struct Reproduction {
  std::string name;                // on the command line
  std::string paper;               // authors' title and venue, short
  std::vector<std::string> needs;  // files and folders in the data folder; empty: none
  Result<Reproduced> (*run)(const ReproduceOptions&);
};

/// In the order of the page.
[[nodiscard]] std::span<const Reproduction> reproductions();

}  // namespace berth
