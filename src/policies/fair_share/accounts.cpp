#include "policies/fair_share/accounts.h"

#include "base/portable_math.h"

namespace berth::fair_share {

namespace {
constexpr double kLog2 = 0.6931471805599453;
constexpr double kFar = 3.0e9;  // seconds: nobody waits for that
constexpr std::string_view kGroup = "group/";
}  // namespace

Accounts::Accounts(const Options& options) : options_(options) {}

double Accounts::weight(Duration age) const noexcept {
  if (options_.half_life <= Duration::zero() || age == Duration::zero()) return 1;
  return portable_exp(-kLog2 * (to_seconds(age) / to_seconds(options_.half_life)));
}

double Accounts::gain(Duration time) const noexcept {
  if (options_.half_life <= Duration::zero()) return to_seconds(time);
  return to_seconds(options_.half_life) / kLog2 * (1 - weight(time));
}

/// Of a user in a group its own there, else the user's anywhere.
double Accounts::share_of(std::string_view name) const {
  if (const auto own = shares_.find(name); own != shares_.end()) return own->second;
  const std::size_t slash = name.starts_with(kGroup) ? name.rfind('/') : 0;
  if (slash < kGroup.size()) return 1;
  const auto anywhere = shares_.find(name.substr(slash + 1));
  return anywhere == shares_.end() ? 1 : anywhere->second;
}

void Accounts::set_share(const std::string& who, double share) {
  auto shares = shares_;
  shares[who] = share;
  set_shares(std::move(shares));
}

void Accounts::set_shares(std::map<std::string, double, std::less<>> shares) {
  shares_ = std::move(shares);
  for (const auto& [name, id] : ids_) rows_[id].share = share_of(name);
}

/// `top` absent: it is one itself.
AccountId Accounts::open(const std::string& name, std::optional<AccountId> top) {
  const auto [entry, is_new] = ids_.try_emplace(name, static_cast<AccountId>(rows_.size()));
  if (is_new) rows_.push_back({.share = share_of(name), .top = top.value_or(entry->second)});
  return entry->second;
}

AccountId Accounts::leaf(std::string_view user, std::string_view group) {
  if (group.empty()) return open(std::string(user), std::nullopt);
  const std::string name = std::string(kGroup) + std::string(group);
  const AccountId above = open(name, std::nullopt);
  return open(name + "/" + std::string(user), above);
}

void Accounts::add_use(const std::string& who, double gpu_seconds) {
  const std::string_view name = who;
  AccountId account = 0;
  if (!name.starts_with(kGroup)) {
    account = leaf(name, "");
  } else if (const std::size_t slash = name.find('/', kGroup.size());
             slash == std::string_view::npos) {
    account = open(who, std::nullopt);
  } else {
    account = leaf(name.substr(slash + 1), name.substr(kGroup.size(), slash - kGroup.size()));
  }
  add_use(account, gpu_seconds);
}

void Accounts::add_use(AccountId account, double gpu_seconds) {
  rows_[account].used += gpu_seconds;
  if (top(account) != account) rows_[top(account)].used += gpu_seconds;
}

void Accounts::settle(Time now) {
  if (as_of_ && *as_of_ >= now) return;
  const Duration passed = as_of_ ? now - *as_of_ : Duration::zero();
  as_of_ = now;
  const double kept = weight(passed);
  const double added = gain(passed);
  for (Row& row : rows_) row.used = row.used * kept + static_cast<double>(row.gpus) * added;
}

void Accounts::hold(AccountId leaf, std::int64_t gpus) {
  rows_[leaf].gpus += gpus;
  if (top(leaf) != leaf) rows_[top(leaf)].gpus += gpus;
}

void Accounts::charge(AccountId leaf, std::int64_t gpus, Time from, Time to) {
  add_use(leaf, static_cast<double>(gpus) * gain(to - from) * weight(*as_of_ - to));
}

double Accounts::standing(AccountId account, std::int64_t more) const noexcept {
  const Row& row = rows_[account];
  const double held = static_cast<double>(row.gpus + more);
  return (row.used + held * to_seconds(options_.advance)) / row.share;
}

/// What has been used shrinks with w = 2^(-t / half life), what is held adds reach x (1 - w): the
/// lead is linear in w, and without decay in t.
std::optional<Time> Accounts::ahead_at(const Lead& lead) const {
  const Row& a = rows_[lead.a];
  const Row& b = rows_[lead.b];
  const double behind = standing(lead.a, lead.more) * lead.factor - standing(lead.b);
  if (behind < 0) return std::nullopt;
  const double held =
      static_cast<double>(a.gpus) / a.share * lead.factor - static_cast<double>(b.gpus) / b.share;
  double seconds = 0;
  if (options_.half_life <= Duration::zero()) {
    if (held >= 0) return std::nullopt;
    seconds = behind / -held;
  } else {
    const double half_life = to_seconds(options_.half_life);
    const double used = a.used / a.share * lead.factor - b.used / b.share;
    const double slope = used - held * (half_life / kLog2);  // of `behind` over w
    const double finally = behind - slope;                   // where w = 0
    if (finally >= 0 || slope <= 0) return std::nullopt;
    seconds = -half_life / kLog2 * portable_log(-finally / slope);
  }
  if (!(seconds < kFar)) return std::nullopt;
  return *as_of_ + seconds_to_duration(seconds);
}

}  // namespace berth::fair_share
