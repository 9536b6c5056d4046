#include "perf/predict/past.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace berth {

namespace {

struct Moment {
  Time at;
  bool is_submit = false;  // ends come first, as in a run
  std::uint32_t job = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

class Informed final : public Estimator {
 public:
  Informed(std::unique_ptr<Estimator> estimator, std::shared_ptr<const Past> past)
      : estimator_(std::move(estimator)), past_(std::move(past)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return estimator_->name(); }
  [[nodiscard]] bool learns() const noexcept override { return estimator_->learns(); }
  void begin(const Trace& trace) override {
    estimator_->begin(trace);
    past_->teach(*estimator_);
  }
  void see(const TraceJob& job) override { estimator_->see(job); }
  [[nodiscard]] Duration estimate(const TraceJob& job) override {
    return estimator_->estimate(job);
  }
  void learn(const TraceJob& job, Duration work) override { estimator_->learn(job, work); }

 private:
  std::unique_ptr<Estimator> estimator_;
  std::shared_ptr<const Past> past_;
};

}  // namespace

// Names are interned again, because ids of two traces have nothing in common.
Past::Past(const Trace& history, Trace& run, Clocks clocks) {
  const Duration shift = seconds_to_duration(history.zero_seconds - run.zero_seconds);
  const Time begins = run.jobs.empty() ? kTimeZero : run.jobs.front().submit;
  std::vector<NameId> named(history.names.size());
  for (std::uint32_t i = 0; i < named.size(); ++i)
    named[i] = run.names.intern(history.text(NameId{i}));
  for (TraceJob job : history.jobs) {
    job.submit += shift;
    if (clocks == Clocks::Same && job.submit + job.duration > begins) {
      ++left_out_;
      continue;
    }
    for (NameId* name : {&job.id, &job.user, &job.group, &job.queue, &job.name, &job.model,
                         &job.study, &job.gpu_type})
      *name = named[name->value];
    jobs_.push_back(job);
  }
}

// In the order of time, as a run would have done: an estimator must not learn from the future.
void Past::teach(Estimator& estimator) const {
  std::vector<Moment> moments;
  moments.reserve(2 * jobs_.size());
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    moments.push_back({jobs_[i].submit, true, i});
    // A job of no length ends after its submit all the same.
    moments.push_back({jobs_[i].submit + std::max(Duration{1}, jobs_[i].duration), false, i});
  }
  std::ranges::sort(moments);
  for (const Moment& moment : moments) {
    const TraceJob& job = jobs_[moment.job];
    if (moment.is_submit)
      estimator.see(job);
    else
      estimator.learn(job, job.duration);
  }
}

std::unique_ptr<Estimator> with_past(std::unique_ptr<Estimator> estimator,
                                     std::shared_ptr<const Past> past) {
  return std::make_unique<Informed>(std::move(estimator), std::move(past));
}

}  // namespace berth
