#include "policies/gandiva_fair/gandiva_fair.h"

#include <algorithm>

namespace berth::gandiva_fair {

void GandivaFair::begin(const View& view) {
  homes_.begin(view);
  quantum_.begin(view);
}

void GandivaFair::on_arrival(const View& view, JobId job) {
  homes_.add(view, job);
  newcomers_.push_back(job);
  ++active_;
  is_changed_ = true;
  rounds_.stir(view.now);
}

void GandivaFair::on_departure(const View& view, JobId job) {
  homes_.remove(view, job);
  --active_;
  is_changed_ = true;
  if (homes_.waiting() > 0) rounds_.stir(view.now);
}

void GandivaFair::on_requeue(const View& view, JobId job) {
  homes_.move_out(view, job);
  homes_.set_waiting(job, true);
  newcomers_.push_back(job);
  is_changed_ = true;
  rounds_.stir(view.now);
}

/// Jobs that lived on a server that went down find another home.
void GandivaFair::on_capacity_change(const View& view, NodeId node) {
  is_changed_ = true;
  rounds_.stir(view.now);
  if (view.cluster.is_up(node)) return;
  const std::vector<JobId> homeless = homes_.homed_on(node);  // a copy: they move out
  for (const JobId job : homeless) {
    homes_.move_out(view, job);
    homes_.set_waiting(job, true);
    newcomers_.push_back(job);
  }
}

std::optional<Time> GandivaFair::next_wakeup(const View& view) { return rounds_.wakeup(view.now); }

void GandivaFair::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  if (active_ == 0) rounds_.settle();
  if (!rounds_.is_due(view.now)) {
    if (options_.start == StartRule::AtOnce) start_waiting(pass);
    return;
  }
  rounds_.hold(view.now);
  drop_stale_newcomers();
  // While nobody waits, newcomers take what is free and no turns are needed.
  if (homes_.waiting() == 0) start_newcomers(pass);
  if (homes_.waiting() > 0 || !newcomers_.empty()) take_turns(pass);
  const bool nobody_runs = homes_.waiting() == active_;
  if (homes_.waiting() == 0 || nobody_runs) rounds_.settle();
}

void GandivaFair::drop_stale_newcomers() {
  std::ranges::sort(newcomers_);  // one may be there twice: its server and it were lost
  newcomers_.erase(std::unique(newcomers_.begin(), newcomers_.end()), newcomers_.end());
  std::erase_if(newcomers_, [&](JobId job) {
    return homes_[job].rates == nullptr || homes_[job].pool.has_value();
  });
}

/// Everybody who lives somewhere, with its entry.
template <class Each>
void GandivaFair::for_all(const Each& each) {
  for (std::uint32_t i = 0; i < homes_.pools(); ++i)
    for (GangStride::Entry& entry : homes_.stride(PoolId{i}).entries()) each(entry);
}

void GandivaFair::take_turns(Pass& pass) {
  if (is_changed_ || !newcomers_.empty()) {
    homes_.update_shares(pass.view, newcomers_);
    newcomers_.clear();
    is_changed_ = false;
  }
  quantum_.hold(pass);
  fill(pass);
  for_all([&](GangStride::Entry& entry) {
    const JobId job = entry.job;
    const bool waits = !pass.plan.holds(job);
    homes_.set_waiting(job, waits);
    const Duration least = waits ? homes_[job].start_cost : Duration::zero();
    homes_.set_start_cost(job, std::max(least, options_.switch_cost));
    if (!waits) entry.charge();
  });
}

/// On devices that nobody's turn uses; the place becomes its home.
bool GandivaFair::start_anywhere(Pass& pass, JobId job) {
  const Homes::Row& row = homes_[job];
  Plan& plan = pass.plan;
  const auto can_start = [&](std::size_t type) {
    const PoolId pool{static_cast<std::uint32_t>(type)};
    return (*row.rates)[type] > 0 && plan.try_start_in(pool, job, Reason::Backfill);
  };
  const bool on_its_type = row.pool && can_start(row.pool->value);
  if (!on_its_type && std::ranges::none_of(homes_.fastest_first(), can_start)) return false;
  const PoolId pool = plan.pool_of(job);
  const auto slices = plan.slices(job);
  const auto home = slices.size() == 1 ? std::optional{slices.front().node} : std::nullopt;
  const bool moved = row.pool && (*row.pool != pool || row.home != home);
  if (moved) homes_.set_start_cost(job, options_.migration_cost);
  plan.set_pause(job, row.start_cost);
  if (row.pool == pool) {  // it keeps its pass
    if (moved) homes_.set_home(job, home);
    return true;
  }
  homes_.move_out(pass.view, job);
  homes_.live_in(pass.view, job, pool, home);
  return true;
}

bool GandivaFair::try_anywhere(Pass& pass, JobId job) {
  const ShapeId shape = pass.view.jobs.shape[job];
  if (blocked_.has(shape) || !pass.plan.has_room(pass.view.shapes[shape])) return false;
  if (start_anywhere(pass, job)) return true;
  blocked_.add(shape);
  return false;
}

void GandivaFair::start_newcomers(Pass& pass) {
  blocked_.clear();
  std::erase_if(newcomers_, [&](JobId job) {
    if (!try_anywhere(pass, job)) return false;
    homes_.set_waiting(job, false);
    return true;
  });
}

/// Starts waiting jobs on free devices, by pass.
void GandivaFair::fill(Pass& pass) {
  if (pass.plan.cluster().free_gpus() == 0) return;
  blocked_.clear();
  std::vector<std::pair<double, JobId>> waiting;
  for_all([&](const GangStride::Entry& entry) {
    if (!pass.plan.holds(entry.job)) waiting.emplace_back(entry.pass, entry.job);
  });
  std::ranges::sort(waiting);
  for (const auto& [rank, job] : waiting) try_anywhere(pass, job);
}

/// Free devices until the next quantum go to jobs that wait for a turn, by pass, then to newcomers.
/// It counts as a turn. Running jobs are left alone.
void GandivaFair::start_waiting(Pass& pass) {
  drop_stale_newcomers();
  if (homes_.waiting() > 0) {
    fill(pass);
    for_all([&](GangStride::Entry& entry) {
      if (!homes_[entry.job].is_waiting || !pass.plan.holds(entry.job)) return;
      homes_.set_waiting(entry.job, false);
      homes_.set_start_cost(entry.job, options_.switch_cost);
      entry.charge();
    });
  }
  start_newcomers(pass);
}

}  // namespace berth::gandiva_fair

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  using gandiva_fair::Mechanism;
  gandiva_fair::Options options;
  BERTH_TRY(options.quantum, params.positive_duration("quantum"));
  BERTH_TRY(options.start, params.choice<StartRule>("start", {{"turn", StartRule::InRounds},
                                                              {"now", StartRule::AtOnce}}));
  BERTH_TRY(options.switch_cost, params.duration("switch_cost"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  BERTH_TRY(const bool trades, params.flag("trading"));
  options.trading = trades ? Mechanism::On : Mechanism::Off;
  BERTH_TRY(const bool balances, params.flag("balancing"));
  options.balancing = balances ? Mechanism::On : Mechanism::Off;
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
      .make = make,
      .test_settings = {{"quantum", "3"}}};
}

}  // namespace berth
