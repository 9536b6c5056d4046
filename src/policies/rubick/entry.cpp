#include "policies/rubick/entry.h"

#include "policies/rubick/rubick.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  rubick::Options options;
  BERTH_TRY(options.guarantee, params.number("guarantee", 0.01, 1));
  BERTH_TRY(options.restart, params.duration("restart"));
  BERTH_TRY(const std::size_t pass, params.choice("pass", {"strict", "skip"}));
  options.waiting = pass == 0 ? rubick::Waiting::Strict : rubick::Waiting::Skip;
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(const auto quotas, params.named_numbers("quotas"));
  for (const auto& [name, numbers] : quotas) {
    if (numbers.size() != 1 || !(numbers[0] > 0 && numbers[0] <= 1))
      return params.wrong("quotas", "must be NAME:SHARE with a share above 0 and at most 1");
    options.quotas.emplace_back(name, numbers[0]);
  }
  return std::make_unique<rubick::Rubick>(std::move(options));
}

}  // namespace

PolicyEntry rubick_entry() {
  PolicyEntry entry{
      .name = "rubick",
      .summary =
          "fewest GPUs for the promised speed by the best plan, the rest to whoever gains most",
      .params = {{"guarantee", "1", "share of the speed at the requested size that is promised"},
                 {"restart", "3m", "what a change of size is taken to cost"},
                 {"pass", "strict",
                  "strict: nobody overtakes a job that cannot be guaranteed; skip: try the next"},
                 {"quotas", "",
                  "shares of the cluster by queue, as in a:0.5,b:0.2: beyond it nobody shrinks for "
                  "a job"}},
      .make = make};
  const auto elastic = elastic_params();
  entry.params.insert(entry.params.end(), elastic.begin(), elastic.end());
  return entry;
}

}  // namespace berth
