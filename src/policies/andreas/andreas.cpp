#include "policies/andreas/andreas.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace berth::andreas {

namespace {

constexpr Duration kLeastWork = std::chrono::seconds{1};  // of a job that outlives its estimate

double hours(Duration time) { return to_seconds(time) / 3600; }

double hours_left(const View& view, JobId job) {
  return hours(std::max(view.estimated_left(job), kLeastWork));
}

}  // namespace

void Andreas::begin(const View& view) {
  const std::size_t nodes = view.cluster.cluster().nodes.size();
  fleet_.begin(view.cluster.cluster());
  seats_.begin(view.jobs.size(), nodes);
  power_.begin(nodes);
  rank_.resize(view.jobs.size());
  failed_ = Column<NodeId, bool>(nodes, false);
  node_at_ = Column<NodeId, std::uint32_t>(nodes, kNone);
}

double Andreas::weight_of(const View& view, JobId job) const {
  return view.deadline(job) ? options_.omega * static_cast<double>(view.request(job).weight) : 0;
}

/// The pressure as of time zero: it grows alike for all jobs that wait, so their order stands.
void Andreas::enqueue(const View& view, JobId job) {
  const auto due = view.deadline(job);
  const double fastest = fleet_.choices(view, job).fastest().hours * hours_left(view, job);
  const double pressure =
      due ? fastest - hours(due->time_since_epoch()) : -std::numeric_limits<double>::infinity();
  rank_[job] = Rank{pressure, weight_of(view, job), job};
  waiting_.insert(*rank_[job]);
}

void Andreas::on_arrival(const View& view, JobId job) {
  if (fleet_.choices(view, job).empty()) {
    without_gpus_.push_back(job);
    return;
  }
  enqueue(view, job);
  newcomers_.push_back(job);
  has_changed_ = true;
}

void Andreas::on_departure(const View&, JobId job) {
  if (std::erase(without_gpus_, job) > 0) return;
  if (seats_.has(job)) {
    seats_.leave(job);
  } else {
    dequeue(job);
  }
  has_changed_ = true;
}

void Andreas::on_requeue(const View& view, JobId job) {
  if (fleet_.choices(view, job).empty()) return;
  seats_.leave(job);
  enqueue(view, job);
  has_changed_ = true;
}

/// A node that we switched on or off ourselves is no news.
void Andreas::on_capacity_change(const View& view, NodeId node) {
  const bool failed = view.cluster.has_failed(node);
  if (failed_[node] == failed) return;
  failed_[node] = failed;
  has_changed_ = true;
}

bool Andreas::is_due(Time now) const noexcept {
  if (!last_pass_) return true;
  if (now >= *last_pass_ + options_.period) return true;
  return has_changed_ && now >= *last_pass_ + options_.min_interval;
}

void Andreas::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  // After a change of policy everybody runs already: to find them a seat is no reason to search.
  const bool keeps = keep_found(pass);
  const bool reschedules = !keeps && is_due(view.now);
  if (keeps || reschedules) {
    last_pass_ = view.now;
    has_changed_ = false;
  }
  if (reschedules) reschedule(pass);
  start_without_gpus(plan);
  seats_.start(plan);
  if (!reschedules && !keeps && view.now < power_.next_switch()) return;
  const bool waits_for_any =
      std::ranges::any_of(without_gpus_, [&](JobId job) { return !plan.holds(job); });
  power_.switch_nodes(pass, fleet_.nodes(), seats_,
                      waits_for_any ? NodePower::Spare::Keep : NodePower::Spare::SwitchOff);
}

std::optional<Time> Andreas::next_wakeup(const View& view) {
  Time next = power_.next_switch();
  if (!waiting_.empty() || !seats_.empty()) next = std::min(next, *last_pass_ + options_.period);
  if (has_changed_) next = std::min(next, *last_pass_ + options_.min_interval);
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

/// True: who has come runs already, and nobody waits.
bool Andreas::keep_found(Pass& pass) {
  bool is_any_kept = false;
  for (const JobId job : std::exchange(newcomers_, {})) {
    const bool may_stay = pass.view.jobs.is_waiting(job) && !seats_.has(job);
    if (may_stay && try_keep(pass, job)) is_any_kept = true;
  }
  return is_any_kept && waiting_.empty();
}

bool Andreas::try_keep(Pass& pass, JobId job) {
  const auto found = pass.plan.found_on(job);
  const std::vector<Slice> slices{found.begin(), found.end()};
  if (slices.empty() || !pass.plan.try_keep(job, Reason::Power)) return false;
  Seat own{.choice = fleet_.choice_found(pass.view, job, slices), .shares = {}};
  for (const Slice& slice : slices) own.shares.push_back({slice.node.value, slice.gpus});
  dequeue(job);
  seats_.give_running(job, std::move(own));
  return true;
}

/// They go wherever the placement likes among nodes that are up; with none a node is switched on.
void Andreas::start_without_gpus(Plan& plan) {
  for (const JobId job : without_gpus_) {
    if (plan.holds(job) || plan.try_start(job)) continue;
    NodePower::boot_any(plan, fleet_.nodes());
    return;
  }
}

/// The problem of the moment is written down, solved, and its solution becomes the seats.
void Andreas::reschedule(Pass& pass) {
  const std::uint64_t seed = pass.rng.next();  // also if nobody is there: one draw for each pass
  if (waiting_.empty() && seats_.empty()) return;
  list_nodes(pass.view);
  list_jobs(pass.view);
  take_over(pass, solve(seed));
}

/// By type; nodes that are up before those that are not, idle ones before others.
void Andreas::list_nodes(const View& view) {
  const auto ready = [&](NodeId node) { return hours(power_.until_ready(view, node)); };
  nodes_.clear();
  for (const NodeId node : fleet_.nodes()) {
    node_at_[node] = kNone;
    if (!view.cluster.has_failed(node)) nodes_.push_back(node);
  }
  std::ranges::sort(nodes_, {}, [&](NodeId node) {
    return std::tuple(fleet_.type_of(node), ready(node), seats_.is_needed(node), node);
  });
  instance_.nodes.clear();
  for (const NodeId node : nodes_) {
    node_at_[node] = static_cast<std::uint32_t>(instance_.nodes.size());
    instance_.nodes.push_back({fleet_.type_of(node), ready(node)});
  }
}

void Andreas::list_jobs(const View& view) {
  instance_.jobs.clear();
  for (const JobId job : seats_.jobs()) add_job(view, job);
  std::size_t room = options_.window;
  for (auto rank = waiting_.begin(); rank != waiting_.end() && room > 0; ++rank, --room)
    add_job(view, rank->job);
  instance_.types = fleet_.types();
  instance_.rho = options_.rho;
  instance_.aging = options_.aging;
  instance_.period = hours(options_.period);
  instance_.restart = hours(options_.restart);
  instance_.boot = hours(options_.boot);
  instance_.prepare();
}

void Andreas::add_job(const View& view, JobId id) {
  const auto due = view.deadline(id);
  Job job{.id = id.value,
          .choices = &fleet_.choices(view, id),
          .work = hours_left(view, id),
          .due = due ? hours(*due - view.now) : kNoDueDate,
          .weight = weight_of(view, id),
          .submitted = hours(view.jobs.submitted[id] - view.now)};
  const auto is_lost = [&](const Share& share) { return node_at_[NodeId{share.node}] == kNone; };
  // Who has lost a node of its seat is placed like one that waits.
  if (seats_.has(id) && std::ranges::none_of(seats_.of(id).shares, is_lost)) {
    job.kept = seats_.of(id).choice;
    for (const Share& share : seats_.of(id).shares)
      job.home.push_back({node_at_[NodeId{share.node}], share.gpus});
  }
  instance_.jobs.push_back(std::move(job));
}

/// The seats by job of the instance; those who wait have none.
std::vector<Seat> Andreas::solve(std::uint64_t seed) const {
  const auto jobs = static_cast<std::int64_t>(instance_.jobs.size());
  Layout layout{instance_};
  const Solution solution = search(layout, {.iterations = std::clamp<std::int64_t>(
                                                options_.effort / jobs, 2, options_.iterations),
                                            .local = options_.local,
                                            .seed = seed,
                                            .best_share = options_.best_share});
  std::vector<Seat> seats(instance_.jobs.size());
  const auto named = [&](const Share& share) {
    return Share{nodes_[share.node].value, share.gpus};
  };
  for (const auto& [job, shares] : solution.gangs) {
    for (const Share& share : shares) seats[job].shares.push_back(named(share));
  }
  for (std::size_t job = 0; job < seats.size(); ++job) {
    const Spot& spot = solution.spots[job];
    seats[job].choice = spot.choice;
    if (spot.choice == kNone || !seats[job].shares.empty()) continue;
    const Choice& choice = (*instance_.jobs[job].choices)[spot.choice];
    seats[job].shares.push_back(named({spot.node, choice.gpus}));
  }
  return seats;
}

void Andreas::take_over(Pass& pass, std::vector<Seat> seats) {
  seats_.begin_pass();
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const JobId job{instance_.jobs[i].id};
    const bool had_seat = seats_.has(job);
    if (had_seat && seats_.of(job) == seats[i]) continue;
    if (had_seat) seats_.release(pass.plan, job);
    if (seats[i].choice != kNone) {
      if (!had_seat) dequeue(job);
      seats_.give(job, std::move(seats[i]));
    } else if (had_seat) {
      enqueue(pass.view, job);
    }
  }
  seats_.sort_pending();  // the solver's order is by pressure; starts go by JobId
}

}  // namespace berth::andreas

namespace berth {

namespace {

Result<void> read_prices(const Params& params, andreas::Options& options) {
  BERTH_TRY(options.tariff.price, params.number("price", 0, 1e6));
  BERTH_TRY(options.tariff.pue, params.number("pue", 1, 100));
  BERTH_TRY(options.omega, params.number("omega", 0, 1e9));
  BERTH_TRY(options.rho, params.number("rho", 0, 1e9));
  BERTH_TRY(options.aging, params.number("aging", 0, 1e9));
  return {};
}

Result<void> read_times(const Params& params, andreas::Options& options) {
  BERTH_TRY(options.period, params.positive_duration("period"));
  BERTH_TRY(options.restart, params.duration("restart"));
  BERTH_TRY(options.boot, params.duration("boot"));
  BERTH_TRY(options.idle_off, params.duration("idle_off"));
  BERTH_TRY(options.min_interval, params.duration("min_interval"));
  return {};
}

Result<std::unique_ptr<Policy>> make_andreas(const PolicyEntry&, const Params& params) {
  andreas::Options options;
  BERTH_TRY_VOID(read_prices(params, options));
  BERTH_TRY_VOID(read_times(params, options));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.iterations, params.integer("max_it", 1, 1'000'000));
  BERTH_TRY(options.effort, params.integer("effort", 1, 1'000'000'000));
  BERTH_TRY(options.window, params.whole<std::size_t>("window", 1, 10'000'000));
  BERTH_TRY(options.best_share, params.number("p_best", 0, 1));
  options.local.budget = options.effort;
  BERTH_TRY(options.local.sweeps, params.integer("sweeps", 0, 1'000'000));
  BERTH_TRY(options.local.may_postpone, params.flag("wait_cheaper"));
  return std::make_unique<andreas::Andreas>(options);
}

std::vector<ParamSpec> andreas_params() {
  std::vector<ParamSpec> params{
      {"price", "0.172", "EUR per kWh"},
      {"pue", "1.2", "power drawn by the building for every watt of a node"},
      {"omega", "1", "EUR per hour late of a job of weight 1"},
      {"rho", "100", "how many times the worst lateness of a postponed job counts"},
      {"aging", "0.01", "EUR per hour late and hour since submission, for jobs without deadline"},
      {"period", "1h", "time between two passes at most"},
      {"min_interval", "0", "seconds between two passes at least"},
      {"restart", "30", "seconds of its new node's cost that moving a running job counts"},
      {"boot", "120", "seconds a node is believed to boot"},
      {"idle_off", "0", "seconds without a job after which a node is switched off"},
      {"max_it", "1000", "constructions per pass at most"},
      {"sweeps", "100", "rounds of local search at most"},
      {"effort", "5000", "placements tried per pass: fewer constructions when there are many jobs"},
      {"window", "5000", "waiting jobs considered, the most pressing first"},
      {"p_best", "0.5",
       "how often a construction takes a job's best choice instead of drawing one"},
      {"wait_cheaper", "off", "jobs may wait because they run cheaper later"}};
  for (ParamSpec& spec : elastic_params()) params.push_back(std::move(spec));
  return params;
}

}  // namespace

PolicyEntry andreas_entry() {
  return {
      .name = "andreas",
      .summary =
          "preemptive, least energy and tardiness by randomised greedy; sizes jobs, switches nodes",
      .params = andreas_params(),
      .make = make_andreas,
      .test_settings = {{"elastic", "all"}}};
}

}  // namespace berth
