// The predictor of Helios: a rolling mean of the user's similar jobs, mixed with boosted trees on
// log run times. Features are taken when a job is seen and kept until it ends, because by then the
// means have moved on.

#include "perf/predict/helios.h"

#include <algorithm>

#include "base/portable_math.h"

namespace berth {

namespace {

constexpr double kPrior = 3600;  // seconds, where nothing is known
constexpr double kDay = 86'400;

double log_of(double seconds) { return portable_log(1 + std::max(0.0, seconds)); }
// Bounded: a wild extrapolation must not overflow.
double from_log(double value) { return portable_exp(std::min(value, 40.0)) - 1; }

}  // namespace

double mixed_prediction(double rolling, double trees, double rolling_share) noexcept {
  if (trees <= 0) return rolling;
  return rolling_share * rolling + (1 - rolling_share) * trees;
}

void HeliosEstimator::begin(const Trace& trace) {
  if (trace_ == &trace)
    return;  // a live scheduler has told it of the past before its engine begins
  trace_ = &trace;
  rolling_.emplace(trace.names, rule_.rolling);
  similar_.emplace(trace.names);
}

/// First come, first lead: a name joins the first group whose leader it resembles.
std::size_t HeliosEstimator::name_group(NameId name) {
  const auto [entry, is_new] = group_of_.try_emplace(name, leaders_.size());
  if (!is_new) return entry->second;
  const auto leader =
      std::ranges::find_if(leaders_, [&](NameId other) { return (*similar_)(other, name); });
  entry->second = static_cast<std::size_t>(leader - leaders_.begin());
  if (leader == leaders_.end() && leaders_.size() < kLeaders) leaders_.push_back(name);
  return entry->second;
}

HeliosEstimator::Row HeliosEstimator::features(const TraceJob& job) {
  const double unknown =
      everything_.count > 0 ? everything_.sum / static_cast<double>(everything_.count) : 0;
  const auto mean = [&](const LogMean& past) {
    return past.count > 0 ? past.sum / static_cast<double>(past.count) : unknown;
  };
  const UserPast& user = users_[job.user];
  const auto same_size = user.by_gpus.find(job.gpus);
  const double second = trace_->zero_seconds + to_seconds(job.submit.time_since_epoch());
  const double day = std::max(0.0, second / kDay);
  const auto whole_day = static_cast<std::int64_t>(day);
  return {
      mean(user.all),
      mean(queues_[job.queue]),
      static_cast<double>(name_group(job.name)),
      static_cast<double>(job.gpus),
      job.cpus_milli / 1000.0,
      static_cast<double>(static_cast<std::int64_t>((day - static_cast<double>(whole_day)) * 24)),
      static_cast<double>(whole_day % 7),
      static_cast<double>(whole_day % 30),
      user.last[0],
      user.last[1],
      user.last[2],
      same_size != user.by_gpus.end() ? mean(same_size->second) : mean(user.all)};
}

void HeliosEstimator::train() {
  std::vector<double> rows, targets;
  rows.reserve(rows_.size() * kFeatures);
  for (const auto& [row, target] : rows_) {
    rows.insert(rows.end(), row.begin(), row.end());
    targets.push_back(target);
  }
  model_ = Gbdt::fit(rows, kFeatures, targets, rule_.trees);
}

Duration HeliosEstimator::estimate(const TraceJob& job) {
  if (rows_.size() >= rule_.least_rows && (!model_ || job.submit - trained_at_ >= rule_.retrain)) {
    train();
    trained_at_ = job.submit;
  }
  const Row row = features(job);
  pending_[job.id] = row;
  const double rolling = rolling_->predict(job.user, job.name, job.gpus).value_or(kPrior);
  const double trees = model_ ? from_log(model_->predict(row)) : 0;
  const double seconds = mixed_prediction(rolling, trees, rule_.rolling_share);
  return std::max(Duration{1}, seconds_to_duration_up(std::min(seconds, kMaxInputSeconds)));
}

void HeliosEstimator::learn(const TraceJob& job, Duration work) {
  const double seconds = to_seconds(work);
  rolling_->add(job.user, job.name, job.gpus, seconds);
  const double value = log_of(seconds);
  const auto note = [&](LogMean& past) {
    past.sum += value;
    ++past.count;
  };
  UserPast& user = users_[job.user];
  note(user.all);
  note(user.by_gpus[job.gpus]);
  note(queues_[job.queue]);
  note(everything_);
  std::rotate(user.last.begin(), user.last.end() - 1, user.last.end());
  // The last three run times, newest first.
  user.last[0] = value;
  const auto pending = pending_.find(job.id);
  if (pending == pending_.end()) return;  // from before this run
  rows_.emplace_back(pending->second, value);
  pending_.erase(pending);
  if (rows_.size() > rule_.most_rows) rows_.pop_front();
}

}  // namespace berth
