#include "policies/andreas/andreas.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace berth {

namespace {
constexpr double kHour = 3600;
constexpr Duration kLeastWork = std::chrono::seconds{1};  // of a job that outlives its estimate
}  // namespace

void Andreas::begin(const View& view) {
  fleet_.begin(view.cluster.cluster(), view.jobs.size());
  const std::size_t nodes = view.cluster.cluster().nodes.size();
  rank_.resize(view.jobs.size());
  seat_at_.assign(view.jobs.size(), 0);
  users_.assign(nodes, 0);
  booted_.assign(nodes, kTimeZero);
  idle_since_.assign(nodes, kTimeZero);
  failed_.assign(nodes, false);
  node_at_.assign(nodes, andreas::kNone);
}

double Andreas::hours_left(const View& view, JobId job) const {
  return to_seconds(std::max(view.estimated_left(job), kLeastWork)) / kHour;
}

double Andreas::weight_of(const View& view, JobId job) const {
  return view.deadline(job) ? options_.omega * static_cast<double>(view.request(job).weight) : 0;
}

/// The pressure as of time zero: it grows alike for all jobs that wait.
void Andreas::enqueue(const View& view, JobId job) {
  const auto due = view.deadline(job);
  const double fastest = fleet_.choices(view, job).fastest().hours * hours_left(view, job);
  const double pressure =
      due ? fastest - to_seconds(*due) / kHour : -std::numeric_limits<double>::infinity();
  rank_[job.value] = Rank{pressure, weight_of(view, job), job};
  waiting_.insert(*rank_[job.value]);
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
  if (has_seat(job)) {
    leave_seat(job);
  } else {
    waiting_.erase(*rank_[job.value]);
  }
  has_changed_ = true;
}

void Andreas::on_requeue(const View& view, JobId job) {
  if (fleet_.choices(view, job).empty()) return;
  leave_seat(job);
  enqueue(view, job);
  has_changed_ = true;
}

/// A node that we switched on or off ourselves is no news.
void Andreas::on_capacity_change(const View& view, NodeId node) {
  const bool failed = view.cluster.has_failed(node);
  if (failed_[node.value] == failed) return;
  failed_[node.value] = failed;
  has_changed_ = true;
}

void Andreas::set_seat(JobId job, Seat seat) {
  for (const andreas::Share& share : seat.shares) {
    ++users_[share.node];
    idle_since_[share.node] = kNever;
  }
  seated_.push_back(job);
  seat_at_[job.value] = static_cast<std::uint32_t>(seated_.size());
  seats_.insert_or_assign(job, std::move(seat));
  pending_.push_back(job);
}

void Andreas::leave_seat(JobId job) {
  for (const andreas::Share& share : seat(job).shares) --users_[share.node];
  const std::uint32_t at = seat_at_[job.value] - 1;
  seated_[at] = seated_.back();
  seat_at_[seated_[at].value] = at + 1;
  seated_.pop_back();
  seat_at_[job.value] = 0;
  seats_.erase(job);
  std::erase(pending_, job);
}

bool Andreas::is_due(Time now) const noexcept {
  if (!last_pass_) return true;
  if (now >= *last_pass_ + options_.period) return true;
  return has_changed_ && now >= *last_pass_ + options_.min_interval;
}

/// True: who has come runs already, and nobody waits.
bool Andreas::keep_found(const View& view, Plan& plan) {
  bool is_any_kept = false;
  for (const JobId job : std::exchange(newcomers_, {})) {
    if (rank_[job.value] && view.jobs.is_waiting(job) && !has_seat(job) &&
        try_keep(view, plan, job))
      is_any_kept = true;
  }
  return is_any_kept && waiting_.empty();
}

bool Andreas::try_keep(const View& view, Plan& plan, JobId job) {
  const auto found = plan.found_on(job);
  slices_.assign(found.begin(), found.end());
  if (slices_.empty() || !plan.try_keep(job, Reason::Power)) return false;
  Seat own{.choice = fleet_.choice_found(view, job, slices_), .shares = {}};
  for (const Slice& slice : slices_) own.shares.push_back({slice.node.value, slice.gpus});
  waiting_.erase(*rank_[job.value]);
  set_seat(job, std::move(own));
  std::erase(pending_, job);
  return true;
}

void Andreas::decide(const View& view, Plan& plan, Rng& rng) {
  const bool keeps = keep_found(view, plan);
  const bool rescheduled = !keeps && is_due(view.now);
  if (keeps) {
    last_pass_ = view.now;
    has_changed_ = false;
  }
  if (rescheduled) reschedule(view, plan, rng);
  start_without_gpus(plan);
  start_seated(plan);
  if (rescheduled || keeps || view.now >= next_switch_) switch_nodes(view, plan);
}

std::optional<Time> Andreas::next_wakeup(const View& view) {
  Time next = next_switch_;
  if (!waiting_.empty() || !seated_.empty()) next = std::min(next, *last_pass_ + options_.period);
  if (has_changed_) next = std::min(next, *last_pass_ + options_.min_interval);
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

}  // namespace berth

namespace berth {

namespace {

Result<void> read_prices(const Params& params, AndreasOptions& options) {
  BERTH_TRY(options.tariff.price, params.number("price", 0, 1e6));
  BERTH_TRY(options.tariff.pue, params.number("pue", 1, 100));
  BERTH_TRY(options.omega, params.number("omega", 0, 1e9));
  BERTH_TRY(options.rho, params.number("rho", 0, 1e9));
  BERTH_TRY(options.aging, params.number("aging", 0, 1e9));
  return {};
}

Result<void> read_times(const Params& params, AndreasOptions& options) {
  BERTH_TRY(options.period, params.duration("period"));
  if (options.period <= Duration::zero()) return params.wrong("period", "must be more than zero");
  BERTH_TRY(options.restart, params.duration("restart"));
  BERTH_TRY(options.boot, params.duration("boot"));
  BERTH_TRY(options.idle_off, params.duration("idle_off"));
  BERTH_TRY(options.min_interval, params.duration("min_interval"));
  return {};
}

Result<std::unique_ptr<Policy>> make_andreas(const PolicyEntry&, const Params& params) {
  AndreasOptions options;
  BERTH_TRY_VOID(read_prices(params, options));
  BERTH_TRY_VOID(read_times(params, options));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.iterations, params.integer("max_it", 1, 1'000'000));
  BERTH_TRY(options.sweeps, params.integer("sweeps", 0, 1'000'000));
  BERTH_TRY(options.effort, params.integer("effort", 1, 1'000'000'000));
  BERTH_TRY(const std::int64_t window, params.integer("window", 1, 10'000'000));
  options.window = static_cast<std::size_t>(window);
  BERTH_TRY(options.best_share, params.number("p_best", 0, 1));
  BERTH_TRY(options.wait_cheaper, params.flag("wait_cheaper"));
  return std::make_unique<Andreas>(options);
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
      .make = make_andreas};
}

}  // namespace berth
