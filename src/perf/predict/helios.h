// Run times as Helios predicts them (`--estimator qssf`): a rolling mean over the user's similar
// jobs, mixed with boosted trees over who asks for what and when. The trees are trained anew every
// week of the run, on jobs that were over by then.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "perf/estimator.h"
#include "perf/predict/rolling_mean.h"
#include "solve/gbdt.h"

namespace berth {

struct HeliosRule {
  double rolling_share = 0.1;  // lambda: the rest is the trees'
  RollingRule rolling{};
  Duration retrain = std::chrono::hours{7 * 24};
  std::size_t least_rows = 500;    // before that the rolling mean alone
  std::size_t most_rows = 20'000;  // the newest
  GbdtOptions trees{};
};

/// lambda * rolling + (1 - lambda) * trees; the rolling mean alone where the trees have no answer.
[[nodiscard]] double mixed_prediction(double rolling, double trees, double rolling_share) noexcept;

class HeliosEstimator final : public Estimator {
 public:
  explicit HeliosEstimator(const HeliosRule& rule = {}) : rule_(rule) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "qssf"; }
  [[nodiscard]] bool learns() const noexcept override { return true; }
  void begin(const Trace& trace) override;
  void see(const TraceJob& job) override { pending_[job.id] = features(job); }
  [[nodiscard]] Duration estimate(const TraceJob& job) override;
  void learn(const TraceJob& job, Duration work) override;

 private:
  static constexpr std::size_t kFeatures = 12;
  static constexpr std::size_t kLeaders = 200;  // name groups that are told apart
  using Row = std::array<double, kFeatures>;
  struct LogMean {
    double sum = 0;
    std::int64_t count = 0;
  };
  struct UserPast {
    std::array<double, 3> last{};                       // log run times, newest first
    std::unordered_map<std::int32_t, LogMean> by_gpus;  // lookup only
    LogMean all;
  };
  [[nodiscard]] Row features(const TraceJob& job);
  [[nodiscard]] std::size_t name_group(NameId name);
  void train();

  HeliosRule rule_;
  const Trace* trace_ = nullptr;
  std::optional<RollingMean> rolling_;
  std::optional<SimilarNames> similar_;
  std::unordered_map<NameId, UserPast> users_;        // lookup only
  std::unordered_map<NameId, LogMean> queues_;        // lookup only
  std::unordered_map<NameId, std::size_t> group_of_;  // lookup only
  std::vector<NameId> leaders_;
  LogMean everything_;
  std::unordered_map<NameId, Row> pending_;  // by job, from its arrival to its end; lookup only
  std::deque<std::pair<Row, double>> rows_;  // with the log run time
  std::optional<Gbdt> model_;
  Time trained_at_{};
};

}  // namespace berth
