#include "policies/optimus/optimus.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

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
    std::uint64_t free = state.free_mask(slice.node) & ~slice.devices;
    for (; held < gpus && free != 0; ++held, ++slice.gpus, free &= free - 1)
      slice.devices |= free & (~free + 1);
  }
  std::erase_if(slices, [](const Slice& slice) { return slice.gpus == 0; });
  std::ranges::sort(slices, {}, &Slice::node);
  return held == gpus;
}

constexpr std::int64_t kDevice = 1000;  // thousandths

std::int64_t milli_per_worker(const Shape& shape) noexcept {
  return shape.is_fraction() ? shape.gpu_milli : kDevice;
}

class BelievedSpeeds final : public JobSpeeds {
 public:
  BelievedSpeeds(const Beliefs& beliefs, const std::vector<const Trainee*>& trainees)
      : beliefs_(beliefs), trainees_(trainees) {}
  [[nodiscard]] double speed(std::size_t job, TaskCounts tasks) const override {
    return beliefs_.speed(*trainees_[job], tasks.workers);
  }

 private:
  const Beliefs& beliefs_;
  const std::vector<const Trainee*>& trainees_;
};

/// The first free devices of the node, fewer if it has not so many.
Slice slice_on(const ClusterState& cluster, NodeId node, std::int32_t gpus) {
  std::uint64_t free = cluster.free_mask(node);
  Slice slice{.node = node, .gpus = gpus, .devices = 0};
  for (std::int32_t i = 0; i < gpus; ++i, free &= free - 1) slice.devices |= free & (~free + 1);
  return slice;
}

/// Devices in use by pool, in thousandths.
void measure_use(const ClusterState& cluster, std::vector<std::int64_t>& used) {
  used.clear();
  for (std::uint32_t i = 0; i < cluster.pools(); ++i)
    used.push_back((cluster.usable_gpus(PoolId{i}) - cluster.free_gpus(PoolId{i})) * kDevice);
}

}  // namespace

void Optimus::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  nodes_.assign(cluster.pools.size(), {});
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i)
    nodes_[cluster.nodes[i].pool.value].push_back(NodeId{i});
}

void Optimus::on_arrival(const View& view, JobId job) {
  beliefs_.add(view, job);
  active_.insert(job);
  waiting_.insert(job);
  rounds_.stir(view.now);
}

void Optimus::on_departure(const View& view, JobId job) {
  beliefs_.remove(view, job);
  active_.erase(job);
  waiting_.erase(job);
  rounds_.stir(view.now);
}

void Optimus::on_requeue(const View& view, JobId job) {
  waiting_.insert(job);
  rounds_.stir(view.now);
}

std::optional<Time> Optimus::next_wakeup(const View& view) { return rounds_.wakeup(view.now); }

void Optimus::decide(const View& view, Plan& plan, Rng&) {
  if (active_.empty()) rounds_.settle();
  if (rounds_.is_due(view.now)) {
    rounds_.hold(view.now);
    reallocate(view, plan);
    start_waiting(view, plan);
    if (std::ranges::none_of(active_, [&](JobId job) { return plan.holds(job); })) rounds_.settle();
  } else if (options_.start == StartRule::AtOnce) {
    start_waiting(view, plan);
  }
}

void Optimus::reallocate(const View& view, Plan& plan) {
  describe_jobs(view, plan);
  const BelievedSpeeds speeds(beliefs_, trainees_);
  const std::span<const TaskCounts> grants = allocator_.allocate(capacity_, jobs_, speeds);
  allocator_.keep_small_changes(jobs_, speeds, to_seconds(options_.overhead));
  carry_out(view, plan, grants);
}

void Optimus::describe_jobs(const View& view, const Plan& plan) {
  jobs_.clear();
  trainees_.clear();
  capacity_.clear();
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    capacity_.push_back(view.cluster.usable_gpus(PoolId{i}) * kDevice);
  used_.assign(capacity_.size(), 0);
  for (const JobId job : active_) {
    if (view.gpus(job) > 0) add_job(view, plan, job);  // others never compete for devices
  }
}

void Optimus::add_job(const View& view, const Plan& plan, JobId job) {
  const bool runs = plan.holds(job);
  const PoolId pool = runs ? plan.pool_of(job) : best_pool(view, job, used_);
  beliefs_.assign(view, job, pool);
  if (runs) beliefs_.observe(view, job);
  const Trainee& trainee = beliefs_.of(job);
  const Forecast forecast = beliefs_.forecast(view, job);
  const std::int64_t milli = milli_per_worker(view.shape(job));
  used_[pool.value] += milli * trainee.range.least;
  jobs_.push_back({.id = job,
                   .demand = {.ps = {}, .worker = {{pool.value, milli}}},
                   .least = {.workers = trainee.range.least},
                   .most = {.workers = trainee.range.most},
                   .held = {.workers = runs ? plan.gpus_of(job) : 0},
                   .work = forecast.work_left,
                   .eagerness = forecast.is_young ? options_.young_factor : 1,
                   .is_ready = beliefs_.speed(trainee, trainee.range.least) > 0});
  trainees_.push_back(&trainee);
}

/// Where its first workers go fast and few others are: among pools with room for them, otherwise
/// among all.
PoolId Optimus::best_pool(const View& view, JobId job, std::span<const std::int64_t> used) {
  const std::vector<PoolId>& pools = view.shape(job).pools;
  if (pools.size() == 1) return pools.front();
  const auto least = static_cast<std::size_t>(beliefs_.of(job).range.least);
  PoolId best = pools.front();
  double best_score = -1;
  for (const PoolId pool : pools) {
    if (!can_host(view, job, pool, used)) continue;
    const auto usable = static_cast<double>(view.cluster.usable_gpus(pool) * kDevice);
    const double load = static_cast<double>(used[pool.value] + kDevice) / usable;
    const double score = beliefs_.rates(view, job, pool)[least] / load;
    if (score <= best_score) continue;
    best = pool;
    best_score = score;
  }
  return best;
}

bool Optimus::can_host(const View& view, JobId job, PoolId pool,
                       std::span<const std::int64_t> used) const {
  const std::int64_t need = milli_per_worker(view.shape(job)) * beliefs_.of(job).range.least;
  return used[pool.value] + need <= view.cluster.usable_gpus(pool) * kDevice;
}

/// First everybody gives back who changes, then small jobs are placed before large ones. Where a
/// new size costs a process its devices, whoever can keep his does.
void Optimus::carry_out(const View& view, Plan& plan, std::span<const TaskCounts> grants) {
  if (view.sizes_are_agreed()) resize_in_place(view, plan, grants);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].held.workers == 0 || grants[i] == jobs_[i].held) continue;
    if (plan.gpus_of(jobs_[i].id) == grants[i].workers) continue;  // resized in place
    plan.preempt(jobs_[i].id, grants[i].workers > 0 ? Reason::Growth : Reason::Priority);
    waiting_.insert(jobs_[i].id);
  }
  place_grants(view, plan, grants);
}

/// Who shrinks makes room for who grows; who holds devices keeps them until it has its turn.
void Optimus::resize_in_place(const View& view, Plan& plan, std::span<const TaskCounts> grants) {
  std::vector<std::tuple<bool, std::int32_t, std::uint32_t>> order;  // grows, GPUs, position
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    const std::int32_t held = jobs_[i].held.workers;
    const std::int32_t gpus = grants[i].workers;
    if (held > 0 && gpus > 0 && gpus != held) order.emplace_back(gpus > held, gpus, i);
  }
  std::ranges::sort(order);
  for (const auto& [grows, gpus, at] : order) {
    const JobId job = jobs_[at].id;
    const Plan::Mark before = plan.mark();
    if (!try_resize_in_place(view, plan, job, gpus)) plan.rollback(before);
  }
}

/// With a part of its devices, or with more of its servers'. On several servers only if the run's
/// placement, which may take any others, needs as many.
bool Optimus::try_resize_in_place(const View& view, Plan& plan, JobId job, std::int32_t gpus) {
  if (view.shape(job).is_fraction()) return false;
  const PoolId pool = plan.pool_of(job);
  const auto held = plan.slices(job);
  resized_.assign(held.begin(), held.end());
  plan.preempt(job, Reason::Growth);
  if (!try_fit(plan.cluster(), resized_, gpus)) return false;
  set_terms(view, plan, job, gpus);
  if (resized_.size() > 1) {
    const bool may_spread =
        options_.place == PlaceRule::Run && view.shape(job).locality == Locality::Relaxed;
    if (!may_spread) return false;
    const Plan::Mark before = plan.mark();
    const bool is_worse = plan.try_start_sized(pool, job, gpus, Reason::Growth) &&
                          plan.slices(job).size() < resized_.size();
    if (is_worse) return false;
    plan.rollback(before);
  }
  if (!plan.try_start_on(job, pool, resized_, Reason::Growth)) return false;
  plan.set_pause(job, options_.overhead);
  return true;
}

void Optimus::place_grants(const View& view, Plan& plan, std::span<const TaskCounts> grants) {
  std::vector<std::pair<std::int32_t, std::uint32_t>> order;  // GPUs, position
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    if (grants[i].workers > 0 && !plan.holds(jobs_[i].id)) order.emplace_back(grants[i].workers, i);
  }
  std::ranges::sort(order);
  placers_.clear();
  placers_.resize(nodes_.size());
  for (const auto& [gpus, at] : order) {
    const JobId job = jobs_[at].id;
    const std::int32_t least = jobs_[at].least.workers;
    // What others left may be too scattered or lack cores: then it takes what there is.
    for (std::int32_t size = gpus; size >= least; --size) {
      if (try_start(view, plan, job, size, options_.place)) break;
    }
  }
}

void Optimus::set_terms(const View& view, Plan& plan, JobId job, std::int32_t gpus) {
  Terms terms = plan.terms(job);
  terms.batch = beliefs_.batch_on(view, job, gpus);
  static_cast<void>(plan.set_terms(job, terms));  // it holds nothing now: never declined
}

/// In the pool it was assigned to.
bool Optimus::try_start(const View& view, Plan& plan, JobId job, std::int32_t gpus,
                        PlaceRule rule) {
  const PoolId pool = beliefs_.of(job).pool;
  set_terms(view, plan, job, gpus);
  const bool is_first = view.jobs.first_start[job] == kNever;
  const Reason reason = view.jobs.is_running(job) ? Reason::Growth : Reason::Order;
  const bool started = (rule == PlaceRule::Even && try_start_evenly(view, plan, job, gpus)) ||
                       plan.try_start_sized(pool, job, gpus, reason);
  if (!started) return false;
  if (!is_first) plan.set_pause(job, options_.overhead);
  waiting_.erase(job);
  return true;
}

TaskPlacer& Optimus::placer_of(const Plan& plan, PoolId pool) {
  std::unique_ptr<TaskPlacer>& placer = placers_[pool.value];
  if (placer) return *placer;
  std::vector<std::vector<std::int64_t>> free;
  for (const NodeId node : nodes_[pool.value]) {
    const bool is_up = plan.cluster().is_up(node);
    free.push_back({is_up ? plan.cluster().free_on(node) : 0});
  }
  placer = std::make_unique<TaskPlacer>(std::move(free));
  return *placer;
}

/// On the fewest servers, the same number on each. Requests beyond whole devices are left to the
/// run's placement.
bool Optimus::try_start_evenly(const View& view, Plan& plan, JobId job, std::int32_t gpus) {
  const Shape& shape = view.shape(job);
  if (shape.is_fraction() || shape.needs_side_resources() || shape.locality != Locality::Relaxed)
    return false;
  const PoolId pool = beliefs_.of(job).pool;
  const PlacedJob wanted{.tasks = {.workers = gpus}, .demand = {.ps = {}, .worker = {{0, 1}}}};
  if (plan.cluster().free_gpus(pool) < gpus) return false;
  slices_.clear();
  std::int32_t found = 0;
  for (const MachineShare& share : placer_of(plan, pool).place(wanted)) {
    slices_.push_back(
        slice_on(plan.cluster(), nodes_[pool.value][share.machine], share.tasks.workers));
    found += std::popcount(slices_.back().devices);
  }
  // The run's placement may have taken what the placer still counts.
  if (found != gpus) return false;
  std::ranges::sort(slices_, {}, &Slice::node);
  return plan.try_start_on(job, pool, slices_);
}

/// First workers for whoever waits, in order of arrival, where there is room.
void Optimus::start_waiting(const View& view, Plan& plan) {
  if (waiting_.empty()) return;
  declined_.assign(view.shapes.size(), std::numeric_limits<std::int32_t>::max());
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const JobId job = *at++;  // a start takes it out
    std::int32_t& declined = declined_[plan.shape_of(job).value];
    const std::int32_t least = beliefs_.of(job).range.least;
    if (least < declined && !try_first_workers(view, plan, job)) declined = least;
  }
}

bool Optimus::try_first_workers(const View& view, Plan& plan, JobId job) {
  if (view.gpus(job) == 0) {
    if (!plan.try_start(job)) return false;
    waiting_.erase(job);
    return true;
  }
  if (const auto found = plan.found_on(job); !found.empty()) {
    beliefs_.assign(view, job, view.cluster.cluster().nodes[found.front().node.value].pool);
    set_terms(view, plan, job, plan.found_gpus(job));
    if (plan.try_keep(job)) {
      waiting_.erase(job);
      return true;
    }
  }
  measure_use(plan.cluster(), used_);
  const PoolId first = best_pool(view, job, used_);
  const std::int32_t least = beliefs_.of(job).range.least;
  beliefs_.assign(view, job, first);
  if (try_start(view, plan, job, least, PlaceRule::Run)) return true;
  return std::ranges::any_of(view.shape(job).pools, [&](PoolId pool) {
    if (pool == first) return false;
    beliefs_.assign(view, job, pool);
    return try_start(view, plan, job, least, PlaceRule::Run);
  });
}

}  // namespace berth::optimus

namespace berth {

namespace {

Result<optimus::BeliefOptions> read_beliefs(const Params& params) {
  optimus::BeliefOptions options;
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(const std::size_t work, params.choice("work", {"losses", "estimate"}));
  options.work = static_cast<optimus::WorkSource>(work);
  BERTH_TRY(const std::size_t speed, params.choice("speed", {"profile", "fit"}));
  options.speed = static_cast<optimus::SpeedSource>(speed);
  BERTH_TRY(options.convergence.delta, params.number("delta", 1e-6, 1));
  BERTH_TRY(options.convergence.patience, params.integer("patience", 1, 1000));
  BERTH_TRY(options.fit.favour_late, params.flag("favour_late"));
  BERTH_TRY(const std::int64_t points, params.integer("max_points", 3, 1'000'000));
  options.fit.max_points = static_cast<std::size_t>(points);
  BERTH_TRY(options.young_share, params.number("young_epochs", 0, 1));
  return options;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  optimus::Options options;
  BERTH_TRY(options.beliefs, read_beliefs(params));
  BERTH_TRY(options.interval, params.duration("interval"));
  if (options.interval <= Duration::zero())
    return params.wrong("interval", "must be more than zero");
  BERTH_TRY(options.overhead, params.duration("overhead"));
  BERTH_TRY(options.young_factor, params.number("young_factor", 0, 1));
  BERTH_TRY(const std::size_t start, params.choice("start", {"now", "interval"}));
  options.start = static_cast<optimus::StartRule>(start);
  BERTH_TRY(const std::size_t place, params.choice("place", {"run", "even"}));
  options.place = static_cast<optimus::PlaceRule>(place);
  BERTH_TRY(const std::int64_t ahead, params.integer("look_ahead", 1, 1000));
  options.look_ahead = static_cast<std::int32_t>(ahead);
  return std::make_unique<optimus::Optimus>(entry.name, options);
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

PolicyEntry optimus_entry() {
  return {.name = "optimus",
          .summary =
              "elastic; GPUs go where they shorten the remaining time most, predicted from losses",
          .params = optimus_params(),
          .make = make};
}

}  // namespace berth
