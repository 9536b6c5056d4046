// Writes measurements in Prometheus' text form (version 0.0.4): one HELP and TYPE line per family,
// then its samples; names are checked, label values and help texts escaped. The caller names a
// family once and gives all of its samples before the next one, as the format demands.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

class PrometheusText {
 public:
  struct Label {
    std::string_view name;
    std::string_view value;
  };
  using Labels = std::initializer_list<Label>;
  enum class Kind : std::uint8_t { Counter, Gauge, Histogram };

  /// Begins a family. A counter's name ends in _total.
  PrometheusText& family(Kind kind, std::string_view name, std::string_view help);
  /// A sample of the family begun last, which is a counter or a gauge.
  PrometheusText& sample(double value, Labels labels = {});
  /// A family of one sample.
  PrometheusText& counter(std::string_view name, std::string_view help, double value);
  PrometheusText& gauge(std::string_view name, std::string_view help, double value);
  /// A sample of a histogram family: `counts[i]` observations were at most `bounds[i]` and above
  /// the bound before; the last count is of those above every bound. `sum` is of all values.
  PrometheusText& histogram(std::span<const double> bounds, std::span<const std::uint64_t> counts,
                            double sum, Labels labels = {});

  [[nodiscard]] const std::string& str() const noexcept { return out_; }

 private:
  void line(std::string_view suffix, Labels labels, std::string_view le, double value);

  std::string out_;
  std::string name_;
  Kind kind_ = Kind::Gauge;
};

/// What a histogram counts; the owner sees to it that one thread at a time observes.
class PrometheusHistogram {
 public:
  /// Bounds ascend.
  explicit PrometheusHistogram(std::vector<double> bounds);
  void observe(double value) noexcept;
  void write(PrometheusText& text, PrometheusText::Labels labels = {}) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace berth
