#include "policies/bsbf/sharing_sjf.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace berth::bsbf {

SharingSjf::SharingSjf(std::string name, const Options& options)
    : name_(std::move(name)), options_(options), newcomers_(options.reserve_mib) {}

void SharingSjf::begin(const View& view) {
  running_.emplace(view, newcomers_, options_.after);
  starter_.emplace(options_.rules, newcomers_, *running_);
}

/// A model that does not fit into any device it may use, one sample at a time, never runs.
std::optional<Refusal> SharingSjf::admit(const View& view, JobId job) {
  const auto fits = [&](PoolId pool) {
    return newcomers_.steps_alone(view, view.jobs.kind[job], pool).has_value();
  };
  if (std::ranges::any_of(view.shape(job).pools, fits)) return std::nullopt;
  const ProfileId profile = view.jobs.profile[job];
  return Refusal{
      Reason::NeverFits,
      fmt::format("model '{}' needs {} MiB of device memory even with single samples: no "
                  "device it may use has that",
                  view.believed().profile(profile).name,
                  view.believed().memory_mib(profile, 1, {}))};
}

SharingSjf::Queue& SharingSjf::queue_of(KindId kind) {
  while (queues_.size() <= kind.value) queues_.emplace_back(&memory_);
  return queues_[kind.value];
}

bool SharingSjf::would_fail(const Queue& queue) const noexcept {
  return queue.failed_at == changes_ && options_.age_weight == 0;
}

void SharingSjf::wait(const View& view, JobId job) {
  const double factor = options_.key == SortKey::GpuTime ? view.gpus(job) : 1;
  const double seconds =
      length_alone(view, job) * factor + options_.age_weight * to_seconds(view.jobs.submitted[job]);
  const Waiting entry{seconds_to_duration(seconds).count(), job};
  Queue& queue = queue_of(view.jobs.kind[job]);
  queue.waiting.insert(entry);
  if (would_fail(queue) && queue.failed < entry) return;
  if (!std::exchange(queue.has_news, true)) to_offer_.push_back(view.jobs.kind[job]);
}

void SharingSjf::on_arrival(const View& view, JobId job) { wait(view, job); }

void SharingSjf::on_departure(const View& view, JobId job) {
  if (running_->contains(job)) {
    ++changes_;
    running_->remove(view, job);
    return;
  }
  auto& waiting = queue_of(view.jobs.kind[job]).waiting;  // cancelled while it waited
  const auto found = std::ranges::find(waiting, job, &Waiting::job);
  if (found != waiting.end()) waiting.erase(found);
}

void SharingSjf::on_requeue(const View& view, JobId job) {
  ++changes_;
  running_->remove(view, job);
  wait(view, job);
}

void SharingSjf::on_capacity_change(const View& view, NodeId node) {
  ++changes_;
  running_->gain(view.cluster.cluster().nodes[node.value].gpus);
}

void SharingSjf::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  running_->restore_batches(pass);
  if (options_.interval > Duration::zero()) {
    if (view.now < next_pass_) return;
    next_pass_ = view.now + options_.interval;
  }
  offer_kinds();
  try_offered(pass);
}

std::optional<Time> SharingSjf::next_wakeup(const View& view) {
  if (options_.interval <= Duration::zero() || next_pass_ <= view.now) return std::nullopt;
  const auto waits = [](const Queue& queue) { return !queue.waiting.empty(); };
  if (std::ranges::none_of(queues_, waits)) return std::nullopt;
  return next_pass_;
}

/// Puts the kinds on the heap of this pass of which somebody might start.
void SharingSjf::offer_kinds() {
  heap_.clear();
  blocked_.clear();
  const auto enter = [&](KindId kind) {
    Queue& queue = queues_[kind.value];
    queue.next = queue.waiting.begin();
    queue.is_blocked = false;
    offer(kind);
  };
  if (changes_ == passed_at_) {  // only those who came since the last pass can do better than then
    for (const KindId kind : to_offer_) enter(kind);
  } else {
    for (std::uint32_t i = 0; i < queues_.size(); ++i) {
      const Queue& queue = queues_[i];
      if (!queue.waiting.empty() && (queue.has_news || !would_fail(queue))) enter(KindId{i});
    }
  }
  for (const KindId kind : to_offer_) queues_[kind.value].has_news = false;
  to_offer_.clear();
}

/// Puts the kind's next candidate on the heap of this pass.
void SharingSjf::offer(KindId kind) {
  const Queue& queue = queues_[kind.value];
  if (queue.next == queue.waiting.end()) return;
  heap_.emplace_back(*queue.next, kind);
  std::ranges::push_heap(heap_, std::ranges::greater{});
}

void SharingSjf::try_offered(Pass& pass) {
  for (std::int32_t tries = 0; !heap_.empty() && tries < options_.scan_depth; ++tries) {
    std::ranges::pop_heap(heap_, std::ranges::greater{});
    const auto [candidate, kind] = heap_.back();
    heap_.pop_back();
    Queue& queue = queues_[kind.value];
    const Tried tried =
        still_lacks(queue, candidate) ? Tried::Failed : try_job(pass, queue, candidate.job);
    if (tried == Tried::Failed) {
      fail(kind, candidate);
      continue;
    }
    queue.next = queue.waiting.erase(queue.next);
    offer(kind);
    if (tried == Tried::Alone) {  // a new partner for those behind it in the order
      ++changes_;
      for (const KindId other : blocked_) offer(other);
      blocked_.clear();
    }
  }
  passed_at_ = heap_.empty() ? changes_ : 0;
}

void SharingSjf::fail(KindId kind, const Waiting& candidate) {
  Queue& queue = queues_[kind.value];
  ++queue.next;
  if (options_.age_weight > 0) {  // the order is not that of lengths: the next may do better
    offer(kind);
    return;
  }
  if (!queue.is_blocked) {  // the first to fail in this pass, before later starts could help
    queue.failed = candidate;
    queue.failed_at = changes_;
  }
  queue.is_blocked = true;
  blocked_.push_back(kind);
}

SharingSjf::Tried SharingSjf::try_job(Pass& pass, Queue& queue, JobId job) {
  const Shape& shape = pass.view.shape(job);
  if (options_.consolidate) {
    for (const PoolId pool : shape.pools) {
      if (!starter_->try_one_server(pass, job, pool)) continue;
      const auto single = running_->occupancy().single_of(pass.plan.slices(job));
      return single == shape.gpus ? Tried::Alone : Tried::Shared;
    }
  }
  if (starter_->try_alone(pass, job)) return Tried::Alone;
  std::int32_t lacked = shape.gpus;
  for (const PoolId pool : shape.pools) {
    const auto lacks = starter_->share(pass, job, pool);
    if (!lacks) return Tried::Shared;
    lacked = std::min(lacked, *lacks);
  }
  queue.lacking = *queue.next;
  queue.lacked = lacks_are_known(pass.view) ? lacked : 0;
  queue.lacked_at = running_->gained();
  return Tried::Failed;
}

/// A longer job finds no partner that a shorter one did not.
bool SharingSjf::still_lacks(const Queue& queue, const Waiting& candidate) const noexcept {
  return running_->gained() - queue.lacked_at < queue.lacked && queue.lacking <= candidate;
}

/// Only if what is left of running jobs shrinks whatever happens, and nothing but devices counts.
bool SharingSjf::lacks_are_known(const View& view) const noexcept {
  return options_.rules.choice == PartnerChoice::Best && !options_.consolidate &&
         options_.age_weight == 0 && view.believed().effects() == Effects{};
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  Options options;
  BERTH_TRY(options.consolidate, params.flag("consolidate"));
  BERTH_TRY(options.key, params.choice<SortKey>(
                             "key", {{"time", SortKey::RunTime}, {"gpu_time", SortKey::GpuTime}}));
  BERTH_TRY(const bool restore, params.flag("restore"));
  options.after = restore ? AfterSharing::RestoreBatch : AfterSharing::KeepSubBatches;
  BERTH_TRY(const double reserve_gib, params.number("reserve", 0, 1000));
  options.reserve_mib = static_cast<std::int32_t>(reserve_gib * 1024);
  BERTH_TRY(options.age_weight, params.number("w_age", 0, 1e6));
  BERTH_TRY(options.scan_depth, params.whole<std::int32_t>("scan_depth", 1, 1'000'000'000));
  BERTH_TRY(options.interval, params.duration("interval"));
  if (entry.name == "sjf-ffs") {
    options.rules.choice = PartnerChoice::FirstFit;
  } else {
    BERTH_TRY(options.rules.rank,
              params.choice<PartnerRank>(
                  "rank", {{"tcon", PartnerRank::AverageTime}, {"benefit", PartnerRank::Benefit}}));
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

}  // namespace berth::bsbf

namespace berth {

PolicyEntry sjf_ffs_entry() {
  return {
      .name = "sjf-ffs",
      .summary = "shortest first; when free GPUs run out, shares the first that have memory enough",
      .params = bsbf::common_params(),
      .make = bsbf::make};
}

PolicyEntry sjf_bsbf_entry() {
  std::vector<ParamSpec> params = bsbf::common_params();
  params.push_back({"rank", "tcon",
                    "best partner by least average completion time (tcon) or largest gain over "
                    "waiting (benefit)"});
  return {.name = "sjf-bsbf",
          .summary =
              "shortest first; shares a GPU where that lowers the pair's average completion time",
          .params = std::move(params),
          .make = bsbf::make};
}

}  // namespace berth
