#include "slurm/watchdog.h"

#include <algorithm>

namespace berth::slurm {

Watchdog::Verdict Watchdog::look(std::optional<std::int64_t> beat, Span now) {
  const Span passed = has_looked_ ? std::clamp(now - looked_, Span{0}, kLongestGap) : Span{0};
  // A file that goes away is no sign of life; one that comes is.
  const bool is_new = has_looked_ && beat && beat != beat_;
  has_looked_ = true;
  looked_ = now;
  if (beat) beat_ = beat;
  if (is_new) {
    silence_ = Span{0};
    const bool was_gone = handed_back_.has_value();
    handed_back_.reset();
    return was_gone ? Verdict::Back : Verdict::Alive;
  }
  silence_ += passed;
  if (silence_ < after_) return Verdict::Silent;
  if (handed_back_ && silence_ - *handed_back_ < again_) return Verdict::Gone;
  handed_back_ = silence_;
  return Verdict::HandBack;
}

}  // namespace berth::slurm
