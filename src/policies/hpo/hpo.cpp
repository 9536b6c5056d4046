#include "policies/hpo/hpo.h"

#include <algorithm>

#include "policies/hpo/rules.h"
#include "policies/kit/beliefs.h"

namespace berth::hpo {

void Hpo::begin(const View& view) {
  jobs_.resize(view.jobs.size());
  trials_.begin(view.jobs.size());
  debug_.begin(view.cluster.cluster());
}

void Hpo::on_arrival(const View& view, JobId job) {
  JobRow& row = jobs_[job];
  if (debug_.takes(view, job)) {
    row.sort = Sort::Debug;
    debug_.push(view, job);
  } else if (view.text(view.request(job).study).empty()) {
    alone_.push(view.jobs.shape[job], job);
  } else {
    row.sort = Sort::Trial;
    trials_.add(view, job);
  }
}

void Hpo::note_held(JobId job, std::int32_t gpus) {
  JobRow& row = jobs_[job];
  if (row.sort == Sort::Trial) trials_.change_held(job, gpus - row.held);
  row.held = gpus;
  if (gpus > 0) {
    running_.insert(job);
  } else {
    running_.erase(job);
  }
}

void Hpo::on_departure(const View& view, JobId job) {
  const JobRow& row = jobs_[job];
  note_held(job, 0);
  if (row.sort == Sort::Alone) alone_.forget(view.jobs.shape[job], job);
  if (row.sort == Sort::Debug) debug_.forget(job);
  if (row.sort != Sort::Trial) return;
  if (view.jobs.state[job] == JobState::Completed) trials_.complete(view, job);
  trials_.end(job);
}

void Hpo::on_requeue(const View& view, JobId job) { wait_again(view, job); }

/// It lost its devices, though nobody is done with it.
void Hpo::wait_again(const View& view, JobId job) {
  JobRow& row = jobs_[job];
  note_held(job, 0);
  row.restarts = true;
  switch (row.sort) {
    case Sort::Alone: alone_.push(view.jobs.shape[job], job); break;
    case Sort::Trial: trials_.interrupt(job); break;
    case Sort::Debug:
      debug_.forget(job);
      debug_.push(view, job);
      break;
  }
}

void Hpo::on_rate(const View& view, JobId job) {
  if (trials_.looks().is_set(job)) trials_.set_look(view, job);
}

void Hpo::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  stopped_.clear();
  judge_trials(pass);
  end_overdue(pass);
  serve_debug(pass);
  share_out(pass);
  end_settled(pass);
  if (options_.grow_leader) grow_leaders(pass);
}

/// Whoever waits at its rung gives its devices up; it may be the first to get them back.
void Hpo::judge_trials(Pass& pass) {
  for (const JobId job : trials_.pop_due(pass.view.now)) {
    const auto verdict = trials_.judge(pass.view, job);
    if (verdict == Study::Verdict::Stop) stop_trial(pass, job, Reason::EarlyStop);
    if (verdict != Study::Verdict::Wait) continue;
    stopped_[job] = {pass.plan.pool_of(job), devices_of(pass.plan, job)};
    pass.plan.preempt(job, Reason::EarlyStop);
    note_held(job, 0);
  }
}

void Hpo::stop_trial(Pass& pass, JobId job, Reason reason) {
  pass.plan.kill(job, reason);
  note_held(job, 0);
  trials_.end(job);
}

/// A study at its deadline is over, all trials at once.
void Hpo::end_overdue(Pass& pass) {
  while (const auto id = trials_.pop_overdue(pass.view.now)) {
    for (const JobId job : trials_[*id].jobs) {
      if (!trials_.is_over(job)) stop_trial(pass, job, Reason::Deadline);
    }
  }
}

/// Nobody runs and nobody may go on: whoever still waits has lost.
void Hpo::end_settled(Pass& pass) {
  const std::vector<StudyId> studies(trials_.active().begin(), trials_.active().end());
  for (const StudyId id : studies) {
    if (!trials_.is_settled(pass.view, id)) continue;
    const Trials::Row& row = trials_[id];
    for (const TrialId trial : row.study.waiting())
      stop_trial(pass, row.jobs[trial], Reason::EarlyStop);
  }
}

void Hpo::serve_debug(Pass& pass) {
  const DebugPool::Stopped stopped = debug_.run(pass, running_);
  for (const JobId job : stopped.killed) note_held(job, 0);
  for (const JobId job : stopped.outlived) {  // waits where its submit time puts it
    note_held(job, 0);
    jobs_[job].sort = Sort::Alone;
    alone_.push(pass.view.jobs.shape[job], job);
  }
  for (const JobId job : stopped.evicted) wait_again(pass.view, job);
}

std::optional<Hpo::Claim> Hpo::claim_of_study(const View& view, StudyId id) const {
  const auto next = trials_.next(view, id);
  if (!next) return std::nullopt;
  const Trials::Row& row = trials_[id];
  return Claim{.share = row.held / row.weight,
               .urgency = row.study.urgency(*next),
               .job = row.jobs[next->trial],
               .is_study = true,
               .at = id.value};
}

std::optional<Hpo::Claim> Hpo::claim_of_shape(ShapeId shape) const {
  if (alone_.empty(shape)) return std::nullopt;
  const JobId job = alone_.top(shape).job;
  return Claim{.share = 0, .urgency = jobs_[job].restarts ? 2 : 1, .job = job, .at = shape.value};
}

/// Free GPUs to whoever holds the fewest for its weight, until nobody who wants some fits.
void Hpo::share_out(Pass& pass) {
  std::set<Claim> claims;
  const auto add = [&](const std::optional<Claim>& claim) {
    if (claim) claims.insert(*claim);
  };
  for (const StudyId id : trials_.active()) add(claim_of_study(pass.view, id));
  for (const ShapeId shape : alone_.active()) add(claim_of_shape(shape));
  const bool fuses = options_.fusing.most > 1;
  bool is_anybody_left = false;
  while (!claims.empty() && (fuses || pass.plan.cluster().free_gpus() > 0)) {
    const Claim claim = *claims.begin();
    claims.erase(claims.begin());
    if (!serve(pass, claim)) {  // nor will it fit later in this pass
      is_anybody_left = true;
      continue;
    }
    add(claim.is_study ? claim_of_study(pass.view, StudyId{claim.at})
                       : claim_of_shape(ShapeId{claim.at}));
  }
  const bool fluid = options_.fusing.gpus == TrialGpus::Fluid;
  if (fluid && claims.empty() && !is_anybody_left) grow_trials(pass);
}

bool Hpo::serve(Pass& pass, const Claim& claim) {
  if (claim.is_study) return start_trials(pass, StudyId{claim.at});
  if (!start(pass, claim.job)) return false;
  alone_.pop(ShapeId{claim.at});
  return true;
}

/// The next trial, in a synchronous study with all that go on together, or nobody. A gang that the
/// cluster could not hold at once, or not beside nobody, starts as far as it fits.
bool Hpo::start_trials(Pass& pass, StudyId id) {
  const Trials::Row& row = trials_[id];
  const auto next = trials_.next(pass.view, id);
  const std::vector<TrialId> gang = row.study.gang_of(*next);
  std::int64_t gpus = 0;
  for (const TrialId trial : gang) gpus += pass.view.gpus(row.jobs[trial]);
  const bool all_or_none = !running_.empty() && gpus <= pass.view.cluster.usable_gpus();
  std::vector<TrialId> started;
  const bool stays = pass.attempt([&] {
    for (const TrialId trial : gang)
      if (start(pass, row.jobs[trial])) started.push_back(trial);
    return !all_or_none || started.size() == gang.size();
  });
  if (!stays) return false;
  for (const TrialId trial : started) trials_.start(pass.view, id, {trial, next->rung});
  return !started.empty();
}

bool Hpo::start(Pass& pass, JobId job) {
  if (place(pass, job)) {
    note_held(job, pass.plan.gpus_of(job));
  } else if (try_fuse(pass, trials_, job, options_.fusing)) {
    running_.insert(job);  // its GPU counts once, with who came first
  } else {
    return false;
  }
  pass.plan.on_rollback([this, job] { note_held(job, 0); });
  return true;
}

/// A trial that stopped at a rung in this pass goes on where it was, if it can; not if it had got
/// more GPUs than it asked for by nobody wanting them.
bool Hpo::place(Pass& pass, JobId job) {
  const View& view = pass.view;
  Plan& plan = pass.plan;
  const Shape& shape = view.shape(job);
  const auto reason = jobs_[job].sort == Sort::Trial ? Reason::Fairness : Reason::Order;
  const auto own = stopped_.find(job);
  const bool has_grown = own != stopped_.end() && options_.fusing.gpus == TrialGpus::Fluid &&
                         view.jobs.granted[job] != view.gpus(job);
  if (!debug_.is_open()) {
    if (!has_grown) return plan.try_start(job, reason);
    return std::ranges::any_of(shape.pools, [&](PoolId pool) {
      return plan.try_start_sized(pool, job, view.gpus(job), reason);
    });
  }
  if (own != stopped_.end() && !has_grown &&
      plan.try_start_on(job, own->second.pool, own->second.slices, reason))
    return true;
  // What is too large for the rest of the cluster may use the debug pool's nodes as well.
  ReservedNodes& reserved = debug_.nodes();
  return reserved.try_start_outside(plan, job, reason) ||
         (!reserved.is_outside_large_enough(view.cluster.cluster(), shape) &&
          plan.try_start(job, reason));
}

/// Nobody waits and GPUs are idle: each study deals its own and its part of the idle ones out by
/// what its running trials have to do. A trial gives them back at its next rung.
void Hpo::grow_trials(Pass& pass) {
  auto left = static_cast<std::int32_t>(trials_.active().size());
  for (const StudyId id : trials_.active()) {
    const auto idle = static_cast<std::int32_t>(pass.plan.cluster().free_gpus());
    if (idle == 0) return;
    std::vector<JobId> jobs;
    std::vector<double> work;
    for (const JobId job : trials_[id].jobs) {
      if (!pass.plan.holds(job) || !pass.view.jobs.is_running(job)) continue;
      jobs.push_back(job);
      work.push_back(trials_.epochs_left(pass.view, job));
    }
    const std::int32_t gpus = trials_[id].held + (idle + left - 1) / left;
    --left;
    if (jobs.empty() || static_cast<std::int32_t>(jobs.size()) > gpus) continue;
    const std::vector<double> shares = trial_shares(work, gpus);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::int32_t most = elastic_range(pass.view, jobs[i], options_.elastic).most;
      try_grow(pass, jobs[i], std::min(static_cast<std::int32_t>(shares[i]), most));
    }
  }
}

/// Idle GPUs to the leader of a study with a deadline, twice as many while that pays.
void Hpo::grow_leaders(Pass& pass) {
  for (const auto& [deadline, id] : trials_.deadlines()) {
    const Trials::Row& row = trials_[id];
    const auto leader = row.study.leader();
    if (!leader || !row.study.is_running(*leader)) continue;
    const JobId job = row.jobs[*leader];
    if (!pass.view.jobs.is_running(job)) continue;  // started in this pass
    const std::int32_t most = elastic_range(pass.view, job, options_.elastic).most;
    try_grow(pass, job, std::min(2 * pass.plan.gpus_of(job), most));
  }
}

/// Up to so many GPUs, if there are so many and that pays.
void Hpo::try_grow(Pass& pass, JobId job, std::int32_t gpus) {
  const PoolId pool = pass.plan.pool_of(job);
  const std::int32_t has = pass.plan.gpus_of(job);
  if (gpus <= has || pass.plan.cluster().free_gpus(pool) < gpus - has ||
      !should_grow(believed_rate(pass.view, job, pool, has),
                   believed_rate(pass.view, job, pool, gpus)))
    return;
  const bool grows = try_restart(pass.plan, job, Reason::Growth, [&] {
    return pass.plan.try_start_sized(pool, job, gpus, Reason::Growth);
  });
  if (!grows) return;
  note_held(job, gpus);
  trials_.look_soon(pass.view, job);  // how much faster it learns is to be seen
}

std::optional<Time> Hpo::next_wakeup(const View&) {
  Time next = std::min(debug_.next_wakeup(), trials_.looks().next());
  if (!trials_.deadlines().empty()) next = std::min(next, trials_.deadlines().begin()->first);
  return next == kNever ? std::nullopt : std::optional{next};
}

namespace {

Result<StudyRules> rules_of(const Params& params) {
  StudyRules rules;
  BERTH_TRY(rules.eta, params.number("eta", 1.1, 1000));
  BERTH_TRY(const std::int64_t first, params.integer("first_epochs", 1, 1'000'000));
  rules.first = static_cast<double>(first);
  BERTH_TRY(rules.whole, params.number("epochs", 0, 1e9));
  BERTH_TRY(rules.halving, params.choice<Halving>("halving", {{"async", Halving::Asynchronous},
                                                              {"sync", Halving::Synchronous}}));
  BERTH_TRY(rules.losers,
            params.choice<Losers>("losers", {{"pause", Losers::Pause}, {"stop", Losers::Stop}}));
  return rules;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Options options;
  BERTH_TRY(options.rules, rules_of(params));
  BERTH_TRY(options.probe, params.positive_duration("probe"));
  BERTH_TRY(options.grow_leader, params.flag("grow_leader"));
  BERTH_TRY(options.fusing.gpus,
            params.choice<TrialGpus>("trial_gpus",
                                     {{"asked", TrialGpus::Asked}, {"fluid", TrialGpus::Fluid}}));
  BERTH_TRY(options.fusing.most,
            params.whole<std::int32_t>("fuse", 1, static_cast<std::int32_t>(kMaxSharers)));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.debug.limit, params.duration("debug_limit"));
  BERTH_TRY(options.debug.largest, params.whole<std::int32_t>("debug_gpus", 0, 1'000'000));
  options.debug.best_effort = params.text("best_effort");
  options.debug.production = params.text("production");
  BERTH_TRY(options.debug.screen, params.positive_duration("screen"));
  return std::make_unique<Hpo>(options);
}

}  // namespace

}  // namespace berth::hpo

namespace berth {

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
      .make = hpo::make,
      .test_settings = {{"elastic", "all"}}};
}

}  // namespace berth
