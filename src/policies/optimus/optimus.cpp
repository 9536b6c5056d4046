#include "policies/optimus/optimus.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "base/device_mask.h"

namespace berth::optimus {

namespace {

/// Makes the slices so many devices in all: from where there are fewest it gives back first, and
/// takes free ones of the same servers. False: these have not so many.
bool try_fit(const ClusterState& state, std::vector<Slice>& slices, std::int32_t gpus) {
  std::int32_t held = 0;
  for (const Slice& slice : slices) held += slice.gpus;
  std::ranges::sort(slices, {},
                    [](const Slice& slice) { return std::tuple(slice.gpus, slice.node); });
  for (Slice& slice : slices) {
    for (; held > gpus && slice.gpus > 0; --held, --slice.gpus)
      slice.devices &= ~std::bit_floor(slice.devices);
    const DeviceMask free{state.free_mask(slice.node) & ~slice.devices};
    const std::int32_t more = std::clamp(gpus - held, 0, free.size());
    slice.devices |= free.lowest(more);
    slice.gpus += more;
    held += more;
  }
  std::erase_if(slices, [](const Slice& slice) { return slice.gpus == 0; });
  std::ranges::sort(slices, {}, &Slice::node);
  return held == gpus;
}

constexpr std::int64_t kDevice = 1000;  // thousandths

std::int64_t milli_per_worker(const Shape& shape) noexcept {
  return shape.is_fraction() ? shape.gpu_milli : kDevice;
}

class PredictedSpeeds final : public JobSpeeds {
 public:
  PredictedSpeeds(const Predictions& predictions, const std::vector<const Trainee*>& trainees)
      : predictions_(predictions), trainees_(trainees) {}
  [[nodiscard]] double speed(std::size_t job, TaskCounts tasks) const override {
    return predictions_.speed(*trainees_[job], tasks.workers);
  }

 private:
  const Predictions& predictions_;
  const std::vector<const Trainee*>& trainees_;
};

/// The first free devices of the node, fewer if it has not so many.
Slice slice_on(const ClusterState& cluster, NodeId node, std::int32_t gpus) {
  const DeviceMask free{cluster.free_mask(node)};
  return {.node = node, .gpus = gpus, .devices = free.lowest(gpus)};
}

}  // namespace

void Optimus::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  nodes_.resize(cluster.pools.size());
  used_.resize(cluster.pools.size());
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    nodes_[cluster.nodes[i].pool].push_back(NodeId{i});
}

void Optimus::on_arrival(const View& view, JobId job) {
  predictions_.add(view, job);
  active_.insert(job);
  waiting_.insert(job);
  rounds_.stir(view.now);
}

void Optimus::on_departure(const View& view, JobId job) {
  predictions_.remove(view, job);
  active_.erase(job);
  waiting_.erase(job);
  rounds_.stir(view.now);
}

void Optimus::on_requeue(const View& view, JobId job) {
  waiting_.insert(job);
  rounds_.stir(view.now);
}

std::optional<Time> Optimus::next_wakeup(const View& view) { return rounds_.wakeup(view.now); }

void Optimus::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  if (active_.empty()) rounds_.settle();
  if (rounds_.is_due(view.now)) {
    rounds_.hold(view.now);
    reallocate(pass);
    start_waiting(pass);
    // With nothing running no loss comes in and no speed is measured.
    if (std::ranges::none_of(active_, [&](JobId job) { return plan.holds(job); })) rounds_.settle();
  } else if (options_.start == StartRule::AtOnce) {
    start_waiting(pass);
  }
}

void Optimus::reallocate(Pass& pass) {
  describe_jobs(pass.view, pass.plan);
  const PredictedSpeeds speeds(predictions_, trainees_);
  const std::span<const TaskCounts> grants = allocator_.allocate(capacity_, jobs_, speeds);
  // A resize costs a checkpoint and a restart: what saves less is not worth it.
  allocator_.keep_small_changes(jobs_, speeds, to_seconds(options_.overhead));
  carry_out(pass, grants);
}

void Optimus::describe_jobs(const View& view, const Plan& plan) {
  jobs_.clear();
  trainees_.clear();
  capacity_.clear();
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    capacity_.push_back(view.cluster.usable_gpus(PoolId{i}) * kDevice);
  used_.resize(0);
  used_.resize(capacity_.size());  // nothing yet: jobs are added one after the other
  for (const JobId job : active_) {
    if (view.gpus(job) > 0) add_job(view, plan, job);  // others never compete for devices
  }
}

void Optimus::add_job(const View& view, const Plan& plan, JobId job) {
  // A job that runs stays in its pool: what was measured there would be lost by a move.
  const bool runs = plan.holds(job);
  const PoolId pool = runs ? plan.pool_of(job) : best_pool(view, job);
  predictions_.assign(view, job, pool);
  if (runs) predictions_.observe(view, job);
  const Trainee& trainee = predictions_.of(job);
  const Forecast forecast = predictions_.forecast(view, job);
  const std::int64_t milli = milli_per_worker(view.shape(job));
  used_[pool] += milli * trainee.range.least;
  jobs_.push_back({.id = job,
                   .demand = {.ps = {}, .worker = {{pool.value, milli}}},
                   .least = {.workers = trainee.range.least},
                   .most = {.workers = trainee.range.most},
                   .held = {.workers = runs ? plan.gpus_of(job) : 0},
                   .work = forecast.work_left,
                   .eagerness = forecast.is_young ? options_.young_factor : 1,
                   .is_ready = predictions_.speed(trainee, trainee.range.least) > 0});
  trainees_.push_back(&trainee);
}

/// Where its first workers go fast and few others are: among pools with room for them, otherwise
/// among all.
PoolId Optimus::best_pool(const View& view, JobId job) {
  const std::vector<PoolId>& pools = view.shape(job).pools;
  if (pools.size() == 1) return pools.front();
  const auto least = static_cast<std::size_t>(predictions_.of(job).range.least);
  PoolId best = pools.front();
  double best_score = -1;
  for (const PoolId pool : pools) {
    if (!can_host(view, job, pool)) continue;
    const auto usable = static_cast<double>(view.cluster.usable_gpus(pool) * kDevice);
    const double load = static_cast<double>(used_[pool] + kDevice) / usable;
    const double score = predictions_.rates(view, job, pool)[least] / load;
    if (score <= best_score) continue;
    best = pool;
    best_score = score;
  }
  return best;
}

bool Optimus::can_host(const View& view, JobId job, PoolId pool) const {
  const std::int64_t need = milli_per_worker(view.shape(job)) * predictions_.of(job).range.least;
  return used_[pool] + need <= view.cluster.usable_gpus(pool) * kDevice;
}

/// First everybody gives back who changes, then small jobs are placed before large ones. Where a
/// new size costs a process its devices, whoever can keep his does.
void Optimus::carry_out(Pass& pass, std::span<const TaskCounts> grants) {
  Plan& plan = pass.plan;
  if (pass.view.sizes_are_agreed()) resize_in_place(pass, grants);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].held.workers == 0 || grants[i] == jobs_[i].held) continue;
    if (plan.gpus_of(jobs_[i].id) == grants[i].workers) continue;  // resized in place
    plan.preempt(jobs_[i].id, grants[i].workers > 0 ? Reason::Growth : Reason::Priority);
    waiting_.insert(jobs_[i].id);
  }
  place_grants(pass, grants);
}

/// Who shrinks makes room for who grows; who holds devices keeps them until it has its turn.
void Optimus::resize_in_place(Pass& pass, std::span<const TaskCounts> grants) {
  std::vector<std::tuple<bool, std::int32_t, std::uint32_t>> order;  // grows, GPUs, position
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    const std::int32_t held = jobs_[i].held.workers;
    const std::int32_t gpus = grants[i].workers;
    if (held > 0 && gpus > 0 && gpus != held) order.emplace_back(gpus > held, gpus, i);
  }
  std::ranges::sort(order);
  for (const auto& [grows, gpus, at] : order) {
    const JobId job = jobs_[at].id;
    const std::int32_t size = gpus;
    pass.attempt([&] { return try_resize_in_place(pass, job, size); });
  }
}

/// With a part of its devices, or with more of its servers'. On several servers only if the run's
/// placement, which may take any others, needs as many.
bool Optimus::try_resize_in_place(Pass& pass, JobId job, std::int32_t gpus) {
  const Shape& shape = pass.view.shape(job);
  Plan& plan = pass.plan;
  if (shape.is_fraction()) return false;
  const PoolId pool = plan.pool_of(job);
  resized_ = devices_of(plan, job);
  plan.preempt(job, Reason::Growth);
  if (!try_fit(plan.cluster(), resized_, gpus)) return false;
  set_terms(pass, job, gpus);
  if (resized_.size() > 1) {
    if (options_.place == PlaceRule::Even || shape.locality != Locality::Relaxed) return false;
    const bool is_worse = pass.attempt([&] {
      return plan.try_start_sized(pool, job, gpus, Reason::Growth) &&
             plan.slices(job).size() < resized_.size();
    });
    if (is_worse) return false;
  }
  if (!plan.try_start_on(job, pool, resized_, Reason::Growth)) return false;
  plan.set_pause(job, options_.overhead);
  return true;
}

void Optimus::place_grants(Pass& pass, std::span<const TaskCounts> grants) {
  std::vector<std::pair<std::int32_t, std::uint32_t>> order;  // GPUs, position
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    if (grants[i].workers > 0 && !pass.plan.holds(jobs_[i].id))
      order.emplace_back(grants[i].workers, i);
  }
  std::ranges::sort(order);
  placers_.clear();
  placers_.resize(nodes_.size());
  for (const auto& [gpus, at] : order) {
    const JobId job = jobs_[at].id;
    const std::int32_t least = jobs_[at].least.workers;
    // What others left may be too scattered or lack cores: then it takes what there is.
    for (std::int32_t size = gpus; size >= least; --size) {
      if (try_start(pass, job, size, options_.place)) break;
    }
  }
}

void Optimus::set_terms(Pass& pass, JobId job, std::int32_t gpus) {
  Terms terms = pass.plan.terms(job);
  terms.batch = predictions_.batch_on(pass.view, job, gpus);
  static_cast<void>(pass.plan.set_terms(job, terms));  // it holds nothing now: never declined
}

/// In the pool it was assigned to.
bool Optimus::try_start(Pass& pass, JobId job, std::int32_t gpus, PlaceRule rule) {
  const JobTable& jobs = pass.view.jobs;
  const PoolId pool = predictions_.of(job).pool;
  set_terms(pass, job, gpus);
  const Reason reason = jobs.is_running(job) ? Reason::Growth : Reason::Order;
  const bool started = (rule == PlaceRule::Even && try_start_evenly(pass, job, gpus)) ||
                       pass.plan.try_start_sized(pool, job, gpus, reason);
  if (!started) return false;
  if (jobs.first_start[job] != kNever) pass.plan.set_pause(job, options_.overhead);
  waiting_.erase(job);
  return true;
}

TaskPlacer& Optimus::placer_of(const Plan& plan, PoolId pool) {
  std::unique_ptr<TaskPlacer>& placer = placers_[pool.value];
  if (placer) return *placer;
  std::vector<std::vector<std::int64_t>> free;
  for (const NodeId node : nodes_[pool]) {
    const bool is_up = plan.cluster().is_up(node);
    free.push_back({is_up ? plan.cluster().free_on(node) : 0});
  }
  placer = std::make_unique<TaskPlacer>(std::move(free));
  return *placer;
}

/// On the fewest servers, the same number on each. Requests beyond whole devices are left to the
/// run's placement.
bool Optimus::try_start_evenly(Pass& pass, JobId job, std::int32_t gpus) {
  Plan& plan = pass.plan;
  const Shape& shape = pass.view.shape(job);
  if (shape.is_fraction() || shape.needs_side_resources() || shape.locality != Locality::Relaxed)
    return false;
  const PoolId pool = predictions_.of(job).pool;
  const PlacedJob wanted{.tasks = {.workers = gpus}, .demand = {.ps = {}, .worker = {{0, 1}}}};
  if (plan.cluster().free_gpus(pool) < gpus) return false;
  slices_.clear();
  std::int32_t found = 0;
  for (const MachineShare& share : placer_of(plan, pool).place(wanted)) {
    slices_.push_back(slice_on(plan.cluster(), nodes_[pool][share.machine], share.tasks.workers));
    found += std::popcount(slices_.back().devices);
  }
  // The run's placement may have taken what the placer still counts.
  if (found != gpus) return false;
  std::ranges::sort(slices_, {}, &Slice::node);
  return plan.try_start_on(job, pool, slices_);
}

/// First workers for whoever waits, in order of arrival, where there is room. Where a size finds
/// none no larger one of the same shape is tried.
void Optimus::start_waiting(Pass& pass) {
  if (waiting_.empty()) return;
  declined_.resize(0);  // all of it anew
  declined_.resize(pass.view.shapes.size(), std::numeric_limits<std::int32_t>::max());
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const JobId job = *at++;  // a start takes it out
    std::int32_t& declined = declined_[pass.plan.shape_of(job)];
    const std::int32_t least = predictions_.of(job).range.least;
    if (least < declined && !try_first_workers(pass, job)) declined = least;
  }
}

bool Optimus::try_first_workers(Pass& pass, JobId job) {
  if (pass.view.gpus(job) == 0) {
    if (!pass.plan.try_start(job)) return false;
    waiting_.erase(job);
    return true;
  }
  if (try_keep(pass, job)) return true;
  const ClusterState& cluster = pass.plan.cluster();
  for (std::uint32_t i = 0; i < cluster.pools(); ++i) {
    const PoolId pool{i};
    used_[pool] = (cluster.usable_gpus(pool) - cluster.free_gpus(pool)) * kDevice;
  }
  const PoolId first = best_pool(pass.view, job);
  const auto try_in = [&](PoolId pool) {
    predictions_.assign(pass.view, job, pool);
    return try_start(pass, job, predictions_.of(job).range.least, PlaceRule::Run);
  };
  return try_in(first) || std::ranges::any_of(pass.view.shape(job).pools, [&](PoolId pool) {
           return pool != first && try_in(pool);
         });
}

/// Where it still runs, from before this scheduler.
bool Optimus::try_keep(Pass& pass, JobId job) {
  const auto found = pass.plan.found_on(job);
  if (found.empty()) return false;
  const auto& nodes = pass.view.cluster.cluster().nodes;
  predictions_.assign(pass.view, job, nodes[found.front().node.value].pool);
  set_terms(pass, job, pass.plan.found_gpus(job));
  if (!pass.plan.try_keep(job)) return false;
  waiting_.erase(job);
  return true;
}

namespace {

Result<PredictionOptions> read_predictions(const Params& params) {
  PredictionOptions options;
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.work, params.choice<WorkSource>("work", {{"losses", WorkSource::Losses},
                                                             {"estimate", WorkSource::Estimate}}));
  BERTH_TRY(options.speed, params.choice<SpeedSource>("speed", {{"profile", SpeedSource::Profile},
                                                                {"fit", SpeedSource::Fit}}));
  BERTH_TRY(options.convergence.delta, params.number("delta", 1e-6, 1));
  BERTH_TRY(options.convergence.patience, params.integer("patience", 1, 1000));
  BERTH_TRY(options.fit.favour_late, params.flag("favour_late"));
  BERTH_TRY(options.fit.max_points, params.whole<std::size_t>("max_points", 3, 1'000'000));
  BERTH_TRY(options.young_share, params.number("young_epochs", 0, 1));
  return options;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  Options options;
  BERTH_TRY(options.predictions, read_predictions(params));
  BERTH_TRY(options.interval, params.positive_duration("interval"));
  BERTH_TRY(options.overhead, params.duration("overhead"));
  BERTH_TRY(options.young_factor, params.number("young_factor", 0, 1));
  BERTH_TRY(options.start, params.choice<StartRule>("start", {{"now", StartRule::AtOnce},
                                                              {"interval", StartRule::InRounds}}));
  BERTH_TRY(options.place, params.choice<PlaceRule>(
                               "place", {{"run", PlaceRule::Run}, {"even", PlaceRule::Even}}));
  BERTH_TRY(options.look_ahead, params.whole("look_ahead", 1, 1000));
  return std::make_unique<Optimus>(entry.name, options);
}

std::vector<ParamSpec> optimus_params() {
  std::vector<ParamSpec> params = elastic_params();
  const std::vector<ParamSpec> own = {
      {"interval", "10m", "seconds between two allocations, aligned to time zero"},
      {"overhead", "30",
       "seconds of a resize or restart, beside what the run charges; smaller savings do not "
       "resize"},
      {"young_factor", "0.95", "gains of young jobs count so much"},
      {"young_epochs", "0.1", "a job is young during this share of its predicted epochs"},
      {"delta", "0.01",
       "trained when an epoch lowers the loss by less than this of the first loss"},
      {"patience", "1", "epochs in a row for that"},
      {"favour_late", "on", "thirds of the loss history weigh 1, 4, 16"},
      {"max_points", "500", "losses in a fit; more are averaged"},
      {"look_ahead", "1", "GPUs more that a job is asked about when one gains nothing"},
      {"work", "losses", "work left: losses (estimate until they suffice) or estimate"},
      {"speed", "profile", "sizes a job has not run with: profile, or fit (curve through samples)"},
      {"start", "now", "new jobs: now with their fewest GPUs if free, or at the next interval"},
      {"place", "run", "run: the run's --placement; even: fewest servers, as many GPUs on each"}};
  params.insert(params.end(), own.begin(), own.end());
  return params;
}

}  // namespace

}  // namespace berth::optimus

namespace berth {

PolicyEntry optimus_entry() {
  return {.name = "optimus",
          .summary =
              "elastic; GPUs go where they shorten the remaining time most, predicted from losses",
          .params = optimus::optimus_params(),
          .make = optimus::make,
          .test_settings = {{"interval", "5"}, {"overhead", "1"}, {"elastic", "all"}}};
}

}  // namespace berth
