// Two kinds of chart as SVG text: lines over a numeric axis, and grouped bars. Sizes suit a column
// of a paper; nothing but paths, rectangles and text, so every editor and LaTeX converter takes
// them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth {

enum class Scale : unsigned char { Linear, Log };

struct Axis {
  std::string title;  // with its unit
  Scale scale = Scale::Linear;
  std::optional<double> low = {}, high = {};  // otherwise from the data; linear axes begin at zero
};

struct Line {
  std::string label;
  std::vector<std::pair<double, double>> points;  // by x
};
struct LineChart {
  std::string title;  // for readers who see no picture
  Axis x, y;
  std::vector<Line> lines;
  bool steps = true;  // a value holds until the next point
};
[[nodiscard]] std::string to_svg(const LineChart& chart);

struct Bar {
  std::optional<double> value;
  std::optional<std::pair<double, double>> whisker = {};  // low, high
};
struct BarSeries {
  std::string label;
  std::vector<Bar> bars;  // one per category
};
struct BarChart {
  std::string title;
  std::string y_title;
  std::string x_title;
  std::vector<std::string> categories;
  std::vector<BarSeries> series;  // a single one has no legend
};
[[nodiscard]] std::string to_svg(const BarChart& chart);

/// Text made safe inside an element or attribute; characters XML does not allow become U+FFFD.
[[nodiscard]] std::string xml_text(std::string_view text);
/// Round marks within [low, high]: steps of 1, 2, 2.5 or 5 times a power of ten, about `count` of
/// them.
[[nodiscard]] std::vector<double> linear_ticks(double low, double high, int count);

}  // namespace berth
