// What is believed about how long a job will run. An estimator is asked when a job arrives and
// learns from jobs that are over; it never sees the future of the run. `oracle` knows the truth,
// `oracle:S` errs by a log-normal factor of deviation S, `limit` believes the user's time limit;
// `history`, `pai` and `qssf` predict from jobs that are over. Estimation error is thereby a knob
// of every run.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/trace.h"

namespace berth {

class Estimator {
 public:
  virtual ~Estimator() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Once, before it is asked: the trace whose jobs it will see. It outlives the run.
  virtual void begin(const Trace&) {}
  /// Whether what is over changes what it believes.
  [[nodiscard]] virtual bool learns() const noexcept { return false; }
  /// A job of the time before the run was submitted; learn() tells of its end.
  virtual void see(const TraceJob&) {}
  /// Believed run time at the reference placement; at least one tick.
  [[nodiscard]] virtual Duration estimate(const TraceJob& job) = 0;
  /// A job is over after `work` reference seconds.
  virtual void learn(const TraceJob&, Duration /*work*/) {}
};

struct EstimatorInfo {
  std::string form;
  std::string summary;
};
[[nodiscard]] std::vector<EstimatorInfo> estimators();
/// From the text after --estimator, e.g. "oracle", "oracle:0.5", "limit", "history".
[[nodiscard]] Result<std::unique_ptr<Estimator>> make_estimator(std::string_view text,
                                                                std::uint64_t seed);

}  // namespace berth
