// What jobs are believed to get done on every gang, each with its best batch: looked up, computed
// once per kind of job, device type and noise scale. Noise scales are told apart in steps of ten
// per cent.
//
// A model with known batch limits may take any batch from its own smallest (the profile's or the
// job's, whichever is smaller) to the largest; of any other model the job's batch stays what it is
// and is divided over the GPUs.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/view.h"
#include "policies/goodput/batch_choice.h"
#include "policies/goodput/throughput.h"

namespace berth {

enum class Adaptation : std::uint8_t { Batch, Fixed };  // Fixed: the job's own total batch

/// A kind of job on a device type.
struct GoodputSubject {
  ProfileId profile;
  PoolId pool;
  std::int32_t wanted = 1;  // GPUs it asked for
  std::int32_t batch = 0;   // its own per GPU; 0 = the profile's
  Adaptation adaptation = Adaptation::Batch;
  bool two_on_one = true;
  friend auto operator<=>(const GoodputSubject&, const GoodputSubject&) = default;
};

/// The job's own batch of the whole gang.
[[nodiscard]] std::int32_t own_total_batch(const RateModel& rates,
                                           const GoodputSubject& subject) noexcept;
/// What may be chosen for such a job.
[[nodiscard]] BatchRange batch_range(const RateModel& rates, const GoodputSubject& subject);

/// Seconds of one iteration of (gang, m, s). The gang's nodes are 1 or more than 1.
using IterationClock = std::function<double(const Gang&, std::int32_t, std::int32_t)>;
/// As the rate model has it.
[[nodiscard]] IterationClock believed_clock(const RateModel& rates, const GoodputSubject& subject);

/// Goodputs by number of GPUs, on one node and over several; filled as it is asked.
class GoodputTable {
 public:
  GoodputTable(const BatchRange& range, double phi, IterationClock clock)
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

class GoodputTables {
 public:
  /// `phi` 0 = not known: as large as the job's own batch. The answer stays valid.
  [[nodiscard]] const GoodputTable& of(const RateModel& rates, const GoodputSubject& subject,
                                       double phi);

 private:
  std::map<std::pair<GoodputSubject, std::int32_t>, std::unique_ptr<GoodputTable>> tables_;
};

}  // namespace berth
