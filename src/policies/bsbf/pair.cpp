#include "policies/bsbf/pair.h"

namespace berth {

double average_if_waiting(double left_a, double length_b) noexcept { return left_a + length_b / 2; }

double average_if_sharing(double left_a, double length_b,
                          const SharingSlowdown& slowdown) noexcept {
  const double a = slowdown.running * left_a;
  const double b = slowdown.newcomer * length_b;
  if (a <= b) return length_b / 2 + a * (1 - 1 / (2 * slowdown.newcomer));
  return left_a / 2 + b * (1 - 1 / (2 * slowdown.running));
}

double least_partner_left(double shared_b, double alone_b,
                          const SharingSlowdown& slowdown) noexcept {
  const double c = slowdown.running * (1 - 1 / (2 * slowdown.newcomer));
  if (c < 1) {
    const double a_ends_first = (shared_b - alone_b) / (2 - 2 * c);
    if (a_ends_first <= slowdown.newcomer * shared_b / slowdown.running) return a_ends_first;
  }
  return shared_b * (2 * slowdown.newcomer - slowdown.newcomer / slowdown.running) - alone_b;
}

}  // namespace berth
