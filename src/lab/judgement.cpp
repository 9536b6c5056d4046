#include "lab/reproduction.h"

namespace berth {

namespace {

/// Less than this is no gain.
constexpr double kNoGain = 1.02;

}  // namespace

Judgement judged(double ours, double published) noexcept {
  if (ours >= published) return Judgement::Reproduced;
  return ours > kNoGain ? Judgement::InShape : Judgement::Missed;
}

Judgement judged_everywhere(double least, double most, double published) noexcept {
  const Judgement best = judged(most, published);
  // A gain that turns into a loss somewhere is not what was published.
  return best == Judgement::Reproduced && least <= 1 ? Judgement::InShape : best;
}

std::string_view to_string(Judgement verdict) noexcept {
  switch (verdict) {
    case Judgement::Measured: return "measured";
    case Judgement::Reproduced: return "reproduced";
    case Judgement::InShape: return "in shape";
    case Judgement::Missed: break;
  }
  return "not reproduced";
}

}  // namespace berth
