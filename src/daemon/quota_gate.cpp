#include "daemon/quota_gate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace berth {

namespace {

constexpr Duration kSurely = std::chrono::seconds{1};  // below the limit, however it is rounded

std::string in_hours(double gpu_seconds) {
  const double hours = gpu_seconds / 3600;
  return fmt::format("{:.{}f}", hours, hours < 10 ? 3 : 1);
}

/// People set limits in thousandths of an hour.
std::int64_t milli_hours_up(double gpu_seconds) {
  return static_cast<std::int64_t>(std::ceil(gpu_seconds / 3.6));
}

}  // namespace

std::int32_t gpus_of_request(const JobSpec& spec) { return std::max(spec.gpus, spec.gpus_max); }

std::vector<std::string> QuotaGate::shares_of(const JobSpec& spec) {
  std::vector<std::string> shares{"user/" + spec.user};
  if (!spec.group.empty()) shares.push_back("group/" + spec.group);
  return shares;
}

void QuotaGate::set_limits(const std::string& who, const ShareLimits& limits) {
  shares_[who].limits = limits;
  opened_.insert(who);  // it may be more than before
  if (limits.gpu_seconds > 0) {
    budgets_.insert(who);
  } else {
    budgets_.erase(who);
  }
}

void QuotaGate::decay(Share& share, Time now) const {
  if (now <= share.used_at) return;
  if (half_life_ > 0)
    share.used_seconds *= std::exp2(-to_seconds(now - share.used_at) / half_life_);
  share.used_at = now;
}

void QuotaGate::set_use(const std::string& who, double gpu_seconds, Time now) {
  Share& share = shares_[who];
  const bool is_less = gpu_seconds < share.used_seconds;
  share.used_seconds = gpu_seconds;
  share.used_at = now;
  if (is_less) opened_.insert(who);
}

void QuotaGate::add_use(const JobSpec& spec, double gpu_seconds, Time now) {
  for (const std::string& who : shares_of(spec)) {
    Share& share = shares_[who];
    decay(share, now);
    const bool was_open = share.used_seconds < share.limits.gpu_seconds;
    share.used_seconds += gpu_seconds;
    if (was_open && share.used_seconds >= share.limits.gpu_seconds) spent_.insert(who);
  }
}

void QuotaGate::enter(JobNumber job, const JobSpec& spec) {
  for (const std::string& who : shares_of(spec)) {
    Share& share = shares_[who];
    share.in.gpus += gpus_of_request(spec);
    ++share.in.jobs;
    share.waiting.erase(job);
  }
}

void QuotaGate::leave(const JobSpec& spec) {
  for (const std::string& who : shares_of(spec)) {
    Share& share = shares_[who];
    share.in.gpus -= gpus_of_request(spec);
    --share.in.jobs;
    if (!share.waiting.empty()) opened_.insert(who);
  }
}

void QuotaGate::wait(JobNumber job, const JobSpec& spec) {
  for (const std::string& who : shares_of(spec)) shares_[who].waiting.insert(job);
}

void QuotaGate::forget(JobNumber job, const JobSpec& spec) {
  for (const std::string& who : shares_of(spec)) shares_[who].waiting.erase(job);
}

std::optional<FullLimit> QuotaGate::full_limit(const JobSpec& spec) const {
  using enum FullLimit::Of;
  for (const std::string& who : shares_of(spec)) {
    const auto found = shares_.find(who);
    if (found == shares_.end()) continue;
    const Share& share = found->second;
    const bool is_groups = who.starts_with("group/");
    if (share.limits.gpus > 0 && share.in.gpus + gpus_of_request(spec) > share.limits.gpus)
      return FullLimit{Gpus, is_groups};
    if (share.limits.jobs > 0 && share.in.jobs >= share.limits.jobs)
      return FullLimit{Jobs, is_groups};
    if (share.is_budget_spent()) return FullLimit{GpuTime, is_groups};
  }
  return std::nullopt;
}

void QuotaGate::settle(Time now) {
  for (const std::string& who : budgets_) {
    Share& share = shares_[who];
    const bool was_spent = share.is_budget_spent();
    decay(share, now);
    if (was_spent && !share.is_budget_spent()) opened_.insert(who);
  }
}

void QuotaGate::offer_room(const std::function<void(JobNumber)>& try_to_enter) {
  std::set<std::string> opened;
  opened.swap(opened_);
  for (const std::string& who : opened) {
    const Share& share = shares_[who];
    // One that enters leaves the set of those who wait: the next is found before it is tried.
    for (auto next = share.waiting.begin(); next != share.waiting.end() && !share.is_full();) {
      const JobNumber job = *next++;
      try_to_enter(job);
    }
  }
}

bool QuotaGate::is_spent(const JobSpec& spec) const {
  return std::ranges::any_of(shares_of(spec),
                             [&](const std::string& who) { return spent_.contains(who); });
}

std::optional<Time> QuotaGate::budget_opens(const Share& share) const {
  if (half_life_ <= 0 || !share.is_budget_spent()) return std::nullopt;
  const double halvings = std::log2(share.used_seconds / share.limits.gpu_seconds);
  return share.used_at + seconds_to_duration(half_life_ * halvings) + kSurely;
}

std::optional<Time> QuotaGate::next() const {
  std::optional<Time> first;
  for (const std::string& who : budgets_) {
    const Share& share = shares_.at(who);
    const auto opens = share.waiting.empty() ? std::nullopt : budget_opens(share);
    if (opens && (!first || *opens < *first)) first = opens;
  }
  return first;
}

void QuotaGate::explain(const JobSpec& spec, std::vector<ShutGate>& shut) const {
  for (const std::string& who : shares_of(spec)) {
    const auto share = shares_.find(who);
    if (share != shares_.end()) explain_share(who, share->second, gpus_of_request(spec), shut);
  }
}

void QuotaGate::explain_share(const std::string& who, const Share& share, std::int32_t gpus,
                              std::vector<ShutGate>& shut) const {
  const auto slash = who.find('/');
  const std::string name = who.substr(slash + 1);
  const std::string whose = name + (who.substr(0, slash) == "group" ? " --group" : "");
  const auto& [limits, used, as_of, in, waiting] = share;
  if (limits.gpus > 0 && in.gpus + gpus > limits.gpus) {
    shut.push_back(
        {.kind = GateKind::Quota,
         .text = fmt::format("{} has {} of {} GPUs in use or in line, this job asks for {}", name,
                             in.gpus, limits.gpus, gpus),
         .numbers = {{"used", in.gpus}, {"limit", limits.gpus}, {"need", gpus}, {"unit", "GPUs"}},
         .change = fmt::format("{} --gpu-limit {}", whose, in.gpus + gpus)});
  }
  if (limits.jobs > 0 && in.jobs >= limits.jobs) {
    shut.push_back(
        {.kind = GateKind::Quota,
         .text = fmt::format("{} has {} of {} jobs running or in line", name, in.jobs, limits.jobs),
         .numbers = {{"used", in.jobs},
                     {"limit", limits.jobs},
                     {"need", std::int64_t{1}},
                     {"unit", "jobs"}},
         .change = fmt::format("{} --job-limit {}", whose, in.jobs + 1)});
  }
  if (share.is_budget_spent()) {
    const std::int64_t enough = milli_hours_up(used) + 1;
    shut.push_back({.kind = GateKind::Quota,
                    .text = fmt::format("{} has used {} of {} GPU hours", name, in_hours(used),
                                        in_hours(limits.gpu_seconds)),
                    .numbers = {{"used", used / 3600},
                                {"limit", limits.gpu_seconds / 3600},
                                {"need", std::int64_t{0}},
                                {"unit", "GPU hours"}},
                    .until = budget_opens(share),
                    .change = fmt::format("{} --gpu-hours {:.3f}", whose,
                                          static_cast<double>(enough) / 1000)});
  }
}

}  // namespace berth
