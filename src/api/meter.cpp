#include "api/meter.h"

#include <fmt/format.h>

namespace berth::api {

Meter::Meter() : seconds_({0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5}) {}

void Meter::count(std::string_view route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++answers_[{route, status}];
  seconds_.observe(seconds);
}

void Meter::refused(std::string_view cause) {
  const std::lock_guard lock(mutex_);
  ++refused_[cause];
}

void Meter::cut(std::string_view cause) {
  const std::lock_guard lock(mutex_);
  ++cut_[cause];
}

void Meter::write(PrometheusText& text) const {
  const std::lock_guard lock(mutex_);
  using Metric = PrometheusText::Kind;
  text.family(Metric::Counter, "berth_api_answers_total", "Answers by route and status.");
  for (const auto& [key, count] : answers_) {
    const std::string status = fmt::format("{}", key.second);
    text.sample(static_cast<double>(count), {{"route", key.first}, {"status", status}});
  }
  text.family(Metric::Histogram, "berth_api_answer_seconds",
              "From a request's head to its answer.");
  seconds_.write(text);
  text.gauge("berth_api_connections", "Open connections.", static_cast<double>(connections));
  text.gauge("berth_api_streams", "Readers of events and growing output.",
             static_cast<double>(streams));
  const auto by_cause = [&](const char* name, const char* help, const auto& counts) {
    text.family(Metric::Counter, name, help);
    for (const auto& [cause, count] : counts)
      text.sample(static_cast<double>(count), {{"cause", cause}});
  };
  by_cause("berth_api_refused_connections_total", "Connections beyond a limit, by which.",
           refused_);
  by_cause("berth_api_cut_connections_total", "Connections closed for a new one, by whose limit.",
           cut_);
}

}  // namespace berth::api
