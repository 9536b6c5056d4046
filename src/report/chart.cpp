// SVG by hand: an axis maps data to picture, a legend wraps to as many rows as it needs, and
// numbers are written with two decimals, so that equal data give equal bytes.

#include "report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace berth {

namespace {

// Okabe and Ito's colours without the yellow, which is lost on white paper.
constexpr std::array<std::string_view, 7> kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                   "#E69F00", "#56B4E9", "#000000"};
constexpr std::array<std::string_view, 5> kDashes{"", "6 3", "2 2", "8 3 2 3", "10 4"};

constexpr double kWidth = 520;
constexpr double kPlotHeight = 250;
constexpr double kLeft = 62;
constexpr double kRight = 18;
constexpr double kTop = 12;
constexpr double kLegendRow = 16;

std::string_view colour(std::size_t i) { return kColours[i % kColours.size()]; }
// Dashes shift by one each time the colours repeat: no two of the first 35 lines look alike.
std::string_view dash(std::size_t i) { return kDashes[(i + i / kColours.size()) % kDashes.size()]; }

/// A tick's text as markup: plain where it is short, otherwise a power of ten.
std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";  // and not "-0"
  if (size < 1e5 && size > 1e-3) return fmt::format("{:.6g}", value);
  const int power = static_cast<int>(std::floor(std::log10(size) + 1e-9));
  const double factor = value / std::pow(10.0, power);
  const std::string head = std::abs(factor - 1) < 1e-9 ? "10" : fmt::format("{:.3g}·10", factor);
  return fmt::format("{}<tspan dy=\"-4\" font-size=\"8\">{}</tspan>", head, power);
}

/// Data to picture along one axis.
/// Values outside of the axis are drawn at its end: a point is never lost.
class Mapping {
 public:
  Mapping(const Axis& axis, double data_low, double data_high, double from, double to)
      : scale_(axis.scale), from_(from), to_(to) {
    // Linear axes start at zero unless the data go below it: bars and areas must not exaggerate.
    low_ = axis.low.value_or(scale_ == Scale::Linear ? std::min(0.0, data_low) : data_low);
    high_ = axis.high.value_or(data_high);
    if (scale_ == Scale::Log) {
      if (!(high_ > 0)) high_ = 1;
      if (!(low_ > 0) || low_ < high_ * 1e-7)
        low_ = high_ * 1e-7;  // zero has no place on it: drawn at the edge
      // Whole decades, so that the first and the last tick carry a label.
      low_ = std::pow(10.0, std::floor(std::log10(low_) + 1e-9));
      high_ = std::pow(10.0, std::ceil(std::log10(high_) - 1e-9));
    }
    if (!(high_ > low_)) high_ = scale_ == Scale::Log ? low_ * 10 : low_ + 1;
  }
  [[nodiscard]] double at(double value) const {
    const double clamped = std::clamp(value, low_, high_);
    const double share = scale_ == Scale::Log ? std::log(clamped / low_) / std::log(high_ / low_)
                                              : (clamped - low_) / (high_ - low_);
    return from_ + share * (to_ - from_);
  }
  [[nodiscard]] std::vector<double> ticks() const {
    if (scale_ == Scale::Linear) return linear_ticks(low_, high_, 6);
    std::vector<double> marks;
    const double decades = std::log10(high_ / low_);
    const double step = std::max(1.0, std::ceil(decades / 8 - 1e-9));
    for (double power = 0; power <= decades + 1e-6; power += step)
      marks.push_back(low_ * std::pow(10.0, power));
    return marks;
  }

 private:
  Scale scale_;
  double low_ = 0, high_ = 1;
  double from_, to_;
};

// Writes elements one after the other; no tree is kept.
class Svg {
 public:
  Svg(double height, std::string_view title) {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" role=\"img\" "
        "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" font-size=\"11\" "
        "fill=\"#222\">\n"
        "<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
        kWidth, height, xml_text(title));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width = 1) {
    out_ += fmt::format(
        "<path d=\"M{:.2f} {:.2f}L{:.2f} {:.2f}\" stroke=\"{}\" stroke-width=\"{}\" "
        "fill=\"none\"/>\n",
        x1, y1, x2, y2, stroke, width);
  }
  void path(std::string_view d, std::string_view stroke, std::string_view dashes) {
    out_ += fmt::format(
        "<path d=\"{}\" stroke=\"{}\" stroke-width=\"1.6\" stroke-linejoin=\"round\" "
        "fill=\"none\"{}/>\n",
        d, stroke,
        dashes.empty() ? std::string{} : fmt::format(" stroke-dasharray=\"{}\"", dashes));
  }
  void rectangle(double x, double y, double width, double height, std::string_view fill) {
    out_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", x, y,
        width, height, fill);
  }
  void text(double x, double y, std::string_view content,
            std::string_view more = "text-anchor=\"middle\"") {
    markup(x, y, xml_text(content), more);
  }
  void markup(double x, double y, std::string_view content,
              std::string_view more = "text-anchor=\"middle\"") {
    out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" {}>{}</text>\n", x, y, more, content);
  }
  [[nodiscard]] std::string finish() && { return std::move(out_) + "</svg>\n"; }

 private:
  std::string out_;
};

constexpr double kBottom = kTop + kPlotHeight;

void draw_y_axis(Svg& svg, const Mapping& y, std::string_view title) {
  for (const double tick : y.ticks()) {
    svg.line(kLeft, y.at(tick), kWidth - kRight, y.at(tick), "#e3e3e3");
    svg.markup(kLeft - 6, y.at(tick) + 4, tick_text(tick), "text-anchor=\"end\"");
  }
  const double middle = kTop + kPlotHeight / 2;
  svg.text(14, middle, title,
           fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 14 {:.2f})\"", middle));
}

void draw_frame(Svg& svg, std::string_view x_title, double title_y) {
  svg.line(kLeft, kBottom, kWidth - kRight, kBottom, "#222");
  svg.line(kLeft, kTop, kLeft, kBottom, "#222");
  svg.text((kLeft + kWidth - kRight) / 2, title_y, x_title);
}

/// Entries in rows of as many as fit; answers nothing, draws from `top` down.
class Legend {
 public:
  explicit Legend(std::vector<std::string> labels) : labels_(std::move(labels)) {
    std::size_t longest = 0;
    for (const std::string& label : labels_) longest = std::max(longest, label.size());
    width_ = 40 + 6.2 * static_cast<double>(std::min<std::size_t>(longest, 40));
    per_row_ =
        std::max<std::size_t>(1, static_cast<std::size_t>((kWidth - kLeft - kRight) / width_));
  }
  [[nodiscard]] double height() const {
    if (labels_.size() < 2) return 0;
    return kLegendRow * static_cast<double>((labels_.size() + per_row_ - 1) / per_row_) + 6;
  }
  template <class Mark>
  void draw(Svg& svg, double top, Mark mark) const {
    if (labels_.size() < 2) return;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const double x = kLeft + width_ * static_cast<double>(i % per_row_);
      const double y = top + kLegendRow * (0.5 + static_cast<double>(i / per_row_));
      mark(i, x, y);
      svg.text(x + 28, y + 4, labels_[i], "text-anchor=\"start\"");
    }
  }

 private:
  std::vector<std::string> labels_;
  double width_ = 0;
  std::size_t per_row_ = 1;
};

template <class Series>
std::vector<std::string> labels_of(const std::vector<Series>& series) {
  std::vector<std::string> labels;
  for (const Series& one : series) labels.push_back(one.label);
  return labels;
}

std::string path_of(const Line& line, const Mapping& x, const Mapping& y, bool steps) {
  std::string d;
  double last_y = 0;
  for (std::size_t i = 0; i < line.points.size(); ++i) {
    const double px = x.at(line.points[i].first);
    const double py = y.at(line.points[i].second);
    if (i == 0)
      d += fmt::format("M{:.2f} {:.2f}", px, py);
    else if (!steps)
      d += fmt::format("L{:.2f} {:.2f}", px, py);
    // Less than the two decimals we write: the vertical line would have no length.
    else if (std::abs(py - last_y) < 0.005)
      d += fmt::format("H{:.2f}", px);
    else
      d += fmt::format("H{:.2f}V{:.2f}", px, py);
    last_y = py;
  }
  return d;
}

// Smallest and largest value seen; `any` tells "nothing yet" from zero.
struct Extent {
  double low = 0, high = 0;
  bool any = false;
  void add(double value) {
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
};

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (byte < 0x20 && c != '\t' && c != '\n' && c != '\r')
      out += "\xEF\xBF\xBD";
    else
      out += c;
  }
  return out;
}

std::vector<double> linear_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  const double span = high - low;
  if (!(span > 0) || !std::isfinite(span)) return {low};
  const double rough = span / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  // The smallest round step that gives at most `count` ticks.
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  for (double index = std::ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1)
    ticks.push_back(index * step);
  return ticks;
}

std::string to_svg(const LineChart& chart) {
  Extent xs, ys;
  for (const Line& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      // Zero would stretch a logarithmic axis without end; Mapping draws it at the edge.
      if (chart.x.scale == Scale::Linear || x > 0) xs.add(x);
      ys.add(y);
    }
  }
  const Mapping x{chart.x, xs.low, xs.high, kLeft, kWidth - kRight};
  const Mapping y{chart.y, ys.low, ys.high * 1.04, kBottom, kTop};
  const Legend legend{labels_of(chart.lines)};
  Svg svg{kBottom + 42 + legend.height(), chart.title};
  draw_y_axis(svg, y, chart.y.title);
  for (const double tick : x.ticks()) {
    svg.line(x.at(tick), kBottom, x.at(tick), kBottom + 4, "#222");
    svg.markup(x.at(tick), kBottom + 17, tick_text(tick));
  }
  draw_frame(svg, chart.x.title, kBottom + 34);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    if (!chart.lines[i].points.empty())
      svg.path(path_of(chart.lines[i], x, y, chart.steps), colour(i), dash(i));
  }
  legend.draw(svg, kBottom + 42, [&](std::size_t i, double lx, double ly) {
    svg.path(fmt::format("M{:.2f} {:.2f}H{:.2f}", lx, ly, lx + 24), colour(i), dash(i));
  });
  return std::move(svg).finish();
}

std::string to_svg(const BarChart& chart) {
  Extent values;
  for (const BarSeries& series : chart.series) {
    for (const Bar& bar : series.bars) {
      if (bar.value) values.add(*bar.value);
      if (bar.whisker) values.add(bar.whisker->second);
    }
  }
  const Mapping y{{.title = {}}, 0, values.high * 1.06, kBottom, kTop};
  std::size_t longest = 0;
  for (const std::string& category : chart.categories) longest = std::max(longest, category.size());
  const double slot =
      (kWidth - kLeft - kRight) / std::max(1.0, static_cast<double>(chart.categories.size()));
  // Names that do not fit their slot are turned, and the picture grows to hold them.
  const bool slanted = static_cast<double>(longest) * 6.2 > slot;
  const double names_height =
      slanted ? 14 + 4.6 * static_cast<double>(std::min<std::size_t>(longest, 30)) : 20;
  const Legend legend{labels_of(chart.series)};
  Svg svg{kBottom + names_height + 22 + legend.height(), chart.title};
  draw_y_axis(svg, y, chart.y_title);
  const double group = slot * 0.8;
  const double width = group / std::max(1.0, static_cast<double>(chart.series.size()));
  for (std::size_t c = 0; c < chart.categories.size(); ++c) {
    const double left = kLeft + slot * static_cast<double>(c) + slot * 0.1;
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      if (c >= chart.series[s].bars.size()) continue;
      const Bar& bar = chart.series[s].bars[c];
      if (!bar.value) continue;
      const double x = left + width * static_cast<double>(s);
      svg.rectangle(x, y.at(*bar.value), width * 0.92, kBottom - y.at(*bar.value), colour(s));
      if (!bar.whisker) continue;
      const double middle = x + width * 0.46;
      const double arm = std::min(5.0, width * 0.3);
      svg.line(middle, y.at(bar.whisker->first), middle, y.at(bar.whisker->second), "#222", 1.2);
      for (const double end : {bar.whisker->first, bar.whisker->second})
        svg.line(middle - arm, y.at(end), middle + arm, y.at(end), "#222", 1.2);
    }
    const double middle = left + group / 2;
    if (slanted)
      svg.text(middle, kBottom + 13, chart.categories[c],
               fmt::format("text-anchor=\"end\" transform=\"rotate(-40 {:.2f} {:.2f})\"", middle,
                           kBottom + 13));
    else
      svg.text(middle, kBottom + 16, chart.categories[c]);
  }
  draw_frame(svg, chart.x_title, kBottom + names_height + 14);
  legend.draw(svg, kBottom + names_height + 22, [&](std::size_t i, double lx, double ly) {
    svg.rectangle(lx + 6, ly - 5, 14, 10, colour(i));
  });
  return std::move(svg).finish();
}

}  // namespace berth
