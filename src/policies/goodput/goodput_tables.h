// What a job is believed to get done on every gang, each with its best batch: computed when it is
// first asked for, then looked up.
//
// A model with known batch limits may take any batch from its own smallest (the profile's or the
// job's, whichever is smaller) to the largest; of any other model the job's batch stays what it is
// and is divided over the GPUs. Noise scales are told apart in steps of ten per cent, so that jobs
// of a kind share a table.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/view.h"
#include "policies/goodput/batch_choice.h"
#include "policies/goodput/throughput.h"

namespace berth::goodput {

enum class Adaptation : std::uint8_t { Batch, Fixed };  // Fixed: the job's own total batch

/// A kind of job on a device type.
struct Subject {
  ProfileId profile;
  PoolId pool;
  std::int32_t wanted = 1;  // GPUs it asked for
  std::int32_t batch = 0;   // its own per GPU; 0 = the profile's
  Adaptation adaptation = Adaptation::Batch;
  bool two_on_one = true;
};

/// The job's own batch of the whole gang.
[[nodiscard]] std::int32_t own_total_batch(const RateModel& rates, const Subject& subject) noexcept;
/// What may be chosen for such a job.
[[nodiscard]] BatchRange batch_range(const RateModel& rates, const Subject& subject);

/// Seconds of one iteration of (gang, m, s). The gang's nodes are 1 or more than 1.
using IterationClock = std::function<double(const Gang&, std::int32_t, std::int32_t)>;

/// Goodputs by number of GPUs, on one node and over several; filled as it is asked.
class Table {
 public:
  Table(const BatchRange& range, double phi, IterationClock clock)
      : range_(range), phi_(phi), clock_(std::move(clock)) {}

  /// Not valid: the job cannot run on so many.
  [[nodiscard]] const BatchChoice& best(std::int32_t gpus, bool spread) const;
  [[nodiscard]] double goodput(std::int32_t gpus, bool spread) const {
    return best(gpus, spread).goodput;
  }

 private:
  struct Entry {
    bool known = false;
    BatchChoice choice;
  };
  [[nodiscard]] BatchChoice compute(const Gang& gang) const;

  BatchRange range_;
  double phi_;
  IterationClock clock_;
  mutable std::vector<Entry> entries_;  // by 2 * gpus + spread
};

/// `phi` 0 = not known: as large as the job's own batch.
[[nodiscard]] std::int32_t noise_step(const RateModel& rates, const Subject& subject, double phi);
/// Goodputs as the rate model has them, at the noise scale that this step stands for.
[[nodiscard]] Table believed_table(const RateModel& rates, const Subject& subject,
                                   std::int32_t noise_step);

}  // namespace berth::goodput
