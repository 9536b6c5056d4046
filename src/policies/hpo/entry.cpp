#include "policies/hpo/entry.h"

#include "policies/hpo/hpo.h"

namespace berth {

namespace {

Result<hpo::StudyRules> rules_of(const Params& params) {
  hpo::StudyRules rules;
  BERTH_TRY(rules.eta, params.number("eta", 1.1, 1000));
  BERTH_TRY(const std::int64_t first, params.integer("first_epochs", 1, 1'000'000));
  rules.first = static_cast<double>(first);
  BERTH_TRY(rules.whole, params.number("epochs", 0, 1e9));
  BERTH_TRY(const std::size_t halving, params.choice("halving", {"async", "sync"}));
  rules.halving = halving == 0 ? hpo::Halving::Asynchronous : hpo::Halving::Synchronous;
  BERTH_TRY(const std::size_t losers, params.choice("losers", {"pause", "stop"}));
  rules.losers = losers == 0 ? hpo::Losers::Pause : hpo::Losers::Stop;
  return rules;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  hpo::Options options;
  BERTH_TRY(options.rules, rules_of(params));
  BERTH_TRY(options.probe, params.duration("probe"));
  if (options.probe <= Duration::zero()) return params.wrong("probe", "must be more than zero");
  BERTH_TRY(options.grow_leader, params.flag("grow_leader"));
  BERTH_TRY(const std::size_t shares, params.choice("trial_gpus", {"asked", "fluid"}));
  options.fluid = shares == 1;
  BERTH_TRY(const std::int64_t fuse,
            params.integer("fuse", 1, static_cast<std::int64_t>(kMaxSharers)));
  options.fuse = static_cast<std::int32_t>(fuse);
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.debug.limit, params.duration("debug_limit"));
  BERTH_TRY(const std::int64_t largest, params.integer("debug_gpus", 0, 1'000'000));
  options.debug.largest = static_cast<std::int32_t>(largest);
  options.debug.best_effort = params.text("best_effort");
  options.debug.production = params.text("production");
  BERTH_TRY(options.debug.screen, params.duration("screen"));
  if (options.debug.screen <= Duration::zero())
    return params.wrong("screen", "must be more than zero");
  return std::make_unique<hpo::Hpo>(options);
}

}  // namespace

PolicyEntry hpo_entry() {
  return {
      .name = "hpo",
      .summary = "studies of trials by successive halving, fair shares per study, a debug pool",
      .params =
          {{"eta", "3", "the best 1/eta of the trials of a rung go on"},
           {"first_epochs", "1", "epochs to the first rung; eta times as many to each next one"},
           {"epochs", "0", "epochs of a whole training; 0 = as the profile of the model says"},
           {"halving", "async",
            "async: the best so far go on; sync: a rung waits for all its trials"},
           {"losers", "pause",
            "trials that are not among the best: pause (may go on later) or stop"},
           {"probe", "10", "seconds after which it is first looked at how fast a trial learns"},
           {"grow_leader", "on", "idle GPUs go to the leader of a study with a deadline"},
           {"trial_gpus", "asked",
            "asked: as many as trials ask for; fluid: idle GPUs go to trials by what they have to "
            "do"},
           {"fuse", "1", "trials of one study and model that may share a GPU"},
           {"elastic", "declared",
            "trials that may grow: declared, those whose trace gives a range; all, every one"},
           {"max_gpus", "8", "GPUs to which a trial that declares no range grows with elastic=all"},
           {"debug_limit", "30m", "seconds after which a debug job is stopped"},
           {"debug_gpus", "8", "largest debug job that the debug pool serves; 0 = no pool"},
           {"best_effort", "best-effort", "queue whose jobs make room for a growing debug pool"},
           {"production", "",
            "queue of production jobs: others without a class begin in the debug pool; empty: "
            "nobody"},
           {"screen", "5m", "how long they stay there"}},
      .make = make};
}

}  // namespace berth
