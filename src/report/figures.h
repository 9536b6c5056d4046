// Figures ready for a paper: SVG, vector only, fonts by family name, colours that colour-blind
// readers tell apart and dashes that survive black-and-white print. Units stand on the axes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/run_data.h"

namespace berth {

struct Figure {
  std::string name;  // file name without ".svg"
  std::string svg;
};

/// jct_cdf, queue_cdf, queue_length, busy_gpus, avg_jct, jct_by_size: those that the data allows.
[[nodiscard]] std::vector<Figure> figures(std::span<const RunData> runs);
/// Writes them to DIR/figures/*.svg.
[[nodiscard]] Result<void> write_figures(const std::string& dir, std::span<const RunData> runs);

}  // namespace berth
