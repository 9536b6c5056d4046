// Which published source gives which part of which profile. Data only; a new model is a row here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace berth {

enum class StepSource : std::uint8_t {
  Sia,
  Gavel,
  ElasticFlow,
  Rubick,
  Muri,
  Chronus,
  Lucid,
  Synergy
};

struct Recipe {
  std::string_view name;
  std::string_view aliases;  // by spaces
  std::int32_t batch;        // per GPU
  StepSource steps;
  /// Millions of parameters as commonly published; 0: not known here.
  double parameters = 0;
  /// Device type whose points are left out, as the sources' notes or the points themselves demand.
  std::string_view leave_out = "";
  // What the sources call it; empty: they do not have it.
  std::string_view sia = "", gavel = "", elasticflow = "", rubick = "", muri = "", chronus = "",
                   lucid = "", synergy = "";
};

[[nodiscard]] std::span<const Recipe> recipes() noexcept;

}  // namespace berth
