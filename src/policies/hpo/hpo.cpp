#include "policies/hpo/hpo.h"

#include <algorithm>

#include "policies/common/place_outside.h"
#include "policies/kit/training_reports.h"

namespace berth::hpo {

void Hpo::begin(const View& view) {
  jobs_.resize(view.jobs.size());
  debug_.begin(view.cluster.cluster());
}

Hpo::StudyId Hpo::study_of(const View& view, JobId job) {
  const NameId name = view.request(job).study;
  const auto fresh = static_cast<StudyId>(studies_.size());
  const auto [entry, is_new] = study_of_name_.try_emplace(name, fresh);
  if (is_new) {
    StudyRules rules = options_.rules;
    if (rules.whole <= 0)
      rules.whole = std::max(1.0, view.believed().profile(view.jobs.profile[job]).loss.epochs);
    studies_.push_back({.study = Study{rules}, .trials = {}, .deadline = {}});
    studies_.back().weight = std::max(1e-6, static_cast<double>(view.request(job).weight));
  }
  return entry->second;
}

void Hpo::on_arrival(const View& view, JobId job) {
  JobRow& row = jobs_[job.value];
  if (debug_.takes(view, job)) {
    row.kind = Kind::Debug;
    return debug_.push(view, job);
  }
  if (view.text(view.request(job).study).empty()) return wait_alone(view, job);
  row.kind = Kind::Trial;
  row.study = study_of(view, job);
  StudyRow& study = studies_[row.study];
  row.trial = study.study.add();
  study.trials.push_back(job);
  ++study.unfinished;
  active_.insert(row.study);
  const auto deadline = view.deadline(job);
  if (!deadline || view.deadline_is_soft(job)) return;
  if (study.deadline) deadlines_.erase({*study.deadline, row.study});
  study.deadline = study.deadline ? std::min(*study.deadline, *deadline) : *deadline;
  deadlines_.emplace(*study.deadline, row.study);
}

void Hpo::wait_alone(const View& view, JobId job) { alone_.push(view.jobs.shape[job], job); }

void Hpo::note_held(JobId job, std::int32_t gpus) {
  JobRow& row = jobs_[job.value];
  if (row.kind == Kind::Trial) studies_[row.study].held += gpus - row.held;
  row.held = gpus;
  if (gpus > 0)
    running_.insert(job);
  else
    running_.erase(job);
}

void Hpo::on_departure(const View& view, JobId job) {
  JobRow& row = jobs_[job.value];
  note_held(job, 0);
  if (row.kind == Kind::Debug) return debug_.forget(job);
  if (row.kind != Kind::Trial) return;
  Study& study = studies_[row.study].study;
  // A trial that has come to its own end is the last word on what it learnt.
  if (view.jobs.state[job] == JobState::Completed && study.is_running(row.trial)) {
    if (const auto report = sensible_report(view, job))
      static_cast<void>(study.reach(row.trial, report->loss));
  }
  forget_trial(job);
}

void Hpo::on_requeue(const View& view, JobId job) {
  JobRow& row = jobs_[job.value];
  note_held(job, 0);
  row.restarts = true;
  switch (row.kind) {
    case Kind::Alone: return wait_alone(view, job);
    case Kind::Debug: debug_.forget(job); return debug_.push(view, job);
    case Kind::Trial:
      drop_check(job);
      studies_[row.study].study.interrupt(row.trial);
      break;
  }
}

void Hpo::decide(const View& view, Plan& plan, Rng&) {
  stopped_.clear();
  judge_trials(view, plan);
  end_overdue(view, plan);
  serve_debug(view, plan);
  share_out(view, plan);
  end_settled(view, plan);
  if (options_.grow_leader) grow_leaders(view, plan);
}

void Hpo::serve_debug(const View& view, Plan& plan) {
  const DebugPool::Stopped stopped = debug_.run(view, plan, running_);
  for (const JobId job : stopped.killed) note_held(job, 0);
  for (const JobId job : stopped.outlived) {  // waits where its submit time puts it
    note_held(job, 0);
    jobs_[job.value].kind = Kind::Alone;
    wait_alone(view, job);
  }
  for (const JobId job : stopped.evicted) {
    JobRow& row = jobs_[job.value];
    note_held(job, 0);
    row.restarts = true;
    if (row.kind == Kind::Alone) wait_alone(view, job);
    if (row.kind == Kind::Trial) {
      drop_check(job);
      studies_[row.study].study.interrupt(row.trial);
    }
  }
}

std::optional<Hpo::Claim> Hpo::claim_of_study(const View& view, StudyId id) const {
  const StudyRow& row = studies_[id];
  const auto next = row.study.next(horizon(view, row));
  if (!next) return std::nullopt;
  return Claim{row.held / row.weight, row.study.urgency(*next), row.trials[next->trial], true, id};
}

std::optional<Hpo::Claim> Hpo::claim_of_lane(std::uint32_t at) {
  if (!alone_[at].is_open()) return std::nullopt;
  const JobId job = alone_[at].jobs.top();
  return Claim{0, jobs_[job.value].restarts ? 2 : 1, job, false, at};
}

/// Free GPUs to whoever holds the fewest for its weight, until nobody who wants some fits.
void Hpo::share_out(const View& view, Plan& plan) {
  alone_.begin_pass(view.jobs);
  std::set<Claim> claims;
  const auto add = [&](const std::optional<Claim>& claim) {
    if (claim) claims.insert(*claim);
  };
  for (const StudyId id : active_) add(claim_of_study(view, id));
  for (const std::uint32_t at : alone_.active()) add(claim_of_lane(at));
  const auto has_room = [&] { return plan.cluster().free_gpus() > 0 || options_.fuse > 1; };
  bool is_anybody_left = false;
  while (!claims.empty() && has_room()) {
    const Claim claim = *claims.begin();
    claims.erase(claims.begin());
    if (!serve(view, plan, claim)) {  // nor will it fit later in this pass
      is_anybody_left = true;
      continue;
    }
    add(claim.is_study ? claim_of_study(view, claim.at) : claim_of_lane(claim.at));
  }
  if (options_.fluid && claims.empty() && !is_anybody_left) grow_trials(view, plan);
}

bool Hpo::serve(const View& view, Plan& plan, const Claim& claim) {
  if (claim.is_study) return start_trials(view, plan, claim.at);
  if (!start(view, plan, claim.job)) {
    alone_[claim.at].blocked = true;
    return false;
  }
  static_cast<void>(alone_[claim.at].jobs.pop(view.jobs));
  return true;
}

/// The next trial, in a synchronous study with all that go on together, or nobody. A gang that the
/// cluster could not hold at once, or not beside nobody, starts as far as it fits.
bool Hpo::start_trials(const View& view, Plan& plan, StudyId id) {
  StudyRow& row = studies_[id];
  const auto next = row.study.next(horizon(view, row));
  const std::vector<TrialId> gang = row.study.gang_of(*next);
  std::int64_t gpus = 0;
  for (const TrialId trial : gang) gpus += view.gpus(row.trials[trial]);
  const bool all_or_none = !running_.empty() && gpus <= view.cluster.usable_gpus();
  const Plan::Mark mark = plan.mark();
  std::vector<TrialId> started;
  for (const TrialId trial : gang)
    if (start(view, plan, row.trials[trial])) started.push_back(trial);
  if (all_or_none && started.size() < gang.size()) {
    plan.rollback(mark);
    for (const TrialId trial : started) note_held(row.trials[trial], 0);
    return false;
  }
  for (const TrialId trial : started) {
    row.study.start({trial, next->rung});
    set_check(view, row.trials[trial]);
  }
  return !started.empty();
}

/// A trial that stopped at a rung in this pass goes on where it was, if it can; not if it had got
/// more GPUs than it asked for by nobody wanting them.
bool Hpo::start(const View& view, Plan& plan, JobId job) {
  const auto reason = jobs_[job.value].kind == Kind::Trial ? Reason::Fairness : Reason::Order;
  bool started = false;
  auto own = stopped_.find(job);
  if (own != stopped_.end() && options_.fluid && view.jobs.granted[job] != view.gpus(job))
    own = stopped_.end();
  if (!debug_.is_open()) {
    const auto own_size = [&](PoolId pool) {
      return plan.try_start_sized(pool, job, view.gpus(job), reason);
    };
    started = own == stopped_.end() && stopped_.contains(job)
                  ? std::ranges::any_of(view.shape(job).pools, own_size)
                  : plan.try_start(job, reason);
  } else {
    started = own != stopped_.end() &&
              plan.try_start_on(job, own->second.pool, own->second.slices, reason);
  }
  if (!started && debug_.is_open()) {
    const Shape& shape = view.shape(job);
    started = std::ranges::any_of(shape.pools, [&](PoolId pool) {
      return place_outside(plan.cluster(), shape, pool, debug_.reserved(), slices_) &&
             plan.try_start_on(job, pool, slices_, reason);
    });
    // What is too large for the rest of the cluster may use the pool's nodes as well.
    if (!started && !is_outside_large_enough(view.cluster.cluster(), shape, debug_.reserved()))
      started = plan.try_start(job, reason);
  }
  if (started) {
    note_held(job, plan.gpus_of(job));
  } else if (try_join(view, plan, job)) {  // its GPU counts once, with who came first
    running_.insert(job);
    started = true;
  }
  return started;
}

std::optional<Time> Hpo::next_wakeup(const View&) {
  Time next = debug_.next_wakeup();
  if (!checks_.empty()) next = std::min(next, checks_.begin()->first);
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  return next == kNever ? std::nullopt : std::optional{next};
}

}  // namespace berth::hpo

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
      .make = make,
      .test_settings = {{"elastic", "all"}}};
}

}  // namespace berth
