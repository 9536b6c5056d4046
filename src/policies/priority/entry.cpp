#include "policies/priority/entry.h"

#include <cmath>

#include "policies/priority/priority.h"

namespace berth {

namespace {

Result<Quotas> quotas_of(const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("quota"));
  Quotas quotas;
  for (const auto& [tenant, numbers] : list) {
    Quota quota;
    const auto is_count = [](double number) {
      return number == std::floor(number) && number <= 1e9;
    };
    const bool whole = numbers.size() <= 2 && is_count(numbers.front()) && is_count(numbers.back());
    if (!whole || numbers.front() > (numbers.size() == 2 ? numbers.back() : numbers.front())) {
      return params.wrong("quota",
                          "must be TENANT:guaranteed[:hard] in whole GPUs with guaranteed <= hard");
    }
    quota.guaranteed = static_cast<std::int64_t>(numbers.front());
    if (numbers.size() == 2) quota.hard = static_cast<std::int64_t>(numbers.back());
    quotas.set(tenant, quota);
  }
  return quotas;
}

Result<std::optional<std::int32_t>> preempts_from(const Params& params) {
  if (params.text("preempt_classes") == "none") return std::nullopt;
  if (params.text("preempt_classes") == "all") return std::numeric_limits<std::int32_t>::min();
  const auto lowest = params.integer("preempt_classes", -1'000'000'000, 1'000'000'000);
  if (!lowest)
    return params.wrong("preempt_classes", "must be none, all or the lowest class that may");
  return static_cast<std::int32_t>(*lowest);
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(auto quotas, quotas_of(params));
  PriorityOptions options;
  BERTH_TRY(const auto pass, params.choice("pass", {"strict", "skip"}));
  options.pass = pass == 0 ? PassRule::Strict : PassRule::Skip;
  BERTH_TRY(options.preempts_from, preempts_from(params));
  BERTH_TRY(options.aging_interval, params.duration("aging_interval"));
  BERTH_TRY(const auto max_class, params.integer("max_class", -1'000'000, 1'000'000));
  options.max_class = static_cast<std::int32_t>(max_class);
  BERTH_TRY(const auto enforce, params.choice("enforce", {"later", "now"}));
  options.enforce = enforce == 0 ? Enforce::Later : Enforce::Now;
  return std::make_unique<Priority>(std::move(quotas), options);
}

}  // namespace

PolicyEntry priority_entry() {
  return {
      .name = "priority",
      .summary = "priority classes with preemption, tenant quotas and aging",
      .params =
          {{"pass", "skip", "strict: stop at the first job that does not fit; skip: try the next"},
           {"preempt_classes", "none",
            "who may preempt lower classes: none, all, or the lowest class that may"},
           {"quota", "",
            "TENANT:guaranteed[:hard] in GPUs, comma separated; tenant is a job's group, else its "
            "user"},
           {"aging_interval", "0",
            "seconds of age that raise a waiting job by one class; 0 = no aging"},
           {"max_class", "10", "class up to which aging raises a job"},
           {"enforce", "later",
            "a quota lowered below use; later: no new starts; now: preempt down to it"}},
      .make = make};
}

}  // namespace berth
