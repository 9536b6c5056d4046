#include "policies/capacity/entry.h"

#include "policies/capacity/capacity.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("queues"));
  auto tree = QueueTree::make(list);
  if (!tree) return params.wrong("queues", tree.error().text());
  CapacityOptions options;
  BERTH_TRY(const auto pass, params.choice("pass", {"strict", "skip"}));
  options.pass = pass == 0 ? PassRule::Strict : PassRule::Skip;
  BERTH_TRY(options.preemption, params.flag("preemption"));
  BERTH_TRY(options.user_limit_factor, params.number("user_limit_factor", 0, 1e6));
  BERTH_TRY(options.locality_delay, params.integer("locality_delay", 0, 1'000'000'000));
  return std::make_unique<Capacity>(*std::move(tree), options);
}

}  // namespace

PolicyEntry capacity_entry() {
  return {
      .name = "capacity",
      .summary = "queues with guaranteed shares, the least full one first",
      .params =
          {{"queues", "",
            "NAME:share[:max], comma separated; '/' in a name nests it, shares are of the parent"},
           {"pass", "strict",
            "inside a queue; strict: stop at the first job that does not fit; skip: try the next"},
           {"preemption", "off",
            "on: a queue takes its guarantee back from queues that are over theirs"},
           {"user_limit_factor", "0",
            "of its queue's guarantee one user may use at most; 0 = no limit"},
           {"locality_delay", "40",
            "passes a job waits for the fewest nodes possible before it takes more"}},
      .make = make};
}

}  // namespace berth
