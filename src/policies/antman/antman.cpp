#include "policies/antman/antman.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "base/check.h"
#include "base/device_mask.h"

namespace berth::antman {

namespace {

constexpr std::int32_t kEvictionsBorne = 3;  // then only devices without a guaranteed job
constexpr std::int32_t kIdle = 0;            // level of a device that nobody is on

DeviceUse on_the_map(const Shape& shape) { return {.memory_mib = 0, .milli = shape.gpu_milli}; }

}  // namespace

Antman::Antman(std::string name, Options options)
    : name_(std::move(name)), options_(std::move(options)) {}

void Antman::begin(const View& view) {
  map_.emplace(view.cluster.cluster(), ClusterState::Mode::Devices);
  map_->track_devices();
  coordinator_.emplace(view, options_.rules);
  jobs_.resize(view.jobs.size());
}

void Antman::classify(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  JobRow& row = jobs_[job];
  const std::string_view group = view.text(request.group);
  row.tenant = options_.tenants.find(group.empty() ? view.text(request.user) : group);
  const bool named = options_.opportunistic.contains(to_string(request.kind)) ||
                     options_.opportunistic.contains(view.text(request.queue));
  const bool pays = !named && request.priority >= 0 && options_.tenants.quota(row.tenant) > 0;
  row.role = pays ? Role::Guaranteed : Role::Opportunistic;
}

std::optional<Refusal> Antman::admit(const View& view, JobId job) {
  classify(view, job);
  const std::int64_t quota = options_.tenants.quota(jobs_[job].tenant);
  if (!is_guaranteed(job) || view.gpus(job) <= quota) return std::nullopt;
  return Refusal{Reason::Quota,
                 fmt::format("asks for {} guaranteed GPUs, but its tenant's quota is {}",
                             view.gpus(job), quota)};
}

void Antman::enqueue(const View& view, JobId job, Line line) {
  jobs_[job].waits = true;
  if (is_guaranteed(job)) {
    guaranteed_waiting_.push(jobs_[job].tenant, job);
    blocked_tenants_.remove(jobs_[job].tenant);
    return;
  }
  guests_waiting_.push(view.jobs.shape[job], {line == Line::Head ? 0 : 1, job});
  if (options_.upgrade > Duration::zero()) patience_.set(job, view.now + options_.upgrade);
}

void Antman::unblock() {
  guests_waiting_.unblock();
  blocked_tenants_.clear();
}

/// Its devices came back, or are about to.
void Antman::release(const View& view, JobId job) {
  const Shape& shape = view.shape(job);
  const auto devices = coordinator_->devices(job);
  if (is_guaranteed(job) && !devices.empty()) {
    map_->give(devices, shape, job, on_the_map(shape));
    options_.tenants.give_back(jobs_[job].tenant, shape.gpus);
  }
  coordinator_->remove(job);
  unblock();
}

void Antman::on_arrival(const View& view, JobId job) { enqueue(view, job, Line::Tail); }

void Antman::on_departure(const View& view, JobId job) {
  if (!jobs_[job].waits) {
    release(view, job);
  } else if (is_guaranteed(job)) {
    guaranteed_waiting_.forget(jobs_[job].tenant, job);
  } else {
    guests_waiting_.forget(view.jobs.shape[job], job);
    patience_.drop(job);
  }
  jobs_[job].waits = false;
}

void Antman::on_requeue(const View& view, JobId job) {
  release(view, job);
  enqueue(view, job, Line::Head);
}

void Antman::on_capacity_change(const View&, NodeId node) {
  changed_nodes_.push_back(node);
  unblock();
}

/// The map follows once the jobs of a lost node have been taken off it.
void Antman::follow_nodes(const View& view) {
  for (const NodeId node : changed_nodes_) {
    if (map_->is_up(node) && !view.cluster.is_up(node)) map_->set_down(node);
    if (!map_->is_up(node) && view.cluster.is_up(node)) map_->set_up(node);
    coordinator_->mark(node);
  }
  changed_nodes_.clear();
}

void Antman::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  follow_nodes(view);
  coordinator_->settle(pass);
  for (const JobId job : coordinator_->starving().due(view.now)) evict(pass, job);
  coordinator_->settle(pass);
  promote_waiting(view);
  start_guaranteed(pass);
  start_opportunistic(pass);
  move_due(pass);
}

/// Guests who waited long enough are guaranteed from now on where that is paid for.
void Antman::promote_waiting(const View& view) {
  for (const JobId job : patience_.due(view.now)) {
    if (!options_.tenants.covers(jobs_[job].tenant, view.gpus(job))) continue;
    patience_.drop(job);
    guests_waiting_.forget(view.jobs.shape[job], job);
    jobs_[job].role = Role::Guaranteed;
    enqueue(view, job, Line::Tail);
  }
}

/// Tenants in order of the share of their quota they use, first come first served inside. A job
/// that finds no place holds up its own tenant only.
void Antman::start_guaranteed(Pass& pass) {
  while (true) {
    std::optional<TenantId> first;
    for (const TenantId tenant : guaranteed_waiting_.active()) {
      if (blocked_tenants_.has(tenant)) continue;
      if (!first || options_.tenants.before(tenant, *first)) first = tenant;
    }
    if (!first) return;
    const JobId job = guaranteed_waiting_.top(*first).job;
    if (options_.tenants.covers(*first, pass.view.gpus(job)) && try_guaranteed(pass, job)) {
      guaranteed_waiting_.pop(*first);
    } else {
      blocked_tenants_.add(*first);
    }
  }
}

bool Antman::try_guaranteed(Pass& pass, JobId job) {
  const Shape& shape = pass.view.shape(job);
  for (const PoolId pool : shape.pools) {
    slices_.clear();
    if (!map_->may_hold(pool, shape) || !pass.plan.place_on(*map_, shape, pool, slices_)) continue;
    if (!shape.is_fraction()) choose_devices(pass.view, slices_);
    if (!try_take(pass, job, pool, slices_)) {  // guests hold what is no device: cores, host memory
      for (const JobId guest : coordinator_->guests_on(pass.view, slices_)) evict(pass, guest);
      const bool fits = try_take(pass, job, pool, slices_);
      BERTH_CHECK(fits, "without guests a guaranteed job fits where the map says");
    }
    map_->take(slices_, shape, job, on_the_map(shape));
    options_.tenants.use(jobs_[job].tenant, shape.gpus);
    jobs_[job].waits = false;
    coordinator_->add(job, Role::Guaranteed, slices_);
    coordinator_->settle(pass);
    return true;
  }
  return false;
}

/// On each server the devices with fewest guests, then least used.
void Antman::choose_devices(const View& view, std::vector<Slice>& slices) const {
  for (Slice& slice : slices) {
    std::vector<std::tuple<std::int32_t, double, std::int32_t>> order;
    for (const std::int32_t device : DeviceMask{map_->free_mask(slice.node)}) {
      const DeviceLoad here = coordinator_->load(view, slice.node, device);
      order.emplace_back(here.guests, here.wanted, device);
    }
    std::ranges::sort(order);
    slice.devices = 0;
    for (std::int32_t i = 0; i < slice.gpus; ++i) {
      const auto device = std::get<2>(order[static_cast<std::size_t>(i)]);
      slice.devices |= std::uint64_t{1} << static_cast<unsigned>(device);
    }
  }
}

bool Antman::try_take(Pass& pass, JobId job, PoolId pool, std::span<const Slice> devices) {
  return pass.attempt([&] {
    coordinator_->make_room(pass, devices, job, Role::Guaranteed);
    Terms terms;
    terms.mode = ShareMode::Guaranteed;
    const bool set = pass.plan.set_terms(job, terms);
    BERTH_CHECK(set, "a waiting job takes any terms");
    return pass.plan.try_share_on(job, pool, devices, kMaxSharers, Reason::Order);
  });
}

/// First come, first served, but whoever finds a place may pass.
void Antman::start_opportunistic(Pass& pass) {
  const auto start = [&](JobId job) {
    const bool alone = jobs_[job].evictions >= kEvictionsBorne;
    const std::int32_t highest = alone ? kIdle : level_within(options_.rules.busiest);
    if (!try_opportunistic(pass, job, highest)) return Tried::NoPlace;
    patience_.drop(job);
    jobs_[job].waits = false;
    return Tried::Started;
  };
  guests_waiting_.resume([](ShapeId) { return true; }, start);
}

bool Antman::try_opportunistic(Pass& pass, JobId job, std::int32_t highest) {
  for (const PoolId pool : pass.view.shape(job).pools) {
    const auto chosen = coordinator_->choose(pool, pass.view.gpus(job), highest);
    if (!chosen) continue;
    const bool fits = pass.attempt([&] {
      coordinator_->make_room(pass, *chosen, job, Role::Opportunistic);
      return pass.plan.try_share_on(job, pool, *chosen, kMaxSharers, Reason::Packing);
    });
    if (!fits) continue;
    coordinator_->add(job, Role::Opportunistic, *chosen);
    coordinator_->settle(pass);
    return true;
  }
  return false;
}

void Antman::evict(Pass& pass, JobId job) {
  pass.plan.preempt(job, Reason::Eviction);
  ++jobs_[job].evictions;
  release(pass.view, job);
  enqueue(pass.view, job, Line::Head);
}

/// Who has been held back for long moves to devices that are idle.
void Antman::move_due(Pass& pass) {
  for (const JobId job : coordinator_->crawling().due(pass.view.now)) {
    if (!coordinator_->has_idle()) return;
    const std::vector<Slice> left = devices_of(pass.plan, job);
    const bool moved = try_restart(pass.plan, job, Reason::Interference,
                                   [&] { return try_opportunistic(pass, job, kIdle); });
    if (!moved) continue;
    pass.plan.set_pause(job, options_.migration_cost);
    coordinator_->mark(left);
    coordinator_->settle(pass);
    unblock();
  }
}

std::optional<Time> Antman::next_wakeup(const View& view) {
  const Time next =
      std::min({patience_.next_after(view.now), coordinator_->starving().next_after(view.now),
                coordinator_->crawling().next_after(view.now)});
  return next == kNever ? std::nullopt : std::optional{next};
}

namespace {

std::set<std::string, std::less<>> words_of(std::string_view text) {
  std::set<std::string, std::less<>> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) words.emplace(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<Tenants> tenants_of(const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("quota"));
  Tenants tenants;
  for (const auto& [tenant, numbers] : list) {
    const bool whole = numbers.size() == 1 && numbers.front() == std::floor(numbers.front()) &&
                       numbers.front() >= 0 && numbers.front() <= 1e9;
    if (!whole) return params.wrong("quota", "must be TENANT:GPUs in whole GPUs");
    tenants.set_quota(tenant, static_cast<std::int64_t>(numbers.front()));
  }
  return tenants;
}

Result<void> read_interference(const Params& params, Interference& interference) {
  BERTH_TRY(interference.tolerance, params.number("tol", 0, 10));
  BERTH_TRY(interference.least_rate, params.number("r_min", 0.001, 1));
  BERTH_TRY(interference.bandwidth_term, params.number("bw_term", 0, 10));
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  Options options;
  Coordinator::Rules& rules = options.rules;
  options.opportunistic = words_of(params.text("op"));
  BERTH_TRY(options.tenants, tenants_of(params));
  BERTH_TRY_VOID(read_interference(params, rules.interference));
  BERTH_TRY(rules.busiest, params.number("u_max", 0, 1));
  constexpr auto kMostGuests = static_cast<std::int32_t>(kMaxSharers) - 1;
  BERTH_TRY(rules.guests_beside, params.whole<std::int32_t>("max_op", 0, kMostGuests));
  BERTH_TRY(rules.guests_alone, params.whole<std::int32_t>("max_op_free", 0, kMostGuests));
  BERTH_TRY(rules.reserve_mib, params.whole<std::int32_t>("reserve", 0, 1'000'000));
  BERTH_TRY(rules.least_mib, params.whole<std::int32_t>("m_min", 0, 1'000'000));
  BERTH_TRY(options.upgrade, params.duration("op_upgrade"));
  BERTH_TRY(rules.crawling, params.duration("op_migrate"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  return std::make_unique<Antman>(entry.name, std::move(options));
}

}  // namespace

}  // namespace berth::antman

namespace berth {

PolicyEntry antman_entry() {
  return {
      .name = "antman",
      .summary = "guaranteed jobs as if alone, opportunistic ones on what they leave of the GPUs",
      .params =
          {{"op", "hpo,debug,interactive",
            "kinds and queues whose jobs are opportunistic, comma separated; a negative priority "
            "makes a job so too"},
           {"quota", "",
            "TENANT:GPUs guaranteed, comma separated; tenant is a job's group, else its user; none "
            "given: no limit for anybody"},
           {"tol", "0.02", "slowdown a guaranteed job bears"},
           {"r_min", "0.05", "least share of its kernels an opportunistic job issues; else paused"},
           {"bw_term", "0.1", "slowdown by memory traffic per share of kernels beside a job"},
           {"u_max", "0.8", "utilisation of a GPU from which no opportunistic job joins it"},
           {"max_op", "1", "opportunistic jobs on the GPU of a guaranteed job"},
           {"max_op_free", "3", "opportunistic jobs on any other GPU"},
           {"reserve", "500", "MiB of device memory kept free of opportunistic jobs"},
           {"m_min", "2048", "MiB of device memory to spare for a GPU to be joined"},
           {"op_upgrade", "30m",
            "seconds of waiting after which an opportunistic job is guaranteed if its tenant's "
            "quota has room; 0 = never"},
           {"op_migrate", "5m",
            "seconds at less than a fifth of its kernels after which an opportunistic job moves to "
            "idle GPUs; 0 = never"},
           {"migration_cost", "2", "seconds an opportunistic job pays when it moves"}},
      .make = antman::make,
      .test_settings = {{"op", "q1"}, {"op_upgrade", "20"}}};
}

}  // namespace berth
