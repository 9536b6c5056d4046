#include "policies/fair_share/entry.h"

#include "policies/fair_share/fair_share.h"

namespace berth {

namespace {

Result<void> read_accounts(const Params& params, Accounts& accounts) {
  BERTH_TRY(const auto shares, params.named_numbers("shares"));
  for (const auto& [who, numbers] : shares) {
    if (numbers.size() != 1 || numbers.front() <= 0 || numbers.front() > 1e9)
      return params.wrong("shares", "must be WHO:SHARE with shares above zero");
    accounts.set_share(who, numbers.front());
  }
  BERTH_TRY(const auto usage, params.named_numbers("usage"));
  for (const auto& [who, numbers] : usage) {
    if (numbers.size() != 1 || numbers.front() > 1e15)
      return params.wrong("usage", "must be WHO:GPU-SECONDS");
    accounts.add_use(who, numbers.front());
  }
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  FairShareOptions options;
  BERTH_TRY(options.accounts.half_life, params.duration("half_life"));
  BERTH_TRY(options.accounts.advance, params.duration("advance"));
  BERTH_TRY(const auto preempt, params.choice("preempt", {"off", "priority", "share", "both"}));
  options.by_class = preempt == 1 || preempt == 3;
  options.by_share = preempt == 2 || preempt == 3;
  BERTH_TRY(options.min_run, params.duration("min_run"));
  BERTH_TRY(options.margin, params.number("margin", 0, 1e6));
  if (options.by_share &&
      (options.min_run <= Duration::zero() || options.accounts.advance <= Duration::zero()))
    return params.wrong("preempt",
                        "by share needs min_run and advance above zero: without them "
                        "jobs of equals would take turns for ever");
  BERTH_TRY(options.aging_interval, params.duration("aging_interval"));
  BERTH_TRY(const auto max_class, params.integer("max_class", -1'000'000, 1'000'000));
  options.max_class = static_cast<std::int32_t>(max_class);
  BERTH_TRY(const auto size, params.choice("size", {"neutral", "small", "large"}));
  options.size = static_cast<SizeRule>(size);
  auto policy = std::make_unique<FairShare>(options);
  BERTH_TRY_VOID(read_accounts(params, policy->accounts()));
  return policy;
}

}  // namespace

PolicyEntry fair_share_entry() {
  return {
      .name = "fair-share",
      .summary = "fair share of GPU time over groups and users, with priorities and a reservation",
      .params =
          {{"shares", "", "WHO:SHARE, comma separated; who is alice, group/ml or group/ml/alice"},
           {"usage", "", "WHO:GPU-SECONDS used before the run, comma separated"},
           {"half_life", "7d", "seconds in which use counts half; 0 = it is never forgotten"},
           {"advance", "10m", "seconds that a GPU counts in advance while it is held"},
           {"preempt", "off", "who may take GPUs: off, priority (from lower classes), share, both"},
           {"min_run", "10m", "seconds a job runs before it can be preempted"},
           {"margin", "0.25", "by how much an account stands better before it takes GPUs by share"},
           {"aging_interval", "0",
            "seconds of age that raise a waiting job by one class; 0 = no aging"},
           {"max_class", "10", "class up to which aging raises a job"},
           {"size", "neutral", "between jobs of one standing: neutral, small first, large first"}},
      .make = make};
}

}  // namespace berth
