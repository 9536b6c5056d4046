// What is believed of run times. Estimates are never below one tick: policies divide by them, and a
// job of no length would be ordered by chance.

#include "perf/estimator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include <fmt/format.h>

#include "base/rng.h"
#include "base/suggest.h"
#include "perf/predict/helios.h"
#include "perf/predict/recurrence.h"

namespace berth {

namespace {

constexpr Duration kTick{1};
constexpr Duration kUnknown = std::chrono::hours{1};  // a believable guess where nothing is known

class Oracle final : public Estimator {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "oracle"; }
  [[nodiscard]] Duration estimate(const TraceJob& job) override {
    return std::max(kTick, job.duration);
  }
};

class NoisyOracle final : public Estimator {
 public:
  NoisyOracle(double sigma, std::uint64_t seed) : sigma_(sigma), seed_(seed) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "oracle with error"; }
  [[nodiscard]] Duration estimate(const TraceJob& job) override {
    // The error belongs to the job, not to the moment of asking: every policy sees the same one.
    Rng rng = Rng{seed_ ^ (0x9e3779b97f4a7c15ULL * (job.id.value + 1))}.fork("estimate");
    const double factor = rng.lognormal(0, sigma_);
    const double seconds = std::min(to_seconds(job.duration) * factor, kMaxInputSeconds);
    return std::max(kTick, seconds_to_duration_up(seconds));
  }

 private:
  double sigma_;
  std::uint64_t seed_;
};

class UserLimit final : public Estimator {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "limit"; }
  [[nodiscard]] Duration estimate(const TraceJob& job) override {
    return job.estimate > Duration::zero() ? job.estimate : kUnknown;
  }
};

/// Mean of the last few run times of the same user and job name; of the same user; of everybody.
/// Eight runs: enough to average out noise, few enough to follow a change.
class History final : public Estimator {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "history"; }
  [[nodiscard]] bool learns() const noexcept override { return true; }
  [[nodiscard]] Duration estimate(const TraceJob& job) override {
    for (const std::uint64_t key : {exact_key(job), user_key(job), kEverybody}) {
      const auto found = past_.find(key);
      if (found != past_.end()) return std::max(kTick, found->second.mean());
    }
    return job.estimate > Duration::zero() ? job.estimate : kUnknown;
  }
  void learn(const TraceJob& job, Duration work) override {
    for (const std::uint64_t key : {exact_key(job), user_key(job), kEverybody})
      past_[key].add(work);
  }

 private:
  static constexpr std::uint64_t kEverybody = ~std::uint64_t{0};
  struct Recent {  // a ring of the last eight
    std::array<std::int64_t, 8> ring{};
    std::uint32_t count = 0;
    void add(Duration work) { ring[count++ % ring.size()] = work.count(); }
    [[nodiscard]] Duration mean() const {
      const auto used = std::min<std::size_t>(count, ring.size());
      std::int64_t sum = 0;
      // Divided before summing: eight times the longest duration would overflow.
      for (std::size_t i = 0; i < used; ++i) sum += ring[i] / static_cast<std::int64_t>(used);
      return Duration{sum};
    }
  };
  static std::uint64_t exact_key(const TraceJob& job) noexcept {
    return (std::uint64_t{job.user.value} << 32U) | (job.name.value + 1);
  }
  static std::uint64_t user_key(const TraceJob& job) noexcept {
    return std::uint64_t{job.user.value} << 32U;
  }

  std::unordered_map<std::uint64_t, Recent> past_;  // lookup only, never iterated
};

/// What follows the colon, split at commas; nothing without a colon.
std::vector<std::string_view> options_of(std::string_view text) {
  std::vector<std::string_view> options;
  for (std::size_t at = text.find(':'); at != std::string_view::npos;) {
    const std::size_t next = text.find(',', at + 1);
    options.push_back(text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1));
    at = next;
  }
  return options;
}

Result<std::unique_ptr<Estimator>> make_recurrence(std::string_view text) {
  constexpr std::array<std::string_view, 3> kKeys{"user", "group", "group-gpu"};
  RecurrenceRule rule;
  for (const std::string_view option : options_of(text)) {
    const auto key = std::ranges::find(kKeys, option);
    if (key != kKeys.end()) {
      rule.key = static_cast<RecurrenceKey>(key - kKeys.begin());
    } else if (option == "stable") {
      rule.least = RecurrenceRule::kStable;
    } else if (option == "moving") {
      rule.newest = RecurrenceRule::kMoving;
    } else {
      return fail(fmt::format(
          "--estimator: '{}' in '{}' must be user, group or group-gpu, or stable, or moving",
          option, text));
    }
  }
  return std::make_unique<RecurrenceEstimator>(rule);
}

// Options are a share or a word, in any order.
Result<std::unique_ptr<Estimator>> make_helios(std::string_view text) {
  HeliosRule rule;
  for (const std::string_view option : options_of(text)) {
    if (option == "names-across-users") {
      rule.rolling.names_across_users = true;
      continue;
    }
    const char* const last = option.data() + option.size();
    const auto [end, code] = std::from_chars(option.data(), last, rule.rolling_share);
    if (code != std::errc{} || end != last ||
        !(rule.rolling_share >= 0 && rule.rolling_share <= 1)) {
      return fail(
          fmt::format("--estimator: '{}' in '{}' must be a share from 0 to 1, or "
                      "names-across-users",
                      option, text));
    }
  }
  return std::make_unique<HeliosEstimator>(rule);
}

}  // namespace

std::vector<EstimatorInfo> estimators() {
  return {
      {"oracle", "the true run time"},
      {"oracle:S",
       "the truth times a log-normal factor of deviation S (0.5: mostly within a factor of 1.65)"},
      {"limit", "the user's time limit (column `estimate`), one hour where none is given"},
      {"history",
       "mean of the last eight runs of the same user and name, else user, else everybody"},
      {"pai[:user|group|group-gpu][,stable][,moving]",
       "mean of earlier runs of the same user, name and GPUs, else wider; as in the PAI study. "
       "stable: believe three runs, not one; moving: the newest counts half"},
      {"qssf[:SHARE][,names-across-users]",
       "rolling mean of the user's similar jobs (weight SHARE, 0.1) and boosted trees; as in "
       "Helios"}};
}

Result<std::unique_ptr<Estimator>> make_estimator(std::string_view text, std::uint64_t seed) {
  if (text == "oracle") return std::make_unique<Oracle>();
  if (text == "limit") return std::make_unique<UserLimit>();
  if (text == "history") return std::make_unique<History>();
  if (text.substr(0, text.find(':')) == "pai") return make_recurrence(text);
  if (text.substr(0, text.find(':')) == "qssf") return make_helios(text);
  if (text.starts_with("oracle:")) {
    const std::string_view number = text.substr(7);
    double sigma = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), sigma);
    if (code == std::errc{} && end == number.data() + number.size() && sigma >= 0 && sigma <= 10) {
      return std::make_unique<NoisyOracle>(sigma, seed);
    }
    return fail(
        fmt::format("--estimator: the deviation in '{}' must be a number from 0 to 10", text));
  }
  const std::array<std::string, 5> known{"oracle", "limit", "history", "pai", "qssf"};
  return fail(
      fmt::format("--estimator: no estimator is called '{}'{}", text, suggestion(text, known)));
}

}  // namespace berth
