#include "policies/philly/philly.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policies/kit/beliefs.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/pass.h"
#include "policies/philly/levels.h"
#include "policies/philly/server_use.h"

namespace berth {
namespace philly {

struct Options {
  std::int32_t relax_every = 5;  // counted attempts until the next level
  std::int32_t max_level = 3;
  Duration backoff = std::chrono::seconds{120};  // between attempts that count
  Duration grace = std::chrono::minutes{5};      // below its quota one waits before it preempts
  double busy = 0.9;                             // share of the cluster in use for that
  bool preempts = true;
  std::uint32_t max_retries = 3;           // of an attempt that failed by the cluster
  Duration avoid = std::chrono::hours{1};  // the servers on which it failed
  bool wait_for_locality = false;          // relax only when running apart costs less than waiting
  bool isolate = false;                    // servers for gangs, others for single GPUs
  bool defragment = false;                 // single GPUs move out of the way of a gang
  std::vector<std::pair<std::string, double>> quotas;  // shares of the cluster by name
};

class Philly final : public Policy {
 public:
  explicit Philly(Options options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "philly"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = options_.wait_for_locality ? Need::RunTime | Need::Profile : Need::Nothing,
            .preempts = true,
            .decides_retries = true};
  }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  [[nodiscard]] bool retries(const View& view, JobId job, FailureKind kind,
                             std::span<const Slice> slices) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Waiting {
    JobId job;
    Time since;
    Time counted = kNever;  // its last counted attempt
    std::int32_t attempts = 0;
  };
  struct VirtualCluster {
    std::string name;
    std::deque<Waiting> queue{};
    std::vector<JobId> running{};  // in order of start
    std::int64_t used = 0;
    double quota = 0;
  };
  using AtLevel = Id<struct AtLevelTag>;  // a shape at a level
  [[nodiscard]] static AtLevel at_level(ShapeId shape, std::int32_t level) noexcept {
    return {shape.value * kLevels + static_cast<std::uint32_t>(level)};
  }
  struct Victim {
    std::size_t vc = 0;
    JobId job;
  };
  [[nodiscard]] std::size_t cluster_of(const View& view, JobId job);
  void set_quotas(const View& view);
  [[nodiscard]] std::vector<std::size_t> by_use() const;
  [[nodiscard]] std::int32_t level_of(const View& view, const Waiting& waiting) const;
  [[nodiscard]] bool start(const View& view, Plan& plan, VirtualCluster& vc, const Waiting& waiting,
                           std::int32_t level);
  void serve(const View& view, Plan& plan, std::size_t vc);
  void count_attempt(const View& view, Waiting& waiting) const;
  void note_start(const View& view, VirtualCluster& vc, const Waiting& waiting, std::int32_t level);
  void enforce_quotas(const View& view, Plan& plan);
  [[nodiscard]] std::optional<Victim> next_victim(const View& view, const Plan& plan,
                                                  std::size_t index,
                                                  std::span<const std::int64_t> used) const;
  [[nodiscard]] bool preempt_for(const View& view, Plan& plan, std::size_t vc,
                                 const Waiting& waiting);
  void put_back(const View& view, std::size_t vc, JobId job);
  [[nodiscard]] bool has_other_server(const View& view, JobId job,
                                      std::span<const NodeId> nodes) const;
  void find_avoided(const View& view, JobId job);
  void keep_apart(const View& view, JobId job, std::int32_t level);
  void defragment(const View& view, Plan& plan);
  [[nodiscard]] std::optional<NodeId> easiest_server(const Plan& plan, PoolId pool,
                                                     const Shape& shape) const;
  [[nodiscard]] bool clear_server(const View& view, Plan& plan, std::size_t vc,
                                  const Waiting& waiting, PoolId pool, NodeId node);
  [[nodiscard]] double relative_time(const View& view, JobId job, std::int32_t level) const;

  Options options_;
  std::unordered_map<NameId, std::size_t> index_;  // of virtual clusters; lookup only
  std::vector<VirtualCluster> clusters_;
  BlockedSet<AtLevel> failed_;                                     // found no place in this pass
  std::map<std::pair<std::int32_t, std::int32_t>, double> waits_;  // GPUs, level: moving mean, s
  struct Avoided {
    NodeId node;
    Time until;
  };
  std::map<JobId, std::vector<Avoided>> avoided_;  // by jobs that are tried again
  ServerUse use_;
  std::vector<Slice> slices_;
  std::vector<NodeId> nodes_;  // scratch: servers that the job being started keeps away from
};

std::size_t Philly::cluster_of(const View& view, JobId job) {
  const NameId name = view.request(job).queue;
  const auto [entry, is_new] = index_.try_emplace(name, clusters_.size());
  if (is_new) {
    clusters_.push_back({.name = std::string(view.text(name))});
    set_quotas(view);
  }
  return entry->second;
}

/// Those without a share of their own split what the others leave.
void Philly::set_quotas(const View& view) {
  const auto gpus = static_cast<double>(view.cluster.cluster().total_gpus());
  double named = 0;
  std::size_t unnamed = 0;
  for (VirtualCluster& vc : clusters_) {
    const auto found =
        std::ranges::find(options_.quotas, vc.name, [](const auto& q) { return q.first; });
    vc.quota = found == options_.quotas.end() ? -1 : found->second * gpus;
    if (vc.quota < 0) ++unnamed;
    named += std::max(0.0, vc.quota);
  }
  for (VirtualCluster& vc : clusters_) {
    if (vc.quota < 0) vc.quota = std::max(1.0, (gpus - named) / static_cast<double>(unnamed));
  }
}

void Philly::on_arrival(const View& view, JobId job) {
  clusters_[cluster_of(view, job)].queue.push_back({.job = job, .since = view.now});
}

void Philly::on_departure(const View& view, JobId job) {
  avoided_.erase(job);
  use_.stop(job);
  VirtualCluster& vc = clusters_[cluster_of(view, job)];
  if (const auto running = std::ranges::find(vc.running, job); running != vc.running.end()) {
    vc.running.erase(running);
    vc.used -= view.gpus(job);
    return;
  }
  std::erase_if(vc.queue, [&](const Waiting& waiting) { return waiting.job == job; });
}

void Philly::put_back(const View& view, std::size_t index, JobId job) {
  VirtualCluster& vc = clusters_[index];
  std::erase(vc.running, job);
  use_.stop(job);
  vc.used -= view.gpus(job);
  vc.queue.push_front({.job = job, .since = view.now});
}

void Philly::on_requeue(const View& view, JobId job) { put_back(view, cluster_of(view, job), job); }

bool Philly::retries(const View& view, JobId job, FailureKind kind, std::span<const Slice> slices) {
  if (!may_retry(kind, view.jobs.retries[job] + 1, options_.max_retries)) return false;
  for (const Slice& slice : slices)
    avoided_[job].push_back({slice.node, view.now + options_.avoid});
  return true;
}

/// A server that it could run on and that is none of these. Where there is none, keeping away would
/// only make it wait.
bool Philly::has_other_server(const View& view, JobId job, std::span<const NodeId> nodes) const {
  const std::vector<PoolId>& pools = view.shape(job).pools;
  const std::vector<Node>& all = view.cluster.cluster().nodes;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const bool is_one = std::ranges::find(nodes, NodeId{i}) != nodes.end();
    if (!is_one && std::ranges::find(pools, all[i].pool) != pools.end()) return true;
  }
  return false;
}

/// Into nodes_: servers on which its attempts failed, until they are forgiven.
void Philly::find_avoided(const View& view, JobId job) {
  nodes_.clear();
  const auto found = avoided_.find(job);
  if (found == avoided_.end()) return;
  std::erase_if(found->second, [&](const Avoided& entry) { return entry.until <= view.now; });
  for (const Avoided& entry : found->second) nodes_.push_back(entry.node);
  if (nodes_.empty()) avoided_.erase(found);
  if (!has_other_server(view, job, nodes_)) nodes_.clear();
}

/// Until it accepts any place, a single GPU is not on a server of gangs, nor a gang beside single
/// ones. Such servers join those in nodes_.
void Philly::keep_apart(const View& view, JobId job, std::int32_t level) {
  if (!options_.isolate || level >= std::min(kLevels - 1, options_.max_level)) return;
  if (view.gpus(job) == 1 && level == 0) use_.list_with_gangs(nodes_);
  if (view.gpus(job) > 1) use_.list_with_singles(nodes_);
}

std::vector<std::size_t> Philly::by_use() const {
  std::vector<std::size_t> order(clusters_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple(static_cast<double>(clusters_[i].used) / clusters_[i].quota, i);
  });
  return order;
}

/// How many times longer the job takes at this level than as close as can be.
double Philly::relative_time(const View& view, JobId job, std::int32_t level) const {
  const Shape& shape = view.shape(job);
  if (shape.pools.empty()) return 1;
  const PoolId pool = shape.pools.front();
  const Level best = view.believed().best_level(pool, shape.gpus);
  const Level far = level == 0 ? best : std::max(best, level < 3 ? Level::Rack : Level::CrossRack);
  const double rate = believed_rate(view, job, pool, shape.gpus, far);
  return rate > 0 ? 1 / rate : 1;
}

std::int32_t Philly::level_of(const View& view, const Waiting& waiting) const {
  const std::int32_t allowed =
      std::min(options_.max_level, waiting.attempts / options_.relax_every);
  if (!options_.wait_for_locality) return allowed;
  const double left = to_seconds(view.estimated_left(waiting.job));
  std::int32_t level = 0;
  for (; level < allowed; ++level) {
    const auto wait = waits_.find({view.gpus(waiting.job), level});
    const double expected =
        wait == waits_.end() ? to_seconds(view.now - waiting.since) : wait->second;
    const double slower =
        relative_time(view, waiting.job, level + 1) / relative_time(view, waiting.job, level);
    if (!worth_relaxing(left, slower, expected)) break;
  }
  return level;
}

bool Philly::start(const View& view, Plan& plan, VirtualCluster& vc, const Waiting& waiting,
                   std::int32_t level) {
  const Shape& shape = view.shape(waiting.job);
  find_avoided(view, waiting.job);
  keep_apart(view, waiting.job, level);
  const auto place = [&](PoolId pool) {
    if (shape.gpus == 0 || shape.is_fraction()) return plan.try_start_in(pool, waiting.job);
    if (!place_at_level(plan.cluster(), shape, pool, level, slices_, nodes_)) return false;
    return plan.try_start_on(waiting.job, pool, slices_, Reason::Order);
  };
  const bool counting = plan.cluster().mode() == ClusterState::Mode::Count;
  const bool is_as_found = plan.found_gpus(waiting.job) == shape.gpus && plan.try_keep(waiting.job);
  const bool started = is_as_found || (counting ? plan.try_start(waiting.job)
                                                : std::ranges::any_of(shape.pools, place));
  if (!started) return false;
  note_start(view, vc, waiting, level);
  if (shape.gpus > 0 && !shape.is_fraction()) use_.start(waiting.job, plan.slices(waiting.job));
  return true;
}

void Philly::note_start(const View& view, VirtualCluster& vc, const Waiting& waiting,
                        std::int32_t level) {
  vc.used += view.gpus(waiting.job);
  vc.running.push_back(waiting.job);
  double& wait = waits_.try_emplace({view.gpus(waiting.job), level}, 0.0).first->second;
  wait = 0.5 * wait + 0.5 * to_seconds(view.now - waiting.since);
}

void Philly::count_attempt(const View& view, Waiting& waiting) const {
  if (waiting.counted != kNever && view.now - waiting.counted < options_.backoff) return;
  waiting.counted = view.now;
  ++waiting.attempts;
}

void Philly::serve(const View& view, Plan& plan, std::size_t index) {
  VirtualCluster& vc = clusters_[index];
  std::erase_if(vc.queue, [&](Waiting& waiting) {
    const std::int32_t level = level_of(view, waiting);
    const AtLevel likes = at_level(view.jobs.shape[waiting.job], level);
    const bool is_hopeless = failed_.has(likes);
    if (!is_hopeless && start(view, plan, vc, waiting, level)) return true;
    // One that keeps away from some servers says nothing of its likes.
    if (!is_hopeless && !avoided_.contains(waiting.job)) failed_.add(likes);
    count_attempt(view, waiting);
    return false;
  });
}

/// The head of a virtual cluster below its quota that has waited long enough may take back what
/// others borrowed.
void Philly::enforce_quotas(const View& view, Plan& plan) {
  const auto usable = static_cast<double>(plan.cluster().usable_gpus());
  for (const std::size_t index : by_use()) {
    const auto busy = usable - static_cast<double>(plan.cluster().free_gpus());
    if (busy <= options_.busy * usable) return;
    VirtualCluster& vc = clusters_[index];
    if (vc.queue.empty()) continue;
    const Waiting waiting = vc.queue.front();
    const bool below = static_cast<double>(vc.used + view.gpus(waiting.job)) <= vc.quota;
    if (below && view.now - waiting.since >= options_.grace &&
        preempt_for(view, plan, index, waiting))
      std::erase_if(vc.queue, [&](const Waiting& other) { return other.job == waiting.job; });
  }
}

/// Of the virtual clusters other than `index`, the one most over its quota, and its latest start
/// that leaves it its quota. `used` counts without those already stopped.
std::optional<Philly::Victim> Philly::next_victim(const View& view, const Plan& plan,
                                                  std::size_t index,
                                                  std::span<const std::int64_t> used) const {
  std::optional<Victim> next;
  double most_over = 0;
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    const double over = static_cast<double>(used[i]) - clusters_[i].quota;
    if (i == index || over <= most_over) continue;
    const auto& running = clusters_[i].running;
    const auto job = std::find_if(running.rbegin(), running.rend(), [&](JobId each) {
      const bool keeps_quota = static_cast<double>(used[i] - view.gpus(each)) >= clusters_[i].quota;
      return plan.holds(each) && keeps_quota;
    });
    if (job == running.rend()) continue;
    next = {i, *job};
    most_over = over;
  }
  return next;
}

/// All or nothing.
bool Philly::preempt_for(const View& view, Plan& plan, std::size_t index, const Waiting& waiting) {
  std::vector<Victim> victims;
  std::vector<std::int64_t> used;
  for (const VirtualCluster& vc : clusters_) used.push_back(vc.used);
  const bool started = attempt(plan, [&] {
    while (!start(view, plan, clusters_[index], waiting, options_.max_level)) {
      const auto next = next_victim(view, plan, index, used);
      if (!next) return false;
      plan.preempt(next->job, Reason::Guarantee);
      used[next->vc] -= view.gpus(next->job);
      victims.push_back(*next);
    }
    return true;
  });
  if (!started) return false;
  for (const auto& [vc, job] : victims) put_back(view, vc, job);
  return true;
}

// --- single GPUs move together so that a gang finds a whole server

/// The server of the pool that the gang could have after the fewest moves of single GPUs.
std::optional<NodeId> Philly::easiest_server(const Plan& plan, PoolId pool,
                                             const Shape& shape) const {
  std::optional<std::tuple<std::int32_t, NodeId>> best;
  const Cluster& cluster = plan.cluster().cluster();
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const NodeId node{i};
    if (cluster.nodes[i].pool != pool || !plan.cluster().is_up(node)) continue;
    const auto singles = static_cast<std::int32_t>(use_.singles_on(node).size());
    const std::int32_t moves = shape.gpus - plan.cluster().room_on(node, shape);
    if (moves < 1 || moves > singles) continue;
    // Where would they go?
    if (plan.cluster().free_gpus(pool) - plan.cluster().room_on(node, shape) < moves) continue;
    if (const std::tuple found{moves, node}; !best || found < *best) best = found;
  }
  if (!best) return std::nullopt;
  return std::get<NodeId>(*best);
}

/// Moves single GPUs off the server, the latest start first, until the gang fits; all or nothing.
bool Philly::clear_server(const View& view, Plan& plan, std::size_t index, const Waiting& waiting,
                          PoolId pool, NodeId node) {
  const auto singles = use_.singles_on(node);
  const std::vector<JobId> latest_first{singles.rbegin(), singles.rend()};
  std::vector<std::pair<JobId, std::vector<Slice>>> moved;
  std::vector<NodeId> avoided{node};
  if (options_.isolate) use_.list_with_gangs(avoided);
  const Shape& gang = view.shape(waiting.job);
  const bool started = attempt(plan, [&] {
    for (const JobId job : latest_first) {
      if (plan.cluster().room_on(node, gang) >= gang.gpus) break;
      plan.preempt(job, Reason::Defragment);
      std::vector<Slice> slices;
      if (!place_at_level(plan.cluster(), view.shape(job), pool, 0, slices, avoided) ||
          !plan.try_start_on(job, pool, slices, Reason::Defragment))
        return false;
      moved.emplace_back(job, std::move(slices));
    }
    return start(view, plan, clusters_[index], waiting, 0);
  });
  if (!started) return false;
  for (const auto& [job, slices] : moved) {
    use_.stop(job);
    use_.start(job, slices);
  }
  return true;
}

/// For the first gang of each virtual cluster that fits on one server and finds none.
void Philly::defragment(const View& view, Plan& plan) {
  for (const std::size_t index : by_use()) {
    auto& queue = clusters_[index].queue;
    const auto gang =
        std::ranges::find_if(queue, [&](const Waiting& other) { return view.gpus(other.job) > 1; });
    if (gang == queue.end()) continue;
    const Waiting waiting = *gang;
    for (const PoolId pool : view.shape(waiting.job).pools) {
      const auto node = easiest_server(plan, pool, view.shape(waiting.job));
      if (!node || !clear_server(view, plan, index, waiting, pool, *node)) continue;
      std::erase_if(queue, [&](const Waiting& other) { return other.job == waiting.job; });
      break;
    }
  }
}

// --- the pass

void Philly::decide(const View& view, Plan& plan, Rng&) {
  failed_.clear();
  for (const std::size_t index : by_use()) serve(view, plan, index);
  const bool counting = plan.cluster().mode() == ClusterState::Mode::Count;
  if (options_.defragment && !counting) defragment(view, plan);
  if (options_.preempts) enforce_quotas(view, plan);
}

/// When an attempt counts again for somebody who may still relax, or a grace ends.
std::optional<Time> Philly::next_wakeup(const View& view) {
  Time next = kNever;
  const std::int32_t last = options_.max_level * options_.relax_every;
  for (const VirtualCluster& vc : clusters_) {
    for (const Waiting& waiting : vc.queue) {
      if (waiting.attempts < last && waiting.counted != kNever)
        next = std::min(next, waiting.counted + options_.backoff);
    }
    if (options_.preempts && !vc.queue.empty() &&
        vc.queue.front().since + options_.grace > view.now)
      next = std::min(next, vc.queue.front().since + options_.grace);
  }
  for (const auto& [job, avoided] : avoided_) {
    if (!view.jobs.is_waiting(job)) continue;
    for (const Avoided& entry : avoided)
      if (entry.until > view.now) next = std::min(next, entry.until);
  }
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Options options;
  BERTH_TRY(options.relax_every, params.whole<std::int32_t>("relax_every", 1, 1'000'000));
  BERTH_TRY(options.max_level, params.whole<std::int32_t>("max_level", 0, kLevels - 1));
  BERTH_TRY(options.backoff, params.positive_duration("backoff"));
  BERTH_TRY(options.grace, params.duration("grace"));
  BERTH_TRY(options.busy, params.number("busy", 0, 1));
  BERTH_TRY(options.preempts, params.flag("preemption"));
  BERTH_TRY(options.max_retries, params.whole<std::uint32_t>("max_retries", 0, 1'000'000));
  BERTH_TRY(options.avoid, params.duration("avoid"));
  BERTH_TRY(options.wait_for_locality, params.flag("wait_for_locality"));
  BERTH_TRY(options.isolate, params.flag("isolate"));
  BERTH_TRY(options.defragment, params.flag("defragment"));
  BERTH_TRY(const auto quotas, params.named_numbers("quotas"));
  double sum = 0;
  for (const auto& [name, numbers] : quotas) {
    if (numbers.size() != 1 || !(numbers[0] > 0 && numbers[0] <= 1))
      return params.wrong("quotas", "must be NAME:SHARE with a share above 0 and at most 1");
    options.quotas.emplace_back(name, numbers[0]);
    sum += numbers[0];
  }
  if (sum > 1 + 1e-9) return params.wrong("quotas", "the shares add up to more than 1");
  return std::make_unique<Philly>(std::move(options));
}

}  // namespace
}  // namespace philly

PolicyEntry philly_entry() {
  return {
      .name = "philly",
      .summary =
          "virtual clusters with quotas, locality relaxed while a job waits, preemption for quotas",
      .params = {{"quotas", "",
                  "shares of the cluster by virtual cluster, as in a:0.5,b:0.2; the others split "
                  "the rest"},
                 {"relax_every", "5", "attempts until a job takes the next level of locality"},
                 {"max_level", "3", "0 fewest servers, 1 twice as many, 2 one rack, 3 anywhere"},
                 {"backoff", "120", "time between attempts that count"},
                 {"preemption", "on",
                  "a virtual cluster kept from its quota takes back what others borrowed"},
                 {"grace", "5m", "it waits so long first"},
                 {"busy", "0.9", "and only if this share of the GPUs is in use"},
                 {"max_retries", "3",
                  "further attempts of a job that failed by the cluster's fault"},
                 {"avoid", "1h", "and how long it keeps away from the servers of a failed attempt"},
                 {"wait_for_locality", "off",
                  "on: relax only if running apart costs less than the expected wait"},
                 {"isolate", "off",
                  "on: single GPUs and gangs on servers of their own, until a job relaxes"},
                 {"defragment", "off",
                  "on: jobs on single GPUs move together for a gang that fits on one server"}},
      .make = philly::make};
}

}  // namespace berth
