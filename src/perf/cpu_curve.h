// How fast CPU cores feed one worker: S(C) = P0 ln C + P1 C samples per second below the sweet
// point theta, P2 from there on (where the GPU is the limit).
#pragma once

#include <cstdint>

namespace berth {

struct CpuCurve {
  double log_gain = 0;     // P0
  double linear_gain = 0;  // P1
  double plateau = 0;      // P2; 0 = nothing known, cores never limit the job
  std::int32_t theta = 1;  // the sweet point, cores per worker

  [[nodiscard]] bool is_known() const noexcept { return plateau > 0; }
  /// Samples per second that C cores can prepare, whatever the GPU makes of them: the lower branch
  /// carried on past theta. C may be a fraction of a core (linear from zero below one core).
  [[nodiscard]] double feed(double cores) const noexcept;
  /// S(C), with the plateau.
  [[nodiscard]] double speed(double cores) const noexcept;
  friend bool operator==(const CpuCurve&, const CpuCurve&) = default;
};

}  // namespace berth
