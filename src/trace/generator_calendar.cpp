// Where bursts lie in time. Hours of the day have fixed shares of the jobs; days and hours swing at
// random around them. Placing by shares, not by chance, keeps the daily profile even in short
// traces.

#include "trace/generator_calendar.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/portable_math.h"

namespace berth {

namespace {

constexpr double kDaySeconds = 86'400;
constexpr double kHourSeconds = 3'600;

// Scales a daily or weekly profile: 0 is flat, 1 as the source has it.
double swing(double factor, double amplitude) {
  return std::max(0.0, 1 + amplitude * (factor - 1));
}

std::size_t run_bin(std::size_t length) {
  const auto above = std::ranges::upper_bound(kRunBins, static_cast<int>(length));
  return static_cast<std::size_t>(above - kRunBins.begin()) - 1;
}

// Runs of similar length together, in random order.
std::vector<std::vector<std::size_t>> shuffled_groups(std::span<const DraftRun> runs, Rng& rng) {
  std::vector<std::vector<std::size_t>> groups(kRunBins.size());
  for (std::size_t i = 0; i < runs.size(); ++i) groups[run_bin(runs[i].length)].push_back(i);
  for (auto& group : groups) {
    for (std::size_t i = group.size(); i > 1; --i) std::swap(group[i - 1], group[rng.below(i)]);
  }
  return groups;
}

// A run lies around its instant and may reach into the hours beside it.
void take_jobs(std::array<double, 24>& wanted, double instant, const DraftRun& run) {
  constexpr int kParts = 8;
  for (int part = 0; part < kParts; ++part) {
    const double offset = (static_cast<double>(part) + 0.5) / kParts - 0.5;
    const double hours = std::max(0.0, instant + offset * run.seconds) / kHourSeconds;
    wanted[static_cast<std::size_t>(hours) % 24] -= static_cast<double>(run.length) / kParts;
  }
}

}  // namespace

Calendar::Calendar(const SourceTable& source, double amplitude, double span_seconds, Rng rng) {
  const double days = std::max(1.0, std::ceil(span_seconds / kDaySeconds));
  last_day_seconds_ = std::clamp(span_seconds - (days - 1) * kDaySeconds, 0.0, kDaySeconds);
  const double day_sigma = source.day_sigma * amplitude;
  const double hour_sigma = source.hour_sigma * amplitude;
  constexpr double kMemory = 0.7;  // of one hour in the next
  const double news = std::sqrt(1 - kMemory * kMemory);
  double gust = rng.normal();
  for (std::size_t day = 0; day < static_cast<std::size_t>(days); ++day) {
    const double day_log = day_sigma * rng.normal();
    const bool is_last = day + 1 == static_cast<std::size_t>(days);
    for (std::size_t hour = 0; hour < 24; ++hour) {
      // An autoregressive process of variance 1: busy hours follow busy hours.
      gust = kMemory * gust + news * rng.normal();
      const double weight = std::max(1e-6, swing(source.days[day % 7], amplitude)) *
                            portable_exp(day_log + hour_sigma * gust);
      std::vector<double>& sums = day_sums_[hour];
      sums.push_back((sums.empty() ? 0 : sums.back()) + weight * (is_last ? covered(hour) : 1));
    }
  }
  // An hour of day keeps its share of jobs whatever the swings, unless the span leaves hours out.
  double sum = 0;
  for (std::size_t hour = 0; hour < 24; ++hour) {
    hour_shares_[hour] =
        std::max(1e-6, swing(source.hours[hour], amplitude)) * (days - 1 + covered(hour));
    sum += hour_shares_[hour];
  }
  for (double& share : hour_shares_) share /= sum;
}

// The last day may end before midnight: hours beyond it get no jobs.
double Calendar::covered(std::size_t hour) const noexcept {
  return std::clamp(last_day_seconds_ / kHourSeconds - static_cast<double>(hour), 0.0, 1.0);
}

std::vector<double> Calendar::place(std::span<const DraftRun> runs, Rng rng) const {
  double jobs = 0;
  for (const DraftRun& run : runs) jobs += static_cast<double>(run.length);
  HourShares wanted = hour_shares_;
  for (double& share : wanted) share *= jobs;
  std::vector<double> instants(runs.size());
  auto groups = shuffled_groups(runs, rng);
  std::ranges::reverse(
      groups);  // the long runs first: the short ones even out what they left uneven
  for (const auto& group : groups) place_group(group, runs, wanted, {instants, rng});
  return instants;
}

void Calendar::place_group(std::span<const std::size_t> group, std::span<const DraftRun> runs,
                           HourShares& wanted, Placing placing) const {
  double total = 0;
  for (const std::size_t run : group) total += static_cast<double>(runs[run].length);
  std::array<double, 25> sums{};
  for (std::size_t hour = 0; hour < 24; ++hour)
    // An hour that long bursts have already filled wants nothing more, however negative it is.
    sums[hour + 1] = sums[hour] + std::max(0.0, wanted[hour]);
  const double rotation = placing.rng.uniform();
  double before = 0;
  for (const std::size_t run : group) {
    const auto length = static_cast<double>(runs[run].length);
    const double level = rotation + (before + placing.rng.uniform() * length) / total;
    const double target = (level - std::floor(level)) * sums.back();
    const auto above = std::upper_bound(sums.begin(), sums.end(), target) - sums.begin() - 1;
    const auto hour = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(above, 0, 23));
    placing.instants[run] = instant_in(hour, placing.rng);
    take_jobs(wanted, placing.instants[run], runs[run]);
    before += length;
  }
}

// A day by its weight, then any moment of that hour.
double Calendar::instant_in(std::size_t hour, Rng& rng) const {
  const std::vector<double>& sums = day_sums_[hour];
  const auto found = std::upper_bound(sums.begin(), sums.end(), rng.uniform() * sums.back());
  const auto day = std::min(static_cast<std::size_t>(found - sums.begin()), sums.size() - 1);
  const double part = day + 1 == sums.size() ? covered(hour) : 1;
  return static_cast<double>(day) * kDaySeconds +
         (static_cast<double>(hour) + rng.uniform() * part) * kHourSeconds;
}

}  // namespace berth
