#include "metrics/timeline.h"

#include <algorithm>
#include <array>

namespace berth {

namespace {

constexpr std::array kFields{&Levels::queue, &Levels::queued_gpus, &Levels::running, &Levels::busy,
                             &Levels::capacity};

void add_scaled(Levels& sum, const Levels& levels, double factor) {
  for (const auto field : kFields) sum.*field += levels.*field * factor;
}

Levels scaled(const Levels& levels, double factor) {
  Levels result;
  add_scaled(result, levels, factor);
  return result;
}

/// Means over [a.at, until) from those of [a.at, b.at) and [b.at, until).
TimelinePoint merged(const TimelinePoint& a, const TimelinePoint& b, Time until) {
  Levels integral = scaled(a.levels, to_seconds(b.at - a.at));
  add_scaled(integral, b.levels, to_seconds(until - b.at));
  return {a.at, scaled(integral, 1.0 / to_seconds(until - a.at))};
}

/// Merges neighbours while they stay within `width`; the last interval ends at `end`. Any two
/// neighbours that remain are wider together, so at most 2 x span / width + 1 are left. A long
/// interval stays exact.
void merge_narrow(std::vector<TimelinePoint>& points, Time end, Duration width) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Time until = i + 1 < points.size() ? points[i + 1].at : end;
    if (until - points[kept].at <= width)
      points[kept] = merged(points[kept], points[i], until);
    else
      points[++kept] = points[i];
  }
  points.resize(std::min(points.size(), kept + 1));
}

Duration width_for(Duration span, std::size_t limit, double share) {
  return Duration{static_cast<std::int64_t>(share * static_cast<double>(span.count()) /
                                            static_cast<double>(limit)) +
                  1};
}

}  // namespace

void Timeline::add(Time now, const Levels& levels) {
  if (!started_) {
    started_ = true;
    since_ = stretch_from_ = now;
  }
  // Several calls at one instant: only the last levels count, nothing has passed in between.
  if (now > since_) {
    if (since_ > stretch_from_ && now - stretch_from_ > width_) close_stretch();
    add_scaled(stretch_integral_, current_, to_seconds(now - since_));
    since_ = now;
  }
  current_ = levels;
}

void Timeline::close_stretch() {
  kept_.push_back(
      {stretch_from_, scaled(stretch_integral_, 1.0 / to_seconds(since_ - stretch_from_))});
  stretch_from_ = since_;
  stretch_integral_ = {};
  if (kept_.size() < kMaxPoints) return;
  width_ =
      width_for(since_ - kept_.front().at, kMaxPoints, 2.5);  // leaves at most 4/5 of the points
  merge_narrow(kept_, since_, width_);
}

std::vector<TimelinePoint> Timeline::points() const {
  std::vector<TimelinePoint> points = kept_;
  if (!started_) return points;
  if (since_ > stretch_from_) {
    points.push_back(
        {stretch_from_, scaled(stretch_integral_, 1.0 / to_seconds(since_ - stretch_from_))});
  }
  points.push_back({since_, current_});
  return points;
}

std::vector<TimelinePoint> thinned(std::vector<TimelinePoint> points, std::size_t limit) {
  if (points.size() <= limit || limit < 4) return points;
  const TimelinePoint last = points.back();
  points.pop_back();
  merge_narrow(points, last.at, width_for(last.at - points.front().at, limit - 2, 2.0));
  points.push_back(last);
  return points;
}

}  // namespace berth
