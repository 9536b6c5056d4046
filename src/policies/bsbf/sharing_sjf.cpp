#include "policies/bsbf/sharing_sjf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace berth {

SharingSjf::SharingSjf(std::string name, const SharingSjfOptions& options)
    : name_(std::move(name)), options_(options) {}

void SharingSjf::begin(const View& view) {
  occupancy_.begin(view.cluster);
  partners_.emplace(view.jobs.size(), view.cluster.pools());
  place_of_.resize(view.jobs.size());
}

SharingSjf::KindId SharingSjf::kind_of(const View& view, JobId job) {
  const KindKey key{view.jobs.shape[job], view.jobs.profile[job], view.jobs.batch[job]};
  const auto [entry, is_new] =
      kind_ids_.try_emplace(key, KindId{static_cast<std::uint32_t>(kinds_.size())});
  if (is_new) {
    Kind& kind = kinds_.emplace_back(&memory_);
    kind.key = key;
    kind.gpus = view.shape(job).gpus;
    for (std::uint32_t i = 0; i < view.cluster.pools(); ++i) {
      const std::int64_t memory = view.believed().device_memory_mib(PoolId{i});
      kind.alone_steps.push_back(memory > 0 ? steps_within(view, kind, memory) : 1);
    }
  }
  return entry->second;
}

/// A model that does not fit into any device it may use, one sample at a time, never runs.
std::optional<Refusal> SharingSjf::admit(const View& view, JobId job) {
  const Kind& kind = kinds_[kind_of(view, job).value];
  const auto& pools = view.shape(job).pools;
  const auto fits = [&](PoolId pool) { return kind.alone_steps[pool.value].has_value(); };
  if (std::ranges::any_of(pools, fits)) return std::nullopt;
  return Refusal{
      Reason::NeverFits,
      fmt::format("model '{}' needs {} MiB of device memory even with single samples: no "
                  "device it may use has that",
                  view.believed().profile(kind.key.profile).name,
                  view.believed().memory_mib(kind.key.profile, 1, {}))};
}

double SharingSjf::length(const View& view, JobId job) const {
  return std::max(1e-6, to_seconds(view.estimated_left(job)));
}

void SharingSjf::wait(const View& view, JobId job) {
  const KindId id = kind_of(view, job);
  const double seconds = length(view, job) * (options_.by_gpu_time ? view.gpus(job) : 1) +
                         options_.age_weight * to_seconds(view.jobs.submitted[job]);
  const Waiting entry{seconds_to_duration(seconds).count(), job};
  Kind& kind = kinds_[id.value];
  kind.waiting.insert(entry);
  const bool would_fail =
      kind.failed_at == changes_ && kind.failed < entry && options_.age_weight == 0;
  if (!would_fail) to_offer_.push_back(id);
}

void SharingSjf::on_arrival(const View& view, JobId job) { wait(view, job); }

void SharingSjf::on_departure(const View& view, JobId job) {
  if (place_of_[job].holds()) {
    settle_down(view, job);
    return;
  }
  Kind& kind = kinds_[kind_of(view, job).value];  // cancelled while it waited
  const auto found = std::ranges::find(kind.waiting, job, &Waiting::job);
  if (found != kind.waiting.end()) kind.waiting.erase(found);
}

void SharingSjf::on_requeue(const View& view, JobId job) {
  settle_down(view, job);
  wait(view, job);
}

void SharingSjf::on_capacity_change(const View& view, NodeId node) {
  ++changes_;
  gained_ += view.cluster.cluster().nodes[node.value].gpus;
}

void SharingSjf::settle_down(const View& view, JobId job) {
  ++changes_;
  partners_->remove(job);
  const auto slices = places_.slices(place_of_[job]);
  occupancy_.refresh(view.cluster, slices);
  file_mates(view, job, slices);
  for (const Slice& slice : slices)
    gained_ += std::popcount(slice.devices & view.cluster.free_mask(slice.node));
  places_.release(place_of_[job]);
  place_of_[job] = Allocation{};
}

PartnerClass SharingSjf::compute_class(const View& view, JobId job) const {
  const Allocation& place = place_of_[job];
  std::int32_t gpus = 0;
  for (const Slice& slice : places_.slices(place)) gpus += slice.gpus;
  return {.profile = view.jobs.profile[job],
          .pool = place.pool,
          .gpus = gpus,
          .memory_mib = view.believed().memory_mib(view.jobs.profile[job], view.jobs.batch[job],
                                                   view.jobs.terms[job])};
}

/// Seconds it would still take by itself where it is.
double SharingSjf::solo_left(const View& view, JobId job) const {
  const Terms& terms = view.jobs.terms[job];
  const double left = to_seconds(view.estimated_left(job));
  if (view.believed().effects() == Effects{} && terms.sub_steps == 1) return left;
  const auto slices = places_.slices(place_of_[job]);
  const Standing standing{.profile = view.jobs.profile[job],
                          .pool = place_of_[job].pool,
                          .reference = view.jobs.reference[job],
                          .gpus = view.gpus(job),
                          .wanted = view.gpus(job),
                          .batch = view.jobs.batch[job],
                          .level = view.believed().servers().level_of(slices),
                          .link_jobs = 1,
                          .terms = terms};
  return left / view.believed().alone(standing);
}

/// Where more than sharing has an effect its rate may change without its being filed anew; one that
/// starts in this very pass has none yet.
SoloLeft SharingSjf::solo_left_of_sharing(const View& view, JobId job) const {
  const bool steady = view.believed().effects() == Effects{} &&
                      view.jobs.terms[job].sub_steps == 1 && view.jobs.is_running(job);
  if (!steady)
    return {.left = seconds_to_duration(solo_left(view, job)), .from = kNever, .rate = {}};
  return {.left = view.estimate(job) - view.jobs.work[job],
          .from = view.jobs.work_from[job],
          .rate = view.jobs.rate[job]};
}

/// The sub-batches it needs by itself where it is: no reason to file it among the survivors.
std::int32_t SharingSjf::steps_alone(const View& view, JobId job) {
  return kinds_[kind_of(view, job).value].alone_steps[place_of_[job].pool.value].value_or(1);
}

/// Files a running job by how many of its devices it has for itself.
std::int32_t SharingSjf::file(const View& view, JobId job) {
  partners_->remove(job);
  const std::int32_t single = occupancy_.single_of(places_.slices(place_of_[job]));
  if (single == partners_->class_of(job).gpus) {
    partners_->add_alone(job, view.now + seconds_to_duration(solo_left(view, job)));
    if (options_.restore && view.jobs.terms[job].sub_steps > steps_alone(view, job))
      survivors_.push_back(job);
  } else if (single > 0) {
    partners_->add_sharing(job, view.now);
  }
  return single;
}

/// Those on devices that the job took or left. What is left of one that is filed anew may be more
/// than was reckoned while it was not looked at, so its devices count as gained.
void SharingSjf::file_mates(const View& view, JobId job, std::span<const Slice> slices) {
  JobId filed = job;
  for (const Slice& slice : slices) {
    for_each_device(slice.devices & ~view.cluster.free_mask(slice.node), [&](std::int32_t device) {
      for (const JobId mate : view.cluster.jobs_on(slice.node, device)) {
        if (mate == job || mate == filed) continue;  // gangs meet on many devices at once
        filed = mate;
        gained_ += file(view, mate);
      }
    });
  }
}

void SharingSjf::started(const View& view, const Plan& plan, JobId job) {
  const auto slices = plan.slices(job);
  place_of_[job] = places_.store(plan.pool_of(job), slices);
  partners_->classify(job, compute_class(view, job));
  occupancy_.refresh(view.cluster, slices);
  file(view, job);
  file_mates(view, job, slices);
}

void SharingSjf::restore_batches(const View& view, Plan& plan) {
  std::ranges::sort(survivors_);
  for (const JobId job : survivors_) {
    if (!place_of_[job].holds() || !partners_->contains(job)) continue;
    Terms terms = view.jobs.terms[job];
    terms.sub_steps = steps_alone(view, job);
    if (!plan.set_terms(job, terms, Reason::Packing)) continue;
    partners_->remove(job);
    partners_->classify(job, compute_class(view, job));
    gained_ += file(view, job);
  }
  survivors_.clear();
}

void SharingSjf::decide(const View& view, Plan& plan, Rng&) {
  if (!survivors_.empty()) restore_batches(view, plan);
  if (options_.interval > Duration::zero()) {
    if (view.now < next_pass_) return;
    next_pass_ = view.now + options_.interval;
  }
  pass(view, plan);
}

std::optional<Time> SharingSjf::next_wakeup(const View& view) {
  if (options_.interval <= Duration::zero() || next_pass_ <= view.now) return std::nullopt;
  const auto waits = [](const Kind& kind) { return !kind.waiting.empty(); };
  if (std::ranges::none_of(kinds_, waits)) return std::nullopt;
  return next_pass_;
}

/// Puts the kind's next candidate on the heap of this pass.
void SharingSjf::offer(Kind& kind) {
  if (kind.next == kind.waiting.end()) return;
  heap_.emplace_back(*kind.next, KindId{static_cast<std::uint32_t>(&kind - kinds_.data())});
  std::ranges::push_heap(heap_, std::ranges::greater{});
}

void SharingSjf::pass(const View& view, Plan& plan) {
  heap_.clear();
  blocked_.clear();
  const auto enter = [&](Kind& kind) {
    kind.next = kind.waiting.begin();
    kind.is_blocked = false;
    offer(kind);
  };
  for (const KindId id : to_offer_) kinds_[id.value].has_news = true;
  if (changes_ != passed_at_) {
    for (Kind& kind : kinds_) {
      const bool would_fail = kind.failed_at == changes_ && options_.age_weight == 0;
      if (!kind.waiting.empty() && (kind.has_news || !would_fail)) enter(kind);
    }
  } else {
    for (const KindId id : to_offer_) {
      if (std::exchange(kinds_[id.value].has_news, false)) enter(kinds_[id.value]);
    }
  }
  for (const KindId id : to_offer_) kinds_[id.value].has_news = false;
  to_offer_.clear();

  for (std::int32_t tries = 0; !heap_.empty() && tries < options_.scan_depth; ++tries) {
    std::ranges::pop_heap(heap_, std::ranges::greater{});
    const auto [candidate, id] = heap_.back();
    heap_.pop_back();
    Kind& kind = kinds_[id.value];
    const Tried tried =
        still_lacks(kind, candidate) ? Tried::Failed : try_job(view, plan, kind, candidate.job);
    if (tried == Tried::Failed) {
      ++kind.next;
      if (options_.age_weight > 0) {  // the order is not that of lengths: the next may do better
        offer(kind);
        continue;
      }
      if (!kind.is_blocked) {  // the first to fail in this pass, before later starts could help
        kind.failed = candidate;
        kind.failed_at = changes_;
      }
      kind.is_blocked = true;
      blocked_.push_back(id);
      continue;
    }
    kind.next = kind.waiting.erase(kind.next);
    offer(kind);
    if (tried == Tried::Alone) {  // a new partner for those behind it in the order
      ++changes_;
      for (const KindId other : blocked_) offer(kinds_[other.value]);
      blocked_.clear();
    }
  }
  passed_at_ = heap_.empty() ? changes_ : 0;
}

SharingSjf::Tried SharingSjf::try_job(const View& view, Plan& plan, Kind& kind, JobId job) {
  const auto& pools = view.shapes[kind.key.shape].pools;
  if (options_.consolidate) {
    for (const PoolId pool : pools) {
      if (try_one_server(view, plan, kind, job, pool))
        return occupancy_.single_of(plan.slices(job)) == kind.gpus ? Tried::Alone : Tried::Shared;
    }
  }
  if (try_alone(plan, view, kind, job)) return Tried::Alone;
  std::int32_t lacked = lacks_are_known(view) ? kind.gpus : 0;
  for (const PoolId pool : pools) {
    if (try_share_in(view, plan, kind, job, pool, lacked)) return Tried::Shared;
  }
  kind.lacking = *kind.next;
  kind.lacked = lacked;
  kind.lacked_at = gained_;
  return Tried::Failed;
}

bool SharingSjf::try_share_in(const View& view, Plan& plan, Kind& kind, JobId job, PoolId pool,
                              std::int32_t& lacked) {
  const std::int64_t free = view.cluster.free_gpus(pool);
  const std::int64_t out_of_reach = kind.gpus - free - occupancy_.single(pool);
  if (out_of_reach > 0) {
    lacked = static_cast<std::int32_t>(std::min<std::int64_t>(lacked, out_of_reach));
    return false;
  }
  if (free >= kind.gpus) {  // enough devices, and yet it could not start on them
    lacked = 0;
    return false;
  }
  chosen_.clear();
  if (options_.best_benefit) return try_share(view, plan, kind, job, pool, lacked);
  return try_first_fit(view, plan, kind, job, pool);
}

/// A longer job finds no partner that a shorter one did not.
bool SharingSjf::still_lacks(const Kind& kind, const Waiting& candidate) const noexcept {
  return gained_ - kind.lacked_at < kind.lacked && kind.lacking <= candidate;
}

/// Only if what is left of running jobs shrinks whatever happens, and nothing but devices counts.
bool SharingSjf::lacks_are_known(const View& view) const noexcept {
  return options_.best_benefit && !options_.consolidate && options_.age_weight == 0 &&
         view.believed().effects() == Effects{};
}

}  // namespace berth

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  SharingSjfOptions options;
  options.best_benefit = entry.name == "sjf-bsbf";
  BERTH_TRY(options.consolidate, params.flag("consolidate"));
  BERTH_TRY(const auto key, params.choice("key", {"time", "gpu_time"}));
  BERTH_TRY(options.restore, params.flag("restore"));
  BERTH_TRY(const auto reserve, params.number("reserve", 0, 1000));
  BERTH_TRY(options.age_weight, params.number("w_age", 0, 1e6));
  BERTH_TRY(const auto depth, params.integer("scan_depth", 1, 1'000'000'000));
  BERTH_TRY(options.interval, params.duration("interval"));
  options.by_gpu_time = key == 1;
  options.reserve_mib = static_cast<std::int32_t>(reserve * 1024);
  options.scan_depth = static_cast<std::int32_t>(depth);
  if (options.best_benefit) {
    BERTH_TRY(const auto rank, params.choice("rank", {"tcon", "benefit"}));
    options.rank = rank == 0 ? PartnerRank::AverageTime : PartnerRank::Benefit;
  }
  return std::make_unique<SharingSjf>(entry.name, options);
}

std::vector<ParamSpec> common_params() {
  return {{"consolidate", "off", "try all devices of one server before the whole cluster"},
          {"key", "time", "order by estimated run time (time) or times GPUs (gpu_time)"},
          {"restore", "on", "end gradient accumulation when the partner is gone"},
          {"reserve", "0.5", "GiB of device memory kept free beside two jobs"},
          {"w_age", "0", "seconds of run time forgiven for each second of waiting"},
          {"scan_depth", "1000", "waiting jobs tried in one pass at most"},
          {"interval", "0", "seconds between two passes; 0 = on every event"}};
}

}  // namespace

PolicyEntry sjf_ffs_entry() {
  return {
      .name = "sjf-ffs",
      .summary = "shortest first; when free GPUs run out, shares the first that have memory enough",
      .params = common_params(),
      .make = make};
}

PolicyEntry sjf_bsbf_entry() {
  std::vector<ParamSpec> params = common_params();
  params.push_back({"rank", "tcon",
                    "best partner by least average completion time (tcon) or largest gain over "
                    "waiting (benefit)"});
  return {.name = "sjf-bsbf",
          .summary =
              "shortest first; shares a GPU where that lowers the pair's average completion time",
          .params = std::move(params),
          .make = make};
}

}  // namespace berth
