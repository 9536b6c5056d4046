#include "policies/antman/antman.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include <cmath>
#include "base/check.h"
#include "policies/antman/lite.h"

namespace berth::antman {

namespace {

constexpr std::int32_t kEvictionsBorne = 3;
constexpr std::int32_t kIdle = 0;  // level of a device that nobody is on

DeviceUse on_the_map(const Shape& shape) { return {.memory_mib = 0, .milli = shape.gpu_milli}; }

}  // namespace

Antman::Antman(std::string name, Options options)
    : name_(std::move(name)), options_(std::move(options)) {}

void Antman::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  map_.emplace(cluster, ClusterState::Mode::Devices);
  map_->track_devices();
  jobs_.resize(view.jobs.size());
  waiting_.resize(options_.tenants.size());
  // A guest that nobody can hold back would hurt the job it lives beside.
  if (!view.can(Ability::Throttle)) options_.guests_beside = 0;
  for (std::uint32_t pool = 0; pool < view.cluster.pools(); ++pool)
    spare_.emplace_back(cluster.nodes.size(), view.cluster.largest_node(PoolId{pool}));
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node)
    offer_devices(view, NodeId{node});
}

void Antman::classify(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  JobRow& mine = jobs_[job.value];
  const std::string_view group = view.text(request.group);
  mine.tenant = options_.tenants.find(group.empty() ? view.text(request.user) : group);
  const bool named = options_.opportunistic.contains(to_string(request.kind)) ||
                     options_.opportunistic.contains(view.text(request.queue));
  mine.guaranteed = !named && request.priority >= 0 && options_.tenants.quota(mine.tenant) > 0;
}

std::optional<Refusal> Antman::admit(const View& view, JobId job) {
  classify(view, job);
  const JobRow& mine = jobs_[job.value];
  const std::int64_t quota = options_.tenants.quota(mine.tenant);
  if (!mine.guaranteed || view.gpus(job) <= quota) return std::nullopt;
  return Refusal{Reason::Quota,
                 fmt::format("asks for {} guaranteed GPUs, but its tenant's quota is {}",
                             view.gpus(job), quota)};
}

void Antman::enqueue(const View& view, JobId job, Line line) {
  blocked_.resize(view.shapes.size(), false);
  JobRow& mine = jobs_[job.value];
  mine.waits = true;
  mine.waits_since = view.now;
  if (mine.guaranteed) {
    waiting_[mine.tenant.value].waiting.push(job);
    waiting_[mine.tenant.value].blocked = false;
    return;
  }
  guests_waiting_.push(view.jobs.shape[job], {line == Line::Head ? 0 : 1, job});
  if (options_.upgrade > Duration::zero()) patience_.insert({view.now + options_.upgrade, job});
}

void Antman::unblock() {
  blocked_.assign(blocked_.size(), false);
  for (TenantRow& tenant : waiting_) tenant.blocked = false;
}

/// Its devices came back, or are about to.
void Antman::release(const View& view, JobId job) {
  JobRow& mine = jobs_[job.value];
  const Shape& shape = view.shape(job);
  if (mine.guaranteed && !mine.devices.empty()) {
    map_->give(mine.devices, shape, job, on_the_map(shape));
    options_.tenants.give_back(mine.tenant, shape.gpus);
  }
  mark(mine.devices);
  mine.devices.clear();
  note_state(view, job, Terms{});
  unblock();
}

void Antman::on_arrival(const View& view, JobId job) { enqueue(view, job, Line::Tail); }

void Antman::on_departure(const View& view, JobId job) {
  JobRow& mine = jobs_[job.value];
  if (!mine.waits) {
    release(view, job);
  } else if (!mine.guaranteed) {
    guests_waiting_.forget(view.jobs.shape[job], job);
    patience_.erase({mine.waits_since + options_.upgrade, job});
  }
  mine.waits = false;
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
    marked_.push_back(node);
  }
  changed_nodes_.clear();
}

void Antman::decide(const View& view, Plan& plan, Rng&) {
  follow_nodes(view);
  settle(view, plan);
  evict_due(view, plan);
  promote_waiting(view);
  start_guaranteed(view, plan);
  start_opportunistic(view, plan);
  move_due(view, plan);
}

void Antman::promote_waiting(const View& view) {
  for (auto it = patience_.begin(); it != patience_.end() && it->first <= view.now;) {
    const JobId job = it->second;
    JobRow& mine = jobs_[job.value];
    const std::int32_t gpus = view.gpus(job);
    if (!options_.tenants.covers(mine.tenant, gpus)) {
      ++it;
      continue;
    }
    it = patience_.erase(it);
    guests_waiting_.forget(view.jobs.shape[job], job);
    mine.guaranteed = true;
    enqueue(view, job, Line::Tail);
  }
}

/// Tenants in order of the share of their quota they use, first come first served inside. A job
/// that finds no place holds up its own tenant only.
void Antman::start_guaranteed(const View& view, Plan& plan) {
  while (true) {
    std::optional<TenantId> first;
    for (std::uint32_t i = 0; i < waiting_.size(); ++i) {
      waiting_[i].waiting.drop_over(view.jobs);
      const TenantId tenant{i};
      if (waiting_[i].blocked || waiting_[i].waiting.empty()) continue;
      if (!first || options_.tenants.before(tenant, *first)) first = tenant;
    }
    if (!first) return;
    TenantRow& tenant = waiting_[first->value];
    const JobId job = tenant.waiting.top();
    if (!options_.tenants.covers(*first, view.gpus(job)) || !try_guaranteed(view, plan, job)) {
      tenant.blocked = true;
      continue;
    }
    static_cast<void>(tenant.waiting.pop(view.jobs));
  }
}

bool Antman::try_guaranteed(const View& view, Plan& plan, JobId job) {
  const Shape& shape = view.shape(job);
  JobRow& mine = jobs_[job.value];
  for (const PoolId pool : shape.pools) {
    slices_.clear();
    if (!map_->may_hold(pool, shape) || !plan.place_on(*map_, shape, pool, slices_)) continue;
    if (!shape.is_fraction()) choose_devices(view, slices_);
    mine.devices = slices_;
    mine.pool = pool;
    if (!take_devices(view, plan, job)) {  // guests hold what is no device: cores, host memory
      collect_guests(view, mine.devices, here_);
      for (const JobId guest : std::vector<JobId>(here_)) evict(view, plan, guest);
      const bool fits = take_devices(view, plan, job);
      BERTH_CHECK(fits, "without guests a guaranteed job fits where the map says");
    }
    map_->take(mine.devices, shape, job, on_the_map(shape));
    options_.tenants.use(mine.tenant, shape.gpus);
    mine.waits = false;
    mark(mine.devices);
    settle(view, plan);
    return true;
  }
  return false;
}

/// On each server the devices with fewest guests, then least used.
void Antman::choose_devices(const View& view, std::vector<Slice>& slices) {
  for (Slice& slice : slices) {
    std::vector<std::tuple<std::int32_t, double, std::int32_t>> order;
    for_each_device(map_->free_mask(slice.node), [&](std::int32_t device) {
      const Device here = look_at(view, slice.node, device);
      order.emplace_back(here.guests, here.wanted, device);
    });
    std::ranges::sort(order);
    slice.devices = 0;
    for (std::int32_t i = 0; i < slice.gpus; ++i) {
      const auto device = std::get<2>(order[static_cast<std::size_t>(i)]);
      slice.devices |= std::uint64_t{1} << static_cast<unsigned>(device);
    }
  }
}

bool Antman::take_devices(const View& view, Plan& plan, JobId job) {
  const Plan::Mark before = plan.mark();
  const JobRow& mine = jobs_[job.value];
  make_room(view, plan, mine.devices, job);
  Terms terms;
  terms.mode = ShareMode::Guaranteed;
  const bool set = plan.set_terms(job, terms);
  BERTH_CHECK(set, "a waiting job takes any terms");
  if (plan.try_share_on(job, mine.pool, mine.devices, kMaxSharers, Reason::Order)) return true;
  plan.rollback(before);
  return false;
}

/// First come, first served, but whoever finds a place may pass.
void Antman::start_opportunistic(const View& view, Plan& plan) {
  while (true) {
    std::optional<ShapeId> first;
    for (const ShapeId shape : guests_waiting_.active()) {
      if (blocked_[shape.value]) continue;
      if (!first || guests_waiting_.top(shape) < guests_waiting_.top(*first)) first = shape;
    }
    if (!first) return;
    const JobId job = guests_waiting_.top(*first).job;
    JobRow& mine = jobs_[job.value];
    const std::int32_t highest = mine.alone ? kIdle : level_within(options_.busiest);
    if (!try_opportunistic(view, plan, job, highest)) {
      blocked_[first->value] = true;
      continue;
    }
    static_cast<void>(guests_waiting_.pop(*first));
    patience_.erase({mine.waits_since + options_.upgrade, job});
    mine.waits = false;
  }
}

bool Antman::try_opportunistic(const View& view, Plan& plan, JobId job, std::int32_t highest) {
  JobRow& mine = jobs_[job.value];
  for (const PoolId pool : view.shape(job).pools) {
    const auto chosen = spare_[pool.value].choose(view.gpus(job), highest);
    if (!chosen) continue;
    const Plan::Mark before = plan.mark();
    make_room(view, plan, *chosen, job);
    if (!plan.try_share_on(job, pool, *chosen, kMaxSharers, Reason::Packing)) {
      plan.rollback(before);
      continue;
    }
    mine.devices = *chosen;
    mine.pool = pool;
    mark(mine.devices);
    settle(view, plan);
    return true;
  }
  return false;
}

void Antman::evict_due(const View& view, Plan& plan) {
  while (!starving_.empty() && starving_.begin()->first <= view.now)
    evict(view, plan, starving_.begin()->second);
  settle(view, plan);
}

void Antman::evict(const View& view, Plan& plan, JobId job) {
  JobRow& mine = jobs_[job.value];
  plan.preempt(job, Reason::Eviction);
  mine.alone = ++mine.evictions >= kEvictionsBorne;
  release(view, job);
  enqueue(view, job, Line::Head);
}

/// Who has been held back for long moves to devices that are idle.
void Antman::move_due(const View& view, Plan& plan) {
  std::vector<JobId> due;
  for (const Due& entry : crawling_) {
    if (entry.first > view.now) break;
    due.push_back(entry.second);
  }
  for (const JobId job : due) {
    const bool any_idle = std::ranges::any_of(spare_, &SpareDevices::has_idle);
    if (!any_idle) return;
    const Plan::Mark before = plan.mark();
    const std::vector<Slice> left = jobs_[job.value].devices;
    plan.preempt(job, Reason::Interference);
    if (!try_opportunistic(view, plan, job, kIdle)) {
      plan.rollback(before);
      continue;
    }
    plan.set_pause(job, options_.migration_cost);
    mark(left);
    settle(view, plan);
    unblock();
  }
}

std::optional<Time> Antman::next_wakeup(const View& view) {
  Time next = kNever;
  for (const auto* due : {&patience_, &starving_, &crawling_}) {
    const auto later = due->upper_bound({view.now, JobId{0xffffffffU}});
    if (later != due->end()) next = std::min(next, later->first);
  }
  return next == kNever ? std::nullopt : std::optional{next};
}

}  // namespace berth::antman

namespace berth {

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

Result<antman::Tenants> tenants_of(const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("quota"));
  antman::Tenants tenants;
  for (const auto& [tenant, numbers] : list) {
    const bool whole = numbers.size() == 1 && numbers.front() == std::floor(numbers.front()) &&
                       numbers.front() >= 0 && numbers.front() <= 1e9;
    if (!whole) return params.wrong("quota", "must be TENANT:GPUs in whole GPUs");
    tenants.set_quota(tenant, static_cast<std::int64_t>(numbers.front()));
  }
  return tenants;
}

Result<std::int32_t> small(const Params& params, std::string_view key, std::int64_t most) {
  BERTH_TRY(const std::int64_t number, params.integer(key, 0, most));
  return static_cast<std::int32_t>(number);
}

Result<void> read_interference(const Params& params, Interference& interference) {
  BERTH_TRY(interference.tolerance, params.number("tol", 0, 10));
  BERTH_TRY(interference.least_rate, params.number("r_min", 0.001, 1));
  BERTH_TRY(interference.bandwidth_term, params.number("bw_term", 0, 10));
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  antman::Options options;
  options.opportunistic = words_of(params.text("op"));
  BERTH_TRY(options.tenants, tenants_of(params));
  BERTH_TRY_VOID(read_interference(params, options.interference));
  BERTH_TRY(options.busiest, params.number("u_max", 0, 1));
  const std::int64_t most_guests = kMaxSharers - 1;
  BERTH_TRY(options.guests_beside, small(params, "max_op", most_guests));
  BERTH_TRY(options.guests_alone, small(params, "max_op_free", most_guests));
  BERTH_TRY(options.reserve_mib, small(params, "reserve", 1'000'000));
  BERTH_TRY(options.least_mib, small(params, "m_min", 1'000'000));
  BERTH_TRY(options.upgrade, params.duration("op_upgrade"));
  BERTH_TRY(options.crawling, params.duration("op_migrate"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  return std::make_unique<antman::Antman>(entry.name, std::move(options));
}

Result<std::unique_ptr<Policy>> make_lite(const PolicyEntry& entry, const Params&) {
  return std::make_unique<antman::Lite>(entry.name);
}

}  // namespace

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
      .make = make};
}

PolicyEntry antman_lite_entry() {
  return {.name = "antman-lite",
          .summary =
              "FIFO without preemption; jobs share a GPU while their utilisations sum to at most 1",
          .params = {},
          .make = make_lite};
}

}  // namespace berth
