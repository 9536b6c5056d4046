#include "policies/gandiva_fair/users.h"

#include <algorithm>
#include <functional>
#include <optional>

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

bool can_use(const User& user, std::size_t type) {
  return std::ranges::any_of(user.jobs,
                             [&](const auto& entry) { return entry.second.rates[type] > 0; });
}

std::optional<double> speedup_of(const User& user, std::size_t fast, std::size_t slow) {
  double sum = 0;
  double count = 0;
  for (const auto& [id, job] : user.jobs) {
    if (job.rates[fast] <= 0 || job.rates[slow] <= 0) continue;
    sum += job.rates[fast] / job.rates[slow];
    count += 1;
  }
  return count > 0 ? std::optional{sum / count} : std::nullopt;
}

void trade_types(std::span<User> users, std::size_t fast, std::size_t slow) {
  std::vector<User*> traders;
  std::vector<Holding> holdings;
  for (User& user : users) {
    const auto speedup = speedup_of(user, fast, slow);
    if (!speedup) continue;
    traders.push_back(&user);
    holdings.push_back({user.owned[fast], user.owned[slow], *speedup});
  }
  if (holdings.size() < 2) return;
  trade(holdings, trading_rate(holdings));
  for (std::size_t i = 0; i < traders.size(); ++i) {
    traders[i]->owned[fast] = holdings[i].fast;
    traders[i]->owned[slow] = holdings[i].slow;
  }
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

void share_out(std::span<User> users, std::span<const double> gpus) {
  for (User& user : users) user.owned.assign(gpus.size(), 0);
  for (std::size_t type = 0; type < gpus.size(); ++type) {
    double tickets = 0;
    for (const User& user : users) tickets += can_use(user, type) ? user.tickets : 0;
    for (User& user : users) {
      if (can_use(user, type)) user.owned[type] = gpus[type] * user.tickets / tickets;
    }
  }
}

void trade_all(std::span<User> users, std::span<const std::size_t> fastest_first) {
  for (std::size_t gap = fastest_first.size(); gap-- > 1;) {
    for (std::size_t i = 0; i + gap < fastest_first.size(); ++i)
      trade_types(users, fastest_first[i], fastest_first[i + gap]);
  }
}

}  // namespace berth::gandiva_fair
