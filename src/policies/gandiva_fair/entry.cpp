#include "policies/gandiva_fair/entry.h"

#include "policies/gandiva_fair/gandiva_fair.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  gandiva_fair::Options options;
  BERTH_TRY(options.quantum, params.duration("quantum"));
  if (options.quantum <= Duration::zero()) return params.wrong("quantum", "must be more than zero");
  BERTH_TRY(const auto start, params.choice("start", {"turn", "now"}));
  options.start = static_cast<StartRule>(start);
  BERTH_TRY(options.switch_cost, params.duration("switch_cost"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  BERTH_TRY(options.trading, params.flag("trading"));
  BERTH_TRY(options.balancing, params.flag("balancing"));
  BERTH_TRY(const auto list, params.named_numbers("tickets"));
  for (const auto& [user, numbers] : list) {
    if (numbers.size() != 1 || numbers[0] < 1e-3 || numbers[0] > 1e6)
      return params.wrong("tickets", "must be USER:tickets with tickets from 0.001 to 1000000");
    options.tickets.emplace_back(user, numbers[0]);
  }
  return std::make_unique<gandiva_fair::GandivaFair>(entry.name, std::move(options));
}

}  // namespace

PolicyEntry gandiva_fair_entry() {
  return {
      .name = "gandiva-fair",
      .summary =
          "tickets per user on every device type, gangs by stride; users trade fast for slow GPUs",
      .params =
          {{"quantum", "60", "seconds of a turn, aligned to time zero"},
           {"start", "turn",
            "of a job that waits beside free devices: turn: with the next turns; now: at once",
            "now"},
           {"tickets", "", "USER:tickets, comma separated; others have 1"},
           {"trading", "on", "let users trade fast devices for slow ones"},
           {"balancing", "on", "even out tickets per GPU over servers"},
           {"switch_cost", "1", "seconds a job pays when its turn begins"},
           {"migration_cost", "2", "seconds a job pays when it changes server or type"}},
      .make = make};
}

}  // namespace berth
