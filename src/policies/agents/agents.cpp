#include "policies/agents/agents.h"

#include <algorithm>

namespace berth::agents {

void Agents::begin(const View& view) { arbiters_.begin(view.cluster, options_.pod_devices); }

void Agents::on_arrival(const View& view, JobId job) {
  arbiters_.arrive(view, job);
  exchange_wanted_ = true;
}

void Agents::on_departure(const View& view, JobId job) {
  arbiters_.leave(view, job);
  arbiters_.mark_changed(arbiters_.pod_of(job));
  exchange_wanted_ = true;
}

void Agents::on_requeue(const View& view, JobId job) {
  arbiters_.mark_changed(arbiters_.pod_of(job));
  arbiters_.wait(view, job);
  exchange_wanted_ = true;
}

void Agents::on_capacity_change(const View&, NodeId node) {
  arbiters_.mark_changed(arbiters_.pods().pod_of(node));
  exchange_wanted_ = true;
}

void Agents::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  hold_sales(pass);
  hold_exchange(pass);
  make_room(pass);
  arbiters_.renew_ended(view, options_.lease);
  move(pass);
}

/// The root first: what it does not sell is the pods'.
void Agents::hold_sales(Pass& pass) {
  if (!arbiters_.anybody_waits()) return;
  for (auto i = static_cast<std::uint32_t>(arbiters_.size()); i-- > 0;) {
    const PodId pod{i};
    if (wants_sale(pass.view, pod)) sale_.hold(pass, pod);
  }
}

bool Agents::wants_sale(const View& view, PodId pod) {
  const Arbiter& arbiter = arbiters_[pod];
  return arbiter.waiting_jobs > 0 &&
         (arbiter.changed || view.now >= arbiter.next_round || has_ended_lease(view.now, pod));
}

/// The leases of all pods are the root's business too.
bool Agents::has_ended_lease(Time now, PodId pod) {
  if (pod != arbiters_.pods().root()) return arbiters_[pod].has_ended_lease(now);
  for (std::uint32_t i = 0; i < arbiters_.size(); ++i) {
    if (arbiters_[PodId{i}].has_ended_lease(now)) return true;
  }
  return false;
}

void Agents::hold_exchange(Pass& pass) {
  if (!arbiters_.pods().is_divided() || !exchange_wanted_ || pass.view.now < next_exchange_) return;
  exchange_wanted_ = false;
  next_exchange_ = pass.view.now + options_.exchange;
  if (arbiters_.anybody_waits()) exchange_.hold(pass);
}

/// Only when there is no place in other pods either.
void Agents::make_room(Pass& pass) {
  const bool tried_elsewhere = !arbiters_.pods().is_divided() || !exchange_wanted_;
  if (!options_.defragment || !tried_elsewhere || !arbiters_.anybody_waits()) return;
  for (std::uint32_t i = 0; i < arbiters_.size(); ++i) {
    Arbiter& arbiter = arbiters_[PodId{i}];
    if (arbiter.held_back.empty() || pass.view.now < arbiter.next_emptying) continue;
    arbiter.next_emptying = pass.view.now + options_.interval;
    defragmentation_.run(pass, PodId{i});
  }
}

/// Devices that a move left may be what somebody waits for.
void Agents::move(Pass& pass) {
  if (options_.migration_interval == Duration::zero() || pass.view.now < next_move_) return;
  next_move_ = pass.view.now + options_.migration_interval;
  if (!Moves::may_pay(pass.view) || !moves_.run(pass)) return;
  exchange_wanted_ = true;
  hold_sales(pass);
}

/// The next round of an arbiter with whom somebody waits: when a lease ends, or to see whether a
/// job that waits for closer devices has waited long enough. Nothing of that can happen by itself
/// on devices that nobody leases and nobody fits on.
Time Agents::next_sale(Time now, PodId pod) {
  const Arbiter& arbiter = arbiters_[pod];
  if (arbiter.waiting_jobs == 0) return kNever;
  Time next = arbiter.next_round;
  const Time next_offer = now + options_.interval;
  const bool is_root = pod == arbiters_.pods().root();
  for (std::uint32_t i = is_root ? 0 : pod.value; i <= pod.value; ++i) {
    const auto& ends = arbiters_[PodId{i}].ends;
    if (!ends.empty()) next = std::min(next, std::max(ends.begin()->first, next_offer));
  }
  return next;
}

std::optional<Time> Agents::next_wakeup(const View& view) {
  Time wakeup = kNever;
  bool anybody_holds = false;
  for (std::uint32_t i = 0; i < arbiters_.size(); ++i) {
    wakeup = std::min(wakeup, next_sale(view.now, PodId{i}));
    anybody_holds = anybody_holds || !arbiters_[PodId{i}].ends.empty();
  }
  if (arbiters_.pods().is_divided() && arbiters_.anybody_waits() && exchange_wanted_)
    wakeup = std::min(wakeup, std::max(next_exchange_, view.now + Duration{1}));
  const bool may_move = options_.migration_interval > Duration::zero() && Moves::may_pay(view);
  if (may_move && anybody_holds) wakeup = std::min(wakeup, next_move_);
  if (wakeup == kNever) return std::nullopt;
  return wakeup;
}

namespace {

Result<MigrationRule> migration_rule(const Params& params) {
  MigrationRule rule;
  BERTH_TRY(rule.least_gain, params.number("migration_gain", 0, 1));
  BERTH_TRY(const Duration least, params.duration("migration_least"));
  rule.least_seconds = to_seconds(least);
  BERTH_TRY(rule.pause, params.duration("migration_pause"));
  return rule;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Options options;
  BERTH_TRY(options.value, params.choice<Value>("value", {{"fairness", Value::Fairness},
                                                          {"jct", Value::Jct},
                                                          {"throughput", Value::Throughput},
                                                          {"deadline", Value::Deadline}}));
  BERTH_TRY(options.leftover,
            params.choice<Leftover>(
                "leftover", {{"locality", Leftover::Locality}, {"worst-off", Leftover::WorstOff}}));
  BERTH_TRY(const bool payment, params.flag("payment"));
  options.payment = payment ? Payment::Charged : Payment::Free;
  BERTH_TRY(options.hidden, params.number("hidden", 0, 1));
  BERTH_TRY(options.interval, params.positive_duration("interval"));
  BERTH_TRY(options.lease, params.positive_duration("lease"));
  BERTH_TRY(options.switching_credit, params.number("switching_credit", 0, 0.99));
  BERTH_TRY(options.pod_devices, params.integer("pod_devices", 1, 1'000'000'000));
  BERTH_TRY(options.exchange, params.duration("exchange"));
  BERTH_TRY(options.defragment, params.flag("defragment"));
  BERTH_TRY(options.migration_interval, params.duration("migration_interval"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  BERTH_TRY(options.migration, migration_rule(params));
  return std::make_unique<Agents>(options);
}

}  // namespace

}  // namespace berth::agents

namespace berth {

PolicyEntry agents_entry() {
  return {
      .name = "agents",
      .summary =
          "job agents bid for leases, arbiters sell cells by Nash welfare; placed by topology",
      .params =
          {{"value", "fairness", "what agents bid by: fairness, jct, throughput or deadline"},
           {"leftover", "locality",
            "who gets first what nobody bought: locality (whom its places hurt least), worst-off"},
           {"payment", "off", "hidden payment: a winner's lease is cut by what it cost the others"},
           {"hidden", "0.8", "part of the agents an offer is hidden from, the best-off ones"},
           {"interval", "60", "seconds between offers while jobs wait"},
           {"lease", "20m", "how long devices are granted before they are for sale again"},
           {"switching_credit", "0.05", "part by which an old holder's bid counts as better"},
           {"pod_devices", "2000", "devices of one arbiter at most; larger clusters have several"},
           {"exchange", "10", "seconds between exchanges of arbiters, at least"},
           {"defragment", "on", "move jobs together for a gang that is held back"},
           {"migration_interval", "5m", "how often agents look for better devices; 0 = never"},
           {"migration_cost", "60", "seconds a move takes"},
           {"migration_gain", "0.1", "part of the time left that a move must save"},
           {"migration_least", "30", "seconds that a move must save"},
           {"migration_pause", "30m", "a job moves at most once in this time"}},
      .make = agents::make,
      .test_settings = {
          {"pod_devices", "6"}, {"lease", "5"}, {"interval", "2"}, {"exchange", "1"}}};
}

}  // namespace berth
