// Limits of users and groups, and the GPU time they have used: it halves every half life, so that a
// budget that is spent opens again by itself.
#include <algorithm>
#include <cmath>

#include "daemon/gates.h"

namespace berth {

namespace {
constexpr Duration kSurely = std::chrono::seconds{1};  // below the limit, however it is rounded
}

void Gates::set_limits(const std::string& who, const ShareLimits& limits) {
  Share& share = shares_[who];
  share.limits = limits;
  opened_.insert(who);
  if (limits.gpu_seconds > 0) {
    budgets_.insert(who);
  } else {
    budgets_.erase(who);
  }
}

void Gates::settle(Share& share, Time now) const {
  if (now <= share.used_at) return;
  if (half_life_ > 0)
    share.used_seconds *= std::exp2(-to_seconds(now - share.used_at) / half_life_);
  share.used_at = now;
}

void Gates::set_use(const std::string& who, double gpu_seconds, Time now) {
  Share& share = shares_[who];
  const bool is_less = gpu_seconds < share.used_seconds;
  share.used_seconds = gpu_seconds;
  share.used_at = now;
  if (is_less) opened_.insert(who);
}

void Gates::add_use(JobNumber job, double gpu_seconds, Time now) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  for (const std::string& who : shares_of(*found->second.spec)) {
    Share& share = shares_[who];
    settle(share, now);
    const bool was_open = share.used_seconds < share.limits.gpu_seconds;
    share.used_seconds += gpu_seconds;
    if (was_open && share.used_seconds >= share.limits.gpu_seconds) spent_.insert(who);
  }
}

void Gates::shut_spent(const std::function<bool(JobNumber)>& holds) {
  if (spent_.empty()) return;
  for (auto& [job, row] : rows_) {
    const auto is_spent = [&](const std::string& who) { return spent_.contains(who); };
    if (!row.is_in || std::ranges::none_of(shares_of(*row.spec), is_spent) || holds(job)) continue;
    leave(job, row);
    withdrawn_.push_back(job);
    look_at(job);
  }
  spent_.clear();
}

void Gates::settle_budgets(Time now) {
  for (const std::string& who : budgets_) {
    Share& share = shares_[who];
    const bool was_spent = share.used_seconds >= share.limits.gpu_seconds;
    settle(share, now);
    if (was_spent && share.used_seconds < share.limits.gpu_seconds) opened_.insert(who);
  }
}

std::optional<Time> Gates::budget_opens(const Share& share) const {
  if (half_life_ <= 0 || share.limits.gpu_seconds <= 0) return std::nullopt;
  if (share.used_seconds < share.limits.gpu_seconds) return std::nullopt;
  const double halvings = std::log2(share.used_seconds / share.limits.gpu_seconds);
  return share.used_at + seconds_to_duration(half_life_ * halvings) + kSurely;
}

std::optional<Time> Gates::next_opening() const {
  std::optional<Time> first;
  if (!timers_.empty()) first = timers_.begin()->first;
  for (const std::string& who : budgets_) {
    const Share& share = shares_.at(who);
    const auto opens = share.waiting.empty() ? std::nullopt : budget_opens(share);
    if (opens && (!first || *opens < *first)) first = opens;
  }
  return first;
}

}  // namespace berth
