#include "perf/training.h"

#include "base/portable_math.h"

#include "base/digest.h"
#include "base/rng.h"

namespace berth {

double measured_loss(const LossCurve& curve, std::uint64_t job_key, std::int64_t epoch) {
  LossCurve own = curve;
  own.b2 *= portable_exp(curve.spread * Rng{job_key}.normal());
  // The error belongs to job and epoch: asking again, or in another order, gives the same loss.
  Digest draw;
  draw.add(job_key);
  draw.add(epoch);
  const double error = curve.noise * Rng{draw.value()}.normal();
  return own.at(static_cast<double>(epoch)) * portable_exp(error);
}

}  // namespace berth
