// What jobs of a simulated host report if their code counts iterations and tells the truth: each
// goes at a speed of its own, which nobody knows before it has run for a while under the same
// conditions. Nothing outlives the scheduler but the jobs themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "support/sim_host.h"
#include "training/training_channel.h"

namespace berth::test {

struct HonestOptions {
  double until_pace = 2;  // seconds under the same conditions
  double beside = 1;      // times as slow while anybody else runs: for worlds of one device
};

class HonestTraining final : public TrainingChannel {
 public:
  using Micros = SimHost::Micros;
  HonestTraining(const SimHost& host, std::uint64_t seed, HonestOptions options)
      : host_(host), seed_(seed), options_(options) {}

  /// A scheduler begins: everybody says again what they have to say.
  void begin_life() {
    heard_.clear();
    announced_until_ = -1;
  }
  /// The scheduler will hear of everything that there is to say now.
  void announce() { announced_until_ = host_.now(); }
  /// When somebody next has something to say.
  [[nodiscard]] std::optional<Micros> next() const {
    std::optional<Micros> next;
    for (const auto& [job, attempt] : host_.living()) {
      const auto due = due_of(job);
      if (due && *due > announced_until_ && !is_heard(job, *due))
        next = std::min(*due, next.value_or(*due));
    }
    return next;
  }

  [[nodiscard]] std::optional<TrainingReport> report(JobNumber) const override { return {}; }
  void losses(JobNumber, std::int64_t, std::vector<double>&) const override {}
  [[nodiscard]] bool has_saved(JobNumber) const override { return false; }
  void tell(JobNumber, const Terms&) override {}
  [[nodiscard]] std::optional<MeasuredProgress> progress(JobNumber job) const override {
    const auto due = due_of(job);
    if (!due) return std::nullopt;
    const double speed = speed_of(job);
    return MeasuredProgress{
        .iterations = speed * host_.seconds_worked(job),
        .per_second = host_.now() >= *due ? speed : 0,
        .first_seconds_ago = 1e-6 * static_cast<double>(host_.now() - *host_.runs_since(job)),
        .batch = 8};
  }
  void conditions_changed(JobNumber job) override {
    changed_[job] = host_.now();
    heard_.erase(job);
  }
  void take_progressed(std::vector<JobNumber>& jobs) override {
    for (const auto& [job, attempt] : host_.living()) {
      const auto due = due_of(job);
      if (!due || *due > host_.now() || is_heard(job, *due)) continue;
      heard_[job] = *due;
      jobs.push_back(job);
    }
  }

 private:
  [[nodiscard]] double speed_of(JobNumber job) const {
    const double alone =
        0.4 + 2 * Rng{seed_ + static_cast<std::uint64_t>(job)}.fork("speed").uniform();
    const bool has_company = std::ranges::any_of(host_.living(), [&](const auto& other) {
      return other.first != job && host_.runs_since(other.first);
    });
    return has_company ? alone / options_.beside : alone;
  }
  [[nodiscard]] bool is_heard(JobNumber job, Micros due) const {
    const auto found = heard_.find(job);
    return found != heard_.end() && found->second == due;
  }
  /// When its pace is known.
  [[nodiscard]] std::optional<Micros> due_of(JobNumber job) const {
    const auto since = host_.runs_since(job);
    if (!since) return std::nullopt;
    const auto changed = changed_.find(job);
    return std::max(*since, changed == changed_.end() ? 0 : changed->second) +
           static_cast<Micros>(options_.until_pace * 1e6);
  }

  const SimHost& host_;
  std::uint64_t seed_;
  HonestOptions options_;
  std::map<JobNumber, Micros> changed_, heard_;
  Micros announced_until_ = -1;
};

}  // namespace berth::test
