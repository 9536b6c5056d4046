#include "advise/policy_trial.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "advise/job_views.h"
#include "advise/picture_executor.h"
#include "advise/room.h"
#include "base/check_scope.h"
#include "core/trial.h"
#include "daemon/live_engine_parts.h"
#include "why/explainer.h"
#include "why/forked.h"
#include "why/why_json.h"

namespace berth::advise {

namespace {

constexpr std::size_t kMostTasks = 200;    // of one array
constexpr std::size_t kMostJobs = 20'000;  // that compete; later ones change nothing for the first
constexpr std::size_t kSpareSlots = 4;     // for trials of other requests

/// A job, or the part of one on the nodes of one pool, as the engine is told of it.
struct Entry {
  JobNumber number = 0;
  std::uint32_t id = 0;  // of the order among equals
  JobSpec spec{};
  Time submit{};
  std::optional<Time> since{};  // it runs
  std::vector<Slice> slices{};
  bool is_supposed = false;  // asked about, and does not compete: it comes when it is supposed to
};

/// Everything that the engine is made of, on one clock.
class Picture {
 public:
  explicit Picture(const TrialQuestion& question)
      : question_(question),
        seen_(cluster_of(question.sight, [&](const slurm::Node& node) { return is_wanted(node); })),
        taken_(seen_.nodes.size()) {
    zero_ = question.wall / kMicro;
    for (const slurm::Job& job : question.sight.all_jobs())
      if (job.key.submitted > 0) zero_ = std::min(zero_, job.key.submitted);
    add_running();
    add_waiting();
    if (!competes(question.job)) {
      entries_.push_back(waiting(question.job, question.job.key.job));
      entries_.back().is_supposed = true;
    }
    // Among equals policies go by the slot: everybody has the one that is theirs by submit time.
    std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
      return std::tuple(a.submit, a.id, a.number) < std::tuple(b.submit, b.id, b.number);
    });
  }

  [[nodiscard]] const SeenCluster& seen() const noexcept { return seen_; }
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] Time now() const { return at(question_.wall / kMicro); }
  [[nodiscard]] bool is_up(NodeId node) const { return seen_.nodes[node.value]->is_usable(); }

 private:
  [[nodiscard]] Time at(std::int64_t seconds) const {
    return Time{Duration{std::max<std::int64_t>(0, seconds - zero_) * kMicro}};
  }

  [[nodiscard]] bool is_wanted(const slurm::Node& node) const {
    return may_use(question_.job, node);
  }

  // --- jobs that run

  /// In the order of their ids: where Slurm does not tell which devices they have, the lowest free
  /// ones are theirs, and those of others are known first.
  void add_running() {
    std::vector<const slurm::Job*> untold;
    for (const slurm::Job& job : question_.sight.all_jobs()) {
      const bool holds =
          job.phase == slurm::JobPhase::Running || job.phase == slurm::JobPhase::Suspended;
      if (!holds) continue;
      tells_devices(job) ? add_running(job) : untold.push_back(&job);
    }
    for (const slurm::Job* job : untold) add_running(*job);
  }

  static bool tells_devices(const slurm::Job& job) {
    return std::ranges::all_of(job.held, [](const slurm::HeldNode& held) {
      return std::ranges::all_of(held.gres, [](const slurm::GresCount& gres) {
        return gres.name != "gpu" || std::cmp_equal(gres.indices.size(), gres.count);
      });
    });
  }

  void add_running(const slurm::Job& job) {
    const bool has_gpus = job.gpus() > 0 || job.shards() > 0;
    std::map<std::uint32_t, Entry> parts;  // by pool, or by node where there is no GPU
    for (const slurm::HeldNode& held : job.held) {
      const auto node = seen_.id_of(held.node);
      if (!node || !is_up(*node)) continue;
      const Slice slice = has_gpus ? slice_on(job, held, *node) : Slice{.node = *node};
      if (has_gpus && slice.gpus == 0) continue;
      const std::uint32_t part =
          has_gpus ? seen_.cluster.nodes[node->value].pool.value : node->value;
      Entry& entry = parts.try_emplace(part, running(job)).first->second;
      // It has what it has: a policy must not look for another type first.
      if (has_gpus) entry.spec.gpu_type = seen_.cluster.pools[part].name;
      if (has_gpus && entry.spec.gpu_milli == 1'000) entry.spec.gpus += slice.gpus;
      if (entry.spec.gpu_milli < 1'000) entry.spec.gpus = 1;
      entry.spec.cpus += held.cpus;
      entry.spec.memory_mib += static_cast<std::int32_t>(
          std::min<std::int64_t>(held.memory_mib, std::numeric_limits<std::int32_t>::max() / 2));
      entry.slices.push_back(slice);
    }
    for (auto& [part, entry] : parts) entries_.push_back(std::move(entry));
  }

  [[nodiscard]] Entry running(const slurm::Job& job) const {
    Entry entry = waiting(job, job.key.job);
    entry.since = at(job.started);
    entry.spec.gpus = entry.spec.cpus = entry.spec.memory_mib = 0;
    entry.spec.gpu_type.clear();
    return entry;
  }

  [[nodiscard]] Slice slice_on(const slurm::Job& job, const slurm::HeldNode& held, NodeId node) {
    const std::int32_t gpus = seen_.cluster.nodes[node.value].gpus;
    const std::uint64_t all = gpus == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << gpus) - 1;
    std::uint64_t devices = 0;
    std::int64_t untold = 0;
    for (const slurm::GresCount& gres : held.gres) {
      if (gres.name != "gpu" && gres.name != "shard") continue;
      for (const std::int32_t index : gres.indices)
        if (index >= 0 && index < gpus) devices |= std::uint64_t{1} << index;
      if (gres.name == "gpu") untold += gres.count - static_cast<std::int64_t>(gres.indices.size());
    }
    if (held.gres.empty())  // it is told of the whole job alone
      untold = job.gpus() / std::max<std::int64_t>(1, static_cast<std::int64_t>(job.held.size()));
    std::uint64_t& taken = taken_[node.value];
    for (std::uint64_t left = all & ~taken & ~devices; untold > 0 && left != 0; --untold) {
      const std::uint64_t lowest = left & (~left + 1);
      devices |= lowest;
      left &= ~lowest;
    }
    if (job.gpus() > 0) taken |= devices;
    return {.node = node, .gpus = std::popcount(devices), .devices = devices};
  }

  // --- jobs that wait

  void add_waiting() {
    std::set<std::string> partitions;
    for (const slurm::Node* node : seen_.nodes)
      partitions.insert(node->partitions.begin(), node->partitions.end());
    for (const slurm::Job& job : question_.sight.all_jobs()) {
      if (!competes(job) || entries_.size() >= kMostJobs) continue;
      const auto theirs = names_in(job.partition);
      const bool is_rival =
          partitions.empty() || std::ranges::any_of(theirs, [&](const std::string& name) {
            return partitions.contains(name);
          });
      if (is_rival) add_tasks(job);
    }
  }

  /// The first of an array's tasks has its record's number: whoever asks for the array asks for it.
  void add_tasks(const slurm::Job& job) {
    entries_.push_back(waiting(job, job.key.job));
    const auto tasks = tasks_of(job);
    for (std::size_t i = 1; i < std::min(tasks.size(), kMostTasks); ++i)
      entries_.push_back(
          waiting(job, task_number(job.array, static_cast<std::uint32_t>(tasks[i]))));
  }

  [[nodiscard]] Entry waiting(const slurm::Job& job, JobNumber number) const {
    Entry entry{.number = number,
                .id = job.key.job,
                .spec = spec_of(job, question_.sight),
                .submit = at(job.key.submitted)};
    if (entry.spec.time_limit >= kUnlimitedTime) entry.spec.time_limit = 0;
    if (!counts_memory(question_.sight.config)) entry.spec.memory_mib = 0;
    if (entry.spec.gpus > 0 && entry.spec.gpu_type.empty())
      entry.spec.gpu_type = types_with(std::max(1, needs_of(job, false).gpus));
    return entry;
  }

  /// So many GPUs of one node are had only of types that come in such nodes; a gang of Berth's would
  /// take two smaller ones.
  [[nodiscard]] std::string types_with(std::int32_t gpus_of_a_node) const {
    std::set<std::uint32_t> pools;
    for (const Node& node : seen_.cluster.nodes)
      if (node.gpus >= gpus_of_a_node) pools.insert(node.pool.value);
    if (pools.size() == seen_.cluster.pools.size()) return {};
    std::vector<std::string> types;
    for (const std::uint32_t pool : pools) types.push_back(seen_.cluster.pools[pool].name);
    return fmt::format("{}", fmt::join(types, "|"));
  }

  const TrialQuestion& question_;
  SeenCluster seen_;
  std::vector<std::uint64_t> taken_;  // devices, by NodeId
  std::int64_t zero_ = 0;             // Unix seconds of the engine's zero
  std::vector<Entry> entries_;
};

void fill(TraceJob& slot, const Entry& entry, Names& names) {
  static_cast<JobRequest&>(slot) = request_of(entry.spec, entry.number, entry.submit, names);
  slot.estimate = said_duration(entry.spec);
  slot.duration =
      slot.estimate > Duration::zero() ? slot.estimate : Duration{std::chrono::hours{1}};
}

/// The engine's slots and who is in them, as an explanation asks for them.
class PictureScheduler final : public RunningScheduler {
 public:
  PictureScheduler(const Picture& picture, Trace& slots, std::int64_t wall)
      : picture_(picture), slots_(slots), wall_(wall) {
    const auto& entries = picture.entries();
    slots_.source = "slurm";
    slots_.jobs.resize(entries.size() + kSpareSlots);
    numbers_.resize(slots_.jobs.size());
    for (const Entry& entry : entries) put(entry);
  }

  [[nodiscard]] Time now() const override { return picture_.now(); }
  [[nodiscard]] std::int64_t wall() const override { return wall_; }
  [[nodiscard]] std::optional<JobId> slot_of(JobNumber job) const override {
    const auto found = by_number_.find(job);
    if (found == by_number_.end()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] JobNumber number_of(JobId slot) const override { return numbers_[slot.value]; }
  [[nodiscard]] std::optional<JobId> spare_slot() const override {
    if (next_ == slots_.jobs.size()) return std::nullopt;
    return JobId{next_};
  }
  [[nodiscard]] std::optional<JobId> suppose() override {
    if (supposed_) by_number_.emplace(numbers_[supposed_->value], *supposed_);
    return supposed_;
  }
  [[nodiscard]] std::optional<Time> ready_about(NodeId) const override { return std::nullopt; }

 private:
  void put(const Entry& entry) {
    const JobId slot{next_++};
    fill(slots_.jobs[slot.value], entry, slots_.names);
    numbers_[slot.value] = entry.number;
    if (entry.is_supposed)
      supposed_ = slot;
    else
      by_number_.emplace(entry.number, slot);
  }

  const Picture& picture_;
  Trace& slots_;
  std::int64_t wall_;
  std::vector<JobNumber> numbers_;
  std::map<JobNumber, JobId> by_number_;
  std::optional<JobId> supposed_;
  std::uint32_t next_ = 0;
};

PictureExecutor::Picture world_of(const Picture& picture) {
  PictureExecutor::Picture world{.now = picture.now()};
  for (std::uint32_t i = 0; i < picture.seen().nodes.size(); ++i)
    if (!picture.is_up(NodeId{i})) world.out_of_service.push_back(NodeId{i});
  const auto& entries = picture.entries();
  for (std::uint32_t i = 0; i < entries.size(); ++i)
    if (entries[i].since)
      world.running.push_back(
          {.slot = JobId{i}, .since = *entries[i].since, .slices = entries[i].slices});
  std::ranges::sort(world.running, [](const auto& a, const auto& b) {
    return std::tuple(a.since, a.slot) < std::tuple(b.since, b.slot);
  });
  return world;
}

/// Where it would start, and who would have to go for it.
std::string start_text(Engine& engine, JobId slot, const PictureScheduler& scheduler,
                       const std::string& policy) {
  std::vector<std::int32_t> free;
  const auto& nodes = engine.cluster().cluster().nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    free.push_back(engine.cluster().is_up(NodeId{i}) ? engine.cluster().free_on(NodeId{i}) : 0);
  std::map<JobId, std::vector<Slice>> running;
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) {
    const auto slices = engine.slices(JobId{i});
    if (engine.jobs().is_running(JobId{i})) running[JobId{i}] = {slices.begin(), slices.end()};
  }
  static_cast<void>(Trial{engine}.decide());
  const auto is_here = [&](const Slice& theirs) {
    return std::ranges::any_of(engine.slices(slot), [&](const Slice& its) {
      return its.node == theirs.node && (its.devices & theirs.devices) != 0;
    });
  };
  std::vector<std::string> where;
  for (const Slice& slice : engine.slices(slot)) {
    const Node& node = nodes[slice.node.value];
    where.push_back(slice.gpus > 0 ? fmt::format("{} ({} of {} GPUs free)", node.name,
                                                 free[slice.node.value], node.gpus)
                                   : node.name);
  }
  std::vector<std::string> stopped;
  for (const auto& [other, slices] : running)
    if (!engine.jobs().is_running(other) && std::ranges::any_of(slices, is_here))
      stopped.push_back(fmt::format("job {}", scheduler.number_of(other)));
  std::string text = fmt::format("under {} it would start now", policy);
  if (!where.empty()) text += fmt::format(" on {}", fmt::join(where, ", "));
  if (!stopped.empty()) text += fmt::format(", in the place of {}", fmt::join(stopped, ", "));
  return text;
}

/// Remedies are commands of a scheduler that this one is not.
std::string without_command(std::string text) {
  if (const std::size_t at = text.find(": berth "); at != std::string::npos) text.resize(at);
  if (text.starts_with("berth ") || text == "an operator" || text == "an admin") text.clear();
  return text;
}

/// Who asks Slurm for so many GPUs of a node gets them there or waits; Berth's usual placement would
/// spread a gang rather than let it wait. A job that wants small parts of many nodes may be spread.
SchedulerOptions as_slurm_places(SchedulerOptions options, const slurm::Job& job,
                                 const Cluster& cluster) {
  const PerNode needs = needs_of(job, false);
  const bool is_spread = needs.nodes > 1 && needs.gpus < cluster.largest_node();
  if (options.placement == SchedulerOptions{}.placement && !is_spread)
    options.placement = "consolidated";
  return options;
}

std::string explain(const TrialQuestion& question, const SchedulerOptions& chosen) {
  const CheckScope here{OnBrokenInvariant::Throw};
  const Picture picture{question};
  const SchedulerOptions options = as_slurm_places(chosen, question.job, picture.seen().cluster);
  Trace slots;
  PictureScheduler scheduler{picture, slots, question.wall};
  auto policy = make_policy_of(options.policy, options);
  if (!policy) return {};
  const auto parts = make_live_engine_parts(
      {.options = options, .choice = options.policy, .cluster = picture.seen().cluster},
      *std::move(policy));
  if (!parts) return {};
  LiveEngineParts& its = **parts;
  PictureExecutor executor{world_of(picture)};
  its.estimator.begin(slots);
  Engine engine{{.trace = slots,
                 .cluster = picture.seen().cluster,
                 .policy = *its.policy,
                 .placement = *its.placement,
                 .estimator = its.estimator,
                 .executor = executor,
                 .believed = *its.believed,
                 .seed = options.seed,
                 .open = true,
                 .cores_beside = true}};
  if (!engine.run()) return {};
  for (std::uint32_t i = 0; i < picture.entries().size(); ++i)
    if (!picture.entries()[i].since && !picture.entries()[i].is_supposed)
      Trial{engine}.arrive(JobId{i});

  JobView view = view_of(question.job, question.sight, question.wall);
  view.where.clear();
  Why why = Explainer{{engine, slots, scheduler}}.explain(
      {.job = view, .may_see_all = question.may_see_all});
  const auto slot = scheduler.slot_of(view.number);
  const std::string_view once = competes(question.job) ? "" : "once it competes: ";
  const std::string& name = options.policy.policy;
  WhyReason first{.kind = "berth", .text = {}};
  if (why.reasons.empty() && slot) {
    first.text = fmt::format("{}{}", once, start_text(engine, *slot, scheduler, name));
    first.numbers = {{"starts_now", std::int64_t{1}}};
  } else {
    first.text = fmt::format("{}under {} it would wait: {}", once, name, why.summary);
    first.numbers = {{"starts_now", std::int64_t{0}}};
    if (why.place > 0) {
      first.numbers.emplace_back("place", static_cast<std::int64_t>(why.place));
      first.numbers.emplace_back("of", static_cast<std::int64_t>(why.of));
    }
    std::vector<std::string> changes;
    for (const std::string& change : why.would_start)
      if (auto text = without_command(change); !text.empty()) changes.push_back(std::move(text));
    if (!changes.empty())
      first.fix = fmt::format("it would start now with: {}", fmt::join(changes, "; "));
  }
  for (WhyReason& reason : why.reasons) {
    reason.kind = "berth: " + reason.kind;
    reason.fix.clear();
    reason.sole = false;
    if (reason.when == "never") reason.when = "now";  // Slurm decides what can never be
    reason.who = "nobody";
  }
  why.reasons.insert(why.reasons.begin(), std::move(first));
  return to_json(why);
}

}  // namespace

std::vector<WhyReason> ask_policy(const TrialQuestion& question, const SchedulerOptions& options) {
  const auto text = in_a_copy([&] { return explain(question, options); });
  auto why = text && !text->empty() ? why_from_json(*text) : Result<Why>{fail("no answer")};
  if (why && !why->reasons.empty()) return std::move(why->reasons);
  return {{.kind = "berth",
           .text = fmt::format("what {} would do could not be found out in time",
                               options.policy.policy)}};
}

}  // namespace berth::advise
