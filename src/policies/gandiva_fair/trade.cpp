#include "policies/gandiva_fair/trade.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace berth::gandiva_fair {

namespace {

constexpr double kWhole = 1 - 1e-9;  // of a device, after sums of fractions

Holding* seller_of(std::span<Holding> users) {
  Holding* seller = nullptr;
  for (Holding& user : users) {
    if (user.fast >= kWhole && (seller == nullptr || user.speedup < seller->speedup))
      seller = &user;
  }
  return seller;
}

Holding* buyer_of(std::span<Holding> users, double rate) {
  Holding* buyer = nullptr;
  for (Holding& user : users) {
    if (user.slow >= rate * kWhole && (buyer == nullptr || user.speedup > buyer->speedup))
      buyer = &user;
  }
  return buyer;
}

}  // namespace

double trading_rate(std::span<const Holding> users) {
  std::vector<double> speedups;
  for (const Holding& user : users) speedups.push_back(user.speedup);
  std::ranges::sort(speedups, std::greater{});
  return speedups.size() < 2 ? 0 : speedups[1];
}

std::int32_t trade(std::span<Holding> users, double rate) {
  std::int32_t traded = 0;
  for (;; ++traded) {
    Holding* const seller = seller_of(users);
    Holding* const buyer = buyer_of(users, rate);
    if (seller == nullptr || buyer == nullptr || seller == buyer) return traded;
    if (seller->speedup > rate || rate >= buyer->speedup) return traded;
    seller->fast -= 1;
    buyer->fast += 1;
    seller->slow += rate;
    buyer->slow = std::max(0.0, buyer->slow - rate);
  }
}

}  // namespace berth::gandiva_fair
