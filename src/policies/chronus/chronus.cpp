#include "policies/chronus/chronus.h"

#include <vector>

#include "policies/kit/blocked_set.h"

namespace berth::chronus {

void Chronus::begin(const View& view) {
  promises_.begin(view);
  roster_.begin(view);
  choice_.begin(view);
  placing_.begin(view);
}

void Chronus::on_arrival(const View& view, JobId job) {
  ++active_;
  terms_.stir(view.now);
  roster_.note_waits(view, job);
}

void Chronus::on_departure(const View& view, JobId job) {
  --active_;
  terms_.stir(view.now);
  may_improve_ = may_improve_ || (roster_.holds(job) && view.believed().effects().locality);
  roster_.remove(view, job);
  promises_.forget(job);
}

void Chronus::on_requeue(const View& view, JobId job) {
  terms_.stir(view.now);
  roster_.note_waits(view, job);
}

/// Jobs whose promise cannot be kept any more continue as best effort.
void Chronus::on_capacity_change(const View& view, NodeId node) {
  terms_.stir(view.now);
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  for (const JobId job : promises_.change_capacity(view, pool)) roster_.refile(view, job);
}

/// With no promise to keep, nobody waiting and no closer place in sight, a term changes nothing.
bool Chronus::needs_term() const noexcept {
  return !promises_.jobs().empty() || roster_.is_anybody_waiting() ||
         (may_improve_ && !roster_.best_effort().empty());
}

void Chronus::refresh_promises(Pass& pass) {
  const View& view = pass.view;
  promises_.advance(terms_.number(view.now));
  const std::vector<JobId> promised(promises_.jobs().begin(), promises_.jobs().end());
  for (const JobId job : promised) {
    if (promises_.refresh(view, job)) continue;
    const bool is_kept = promises_.put_off(view, job);
    const bool is_strict = !view.deadline_is_soft(job);
    if (!is_kept && is_strict && options_.late == Late::Killed && roster_.holds(job)) {
      roster_.remove(view, job);
      pass.plan.kill(job, Reason::Deadline);
    } else {
      roster_.refile(view, job);
    }
  }
}

void Chronus::stop_others(Pass& pass, const std::set<JobId>& jobs) {
  const std::vector<JobId> all(jobs.begin(), jobs.end());  // a copy: stopping changes the set
  for (const JobId job : all)
    if (roster_.holds(job) && !choice_.has(job)) placing_.stop(pass, job);
}

void Chronus::begin_term(Pass& pass) {
  refresh_promises(pass);
  choice_.make(pass.view, pass.plan);
  stop_others(pass, promises_.jobs());
  stop_others(pass, roster_.best_effort());
  placing_.place_leases(pass, choice_.leased());
  for (const JobId job : choice_.best_effort()) {
    if (roster_.holds(job)) continue;
    // Pushed aside or new; if the placement declines, it stays in the queue.
    placing_.start(pass, job, Reason::Order);
  }
  for (std::uint32_t i = 0; i < promises_.pools(); ++i) closeness_.improve(pass, PoolId{i});
  may_improve_ = false;
  promises_.advance(terms_.number(pass.view.now) + 1);
}

/// Starts waiting jobs that fit, in the order of the queue.
void Chronus::fill_from(Pass& pass, WaitingByShape& queue) {
  queue.unblock();
  const auto may_fit = [&](ShapeId shape) { return pass.plan.has_room(pass.view.shapes[shape]); };
  while (const auto shape = queue.first(may_fit))
    if (!placing_.start(pass, queue.top(*shape).job, Reason::Backfill)) queue.block(*shape);
}

/// Idle GPUs until the term ends.
void Chronus::fill(Pass& pass) {
  const ClusterState& cluster = pass.plan.cluster();
  if (cluster.free_gpus() == 0 && !pass.view.cluster.tracks_devices()) return;
  fill_from(pass, roster_.starved());
  fill_from(pass, roster_.waiting());
  // Work done before a lease begins makes the promise easier to keep.
  BlockedSet<ShapeId> blocked;
  const std::vector<std::pair<Term, JobId>> idle(roster_.idle().begin(), roster_.idle().end());
  for (const auto& [end, job] : idle) {
    if (cluster.free_gpus() == 0) return;
    const ShapeId shape = pass.view.jobs.shape[job];
    if (blocked.has(shape) || !cluster.may_hold(promises_.pool_of(job), pass.view.shapes[shape]))
      continue;
    if (!placing_.start_early(pass, job)) blocked.add(shape);
  }
}

void Chronus::decide(const View& view, Plan& plan, Rng& rng) {
  if (active_ == 0) return terms_.settle();
  Pass pass{view, plan, rng};
  if (terms_.is_due(view.now)) {
    terms_.hold(view.now);
    if (needs_term()) begin_term(pass);
  }
  fill(pass);
}

std::optional<Time> Chronus::next_wakeup(const View& view) {
  if (needs_term()) {
    terms_.go_on(view.now);
  } else {
    terms_.settle();
  }
  return terms_.wakeup(view.now);
}

}  // namespace berth::chronus

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  using namespace chronus;
  Options options;
  BERTH_TRY(options.lease, params.duration("lease"));
  BERTH_TRY(options.restart, params.duration("restart"));
  if (options.lease <= options.restart) return params.wrong("lease", "must be longer than restart");
  BERTH_TRY(options.slack, params.number("slack", 1, 100));
  BERTH_TRY(options.grace, params.duration("grace"));
  BERTH_TRY(options.unmet, params.choice<Unmet>("unmet", {{"refuse", Unmet::Refused},
                                                          {"best-effort", Unmet::BestEffort}}));
  BERTH_TRY(options.late, params.choice<Late>(
                              "late", {{"best-effort", Late::BestEffort}, {"kill", Late::Killed}}));
  BERTH_TRY(options.key,
            params.choice<BestEffortKey>("be_key", {{"remaining", BestEffortKey::Remaining},
                                                    {"attained", BestEffortKey::Attained}}));
  BERTH_TRY(options.starve_leases, params.integer("be_starve", 1, 1'000'000));
  BERTH_TRY(const bool lends, params.flag("lend_padding"));
  options.padding = lends ? Padding::Lent : Padding::KeptFree;
  BERTH_TRY(options.search_steps, params.whole<std::int32_t>("ls_iters", 0, 1'000'000));
  options.move_cost = to_seconds(options.restart) / to_seconds(options.lease);
  if (params.text("mig_cost") != "auto") {
    BERTH_TRY(options.move_cost, params.number("mig_cost", 0, 1000));
  }
  BERTH_TRY(const bool with_best_effort, params.flag("be_in_milp"));
  options.program = with_best_effort ? Program::WithBestEffort : Program::PromisesAlone;
  BERTH_TRY(options.effort.jobs, params.whole<std::size_t>("exact_jobs", 0, 1000));
  BERTH_TRY(options.effort.nodes, params.integer("solver_nodes", 1, 1'000'000'000));
  return std::make_unique<Chronus>(options);
}

}  // namespace

PolicyEntry chronus_entry() {
  return {
      .name = "chronus",
      .summary =
          "promises leases that meet deadlines or refuses at once; the rest shares what is left",
      .params =
          {{"lease", "20m", "length of a term; who runs is decided where one begins"},
           {"restart", "30", "seconds at the begin of a lease that saving and restarting may take"},
           {"slack", "1.05", "factor on the believed work left, against wrong estimates"},
           {"grace", "1h",
            "lateness that makes a soft deadline worthless; at most 100 terms are tried"},
           {"unmet", "refuse", "strict deadline that cannot be promised: refuse or best-effort"},
           {"late", "best-effort", "strict job that will be late after all: best-effort or kill"},
           {"be_key", "remaining",
            "order without deadline: remaining (work) or attained (service)"},
           {"be_starve", "36", "leases of waiting after which such a job goes first"},
           {"lend_padding", "on", "lend the GPUs that rounding up to blocks leaves idle"},
           {"be_in_milp", "off",
            "leases that can come later make way for short jobs without deadline"},
           {"ls_iters", "1000", "steps of the search for closer places, if distance costs speed"},
           {"mig_cost", "auto", "speed that moving a job there must gain; auto = restart / lease"},
           {"exact_jobs", "30", "jobs up to which the integer program decides; 0 = never"},
           {"solver_nodes", "200", "size of its search tree at most"}},
      .make = make,
      .test_settings = {
          {"lease", "6"}, {"restart", "2"}, {"be_starve", "5"}, {"unmet", "best-effort"}}};
}

}  // namespace berth
