#include "policies/gandiva/observations.h"

namespace berth::gandiva {

namespace {

// Looks at a rate that is not measured before the belief is taken instead: a job that reports
// nothing is given up on soon, one that reports is waited for longer.
constexpr std::int32_t kSilent = 3;
constexpr std::int32_t kPatience = 8;

/// How fast it runs as it asked to, if it does.
SeenRate rate_as_asked(const View& view, JobId job) {
  const bool as_asked = view.jobs.is_running(job) && view.jobs.granted[job] == view.gpus(job);
  return as_asked ? rate_now(view, job) : SeenRate{};
}

}  // namespace

void SeenRate::raise_to(const SeenRate& other) noexcept {
  const bool is_better =
      are_alike(*this, other) ? other.value > value : other.is_measured && other.is_seen();
  if (is_better) *this = other;
}

/// A belief counts only if no measurement is to be expected.
void Observations::see_alone(const View& view, JobId job, const SeenRate& rate) {
  if (!rate.is_seen()) return;
  Row& row = rows_[job];
  if (!rate.is_measured) {
    ++row.looks;
    const bool speaks = view.jobs.basis[job] == RateBasis::Awaited;
    if (row.isolated.is_measured || row.looks < (speaks ? kPatience : kSilent)) return;
  }
  row.isolated = rate;
  row.best.raise_to(rate);
}

void Observations::watch(const View& view, const Ring& ring) {
  for (const Ring::Seat& seat : ring.running()) {
    const SeenRate rate = rate_as_asked(view, seat.job);
    if (!seat.guest) {
      see_alone(view, seat.job, rate);
      continue;
    }
    const SeenRate other = rate_as_asked(view, *seat.guest);
    if (!rate.is_seen() || !other.is_seen()) continue;
    rows_[seat.job].packed = rate;
    rows_[*seat.guest].packed = other;
  }
}

}  // namespace berth::gandiva
