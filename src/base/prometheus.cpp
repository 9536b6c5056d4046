// Text format 0.0.4: a family is announced once with HELP and TYPE, then its samples follow. The
// checks catch misuse by our own code; label values come from users and are escaped.

#include "base/prometheus.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/check.h"
#include "base/split.h"
#include "base/terminal_text.h"

namespace berth {

namespace {

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

enum class Escape : std::uint8_t { Help, Label };  // a help text may hold quotes

void append_escaped(std::string& out, std::string_view text, Escape escape) {
  std::string_view before;
  for (const std::string_view line : split(text, '\n')) {
    out += before;
    before = "\\n";
    for (const char c : escaped(line)) {  // people look at it in a terminal
      if (c == '\\' || (c == '"' && escape == Escape::Label)) out += '\\';
      out += c;
    }
  }
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

PrometheusText& PrometheusText::family(Kind kind, std::string_view name, std::string_view help) {
  BERTH_CHECK(is_name(name), "Prometheus: letters, digits and underscores make a name");
  BERTH_CHECK(kind != Kind::Counter || name.ends_with("_total"),
              "Prometheus: the name of a counter ends in _total");
  constexpr std::string_view kKinds[] = {"counter", "gauge", "histogram"};
  name_ = name;
  kind_ = kind;
  fmt::format_to(std::back_inserter(out_), "# HELP {} ", name);
  append_escaped(out_, help, Escape::Help);
  fmt::format_to(std::back_inserter(out_), "\n# TYPE {} {}\n", name,
                 kKinds[static_cast<std::size_t>(kind)]);
  return *this;
}

PrometheusText& PrometheusText::sample(double value, Labels labels) {
  BERTH_CHECK(!name_.empty() && kind_ != Kind::Histogram, "Prometheus: a sample has its family");
  line("", labels, "", value);
  return *this;
}

PrometheusText& PrometheusText::counter(std::string_view name, std::string_view help,
                                        double value) {
  return family(Kind::Counter, name, help).sample(value);
}

PrometheusText& PrometheusText::gauge(std::string_view name, std::string_view help, double value) {
  return family(Kind::Gauge, name, help).sample(value);
}

PrometheusText& PrometheusText::histogram(std::span<const double> bounds,
                                          std::span<const std::uint64_t> counts, double sum,
                                          Labels labels) {
  BERTH_CHECK(kind_ == Kind::Histogram && counts.size() == bounds.size() + 1,
              "Prometheus: a histogram has one count more than bounds");
  std::uint64_t so_far = 0;  // buckets are cumulative
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    so_far += counts[i];
    line("_bucket", labels, number(bounds[i]), static_cast<double>(so_far));
  }
  so_far += counts.back();
  line("_bucket", labels, "+Inf", static_cast<double>(so_far));
  line("_sum", labels, "", sum);
  line("_count", labels, "", static_cast<double>(so_far));
  return *this;
}

void PrometheusText::line(std::string_view suffix, Labels labels, std::string_view le,
                          double value) {
  out_ += name_;
  out_ += suffix;
  char before = '{';
  const auto add = [&](std::string_view name, std::string_view text) {
    BERTH_CHECK(is_name(name), "Prometheus: letters, digits and underscores make a name");
    out_ += before;
    out_ += name;
    out_ += "=\"";
    append_escaped(out_, text, Escape::Label);
    out_ += '"';
    before = ',';
  };
  for (const Label& label : labels) add(label.name, label.value);
  if (!le.empty()) add("le", le);
  if (before == ',') out_ += '}';
  out_ += ' ';
  out_ += number(value);
  out_ += '\n';
}

PrometheusHistogram::PrometheusHistogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  BERTH_CHECK(std::ranges::is_sorted(bounds_), "Prometheus: bounds ascend");
}

void PrometheusHistogram::observe(double value) noexcept {
  // A value equal to a bound belongs to its bucket: "le" means less or equal.
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += value;
}

void PrometheusHistogram::write(PrometheusText& text, PrometheusText::Labels labels) const {
  text.histogram(bounds_, counts_, sum_, labels);
}

}  // namespace berth
