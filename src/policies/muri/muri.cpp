#include "policies/muri/muri.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "policies/kit/beliefs.h"

namespace berth::muri {

void Muri::begin(const View& view) {
  const ProfileSet& profiles = view.believed().profiles();
  overhead_ = options_.overhead.value_or(profiles.interleave_overhead());
  active_at_.resize(view.jobs.size());
  is_holding_.resize(view.jobs.size());
  first_slice_.resize(view.jobs.size());
}

Int128 Muri::key_of(const View& view, JobId job) const {
  const Duration service = options_.order == Order::WorkLeft ? view.estimated_left(job)
                                                             : view.jobs.attained(job, view.now);
  return Int128{service.count()} * view.gpus(job);
}

void Muri::on_arrival(const View& view, JobId job) {
  active_at_[job] = static_cast<std::uint32_t>(active_.size());
  active_.push_back(job);
  waiting_.push(view.jobs.shape[job], {key_of(view, job), job});
  rounds_.stir(view.now);
}

void Muri::on_departure(const View& view, JobId job) {
  rounds_.stir(view.now);
  const std::uint32_t at = active_at_[job];
  active_[at] = active_.back();
  active_at_[active_[at]] = at;
  active_.pop_back();
  if (is_holding_[job]) {
    set_holding(job, false);
    shrunk_.push_back(first_slice_[job]);
    is_worth_a_look_ = has_groups_;
  } else {
    waiting_.forget(view.jobs.shape[job], job);
  }
}

void Muri::on_requeue(const View& view, JobId job) {
  set_holding(job, false);
  waiting_.push(view.jobs.shape[job], {key_of(view, job), job});
  rounds_.stir(view.now);
}

std::optional<Time> Muri::next_wakeup(const View& view) {
  // With nothing running nothing changes by waiting.
  if (!rounds_.grid().has_period() || !may_improve() || holding_ == 0) {
    rounds_.settle();
  } else {
    rounds_.go_on(view.now);
  }
  return rounds_.wakeup(view.now);
}

void Muri::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  touched_.clear();
  if (may_improve() && rounds_.is_due(view.now)) {
    rounds_.hold(view.now);
    regroup(pass);
  } else {
    take_apart_losers(pass);
  }
  shrunk_.clear();
  absorb(pass);  // who was stopped may start alone elsewhere
  fill(pass);
  absorb(pass);
}

const Candidate& Muri::candidate(const View& view, JobId job) {
  return of_kind_.of(view.jobs.kind[job], [&] {
    const Shape& shape = view.shape(job);
    Candidate candidate{.gpus = view.gpus(job),
                        .bucket = buckets_.of({shape.gpus, shape.pools}).value,
                        .stages = stages_of(view.believed().profile(view.jobs.profile[job])),
                        .memory_mib = believed_memory_mib(view, job)};
    for (const PoolId pool : shape.pools) {
      const std::int64_t mib = view.believed().device_memory_mib(pool);
      if (mib > 0 && (candidate.device_memory_mib == 0 || mib < candidate.device_memory_mib))
        candidate.device_memory_mib = mib;
    }
    return candidate;
  });
}

/// Only as many as could be admitted are put in order: each has a GPU at least.
void Muri::rank_active(const View& view) {
  ranked_.clear();
  for (const JobId job : active_) ranked_.push_back({key_of(view, job), job});
  const auto window = static_cast<std::size_t>(
      std::max<std::int64_t>(0, view.cluster.usable_gpus() * std::int64_t{kMaxInterleaved}));
  if (ranked_.size() > window) {
    std::ranges::nth_element(ranked_, ranked_.begin() + static_cast<std::ptrdiff_t>(window));
    ranked_.resize(window);
  }
  std::ranges::sort(ranked_);
  candidates_.clear();
  for (const OrderKey& key : ranked_) candidates_.push_back(candidate(view, key.job));
}

/// The groups that run, by the key of their first member while GPUs last; then the largest first.
void Muri::choose_groups(const View& view) {
  const std::int64_t gpus = view.cluster.usable_gpus();
  const std::span<const Candidate> all{candidates_};
  const auto groups = group_jobs(all.first(admitted(all, gpus)), gpus,
                                 {.overhead = overhead_, .exact_limit = options_.exact_limit});
  std::vector<Group> taken;
  std::int64_t used = 0;
  for (const Group& group : groups) {
    if (used + group.gpus > gpus) continue;
    used += group.gpus;
    taken.push_back(group);
  }
  std::ranges::sort(taken, [](const Group& a, const Group& b) {
    return std::tuple(-a.gpus, a.member[0]) < std::tuple(-b.gpus, b.member[0]);
  });
  chosen_.clear();
  has_groups_ = false;
  for (const Group& group : taken) {
    Together& together = chosen_.emplace_back();
    for (const std::uint32_t member : group.members()) together.push_back(ranked_[member].job);
    has_groups_ = has_groups_ || together.size() > 1;
  }
}

void Muri::stop_everybody(Plan& plan) {
  homes_.clear();
  for (const JobId job : active_) {
    if (!plan.holds(job)) continue;
    homes_.push_back({job, plan.pool_of(job), devices_of(plan, job)});
    plan.preempt(job);
    touched_.push_back(job);
  }
  std::ranges::sort(homes_, {}, &Home::job);
}

bool Muri::prepare(Plan& plan, JobId job) {
  touched_.push_back(job);
  Terms terms = plan.terms(job);
  terms.mode = ShareMode::Interleaved;
  return plan.set_terms(job, terms, Reason::Packing);
}

void Muri::join_leader(Plan& plan, JobId leader, const Together& group) {
  const auto limit = static_cast<std::int32_t>(kMaxInterleaved);
  const std::vector<Slice> devices = devices_of(plan, leader);
  for (const JobId job : group) {
    if (job == leader || !prepare(plan, job)) continue;
    static_cast<void>(plan.try_share_on(job, plan.pool_of(leader), devices, limit));
  }
}

/// On the devices of the first member whose devices are still nobody's.
bool Muri::place_at_home(Plan& plan, const Together& group) {
  for (const JobId job : group) {
    const auto home = std::ranges::lower_bound(homes_, job, {}, &Home::job);
    if (home == homes_.end() || home->job != job) continue;
    if (!prepare(plan, job) || !plan.try_start_on(job, home->pool, home->slices)) continue;
    join_leader(plan, job, group);
    return true;
  }
  return false;
}

bool Muri::place_anywhere(Plan& plan, const Together& group) {
  const JobId leader = group.front();
  if (!prepare(plan, leader) || !plan.try_start(leader)) return false;
  join_leader(plan, leader, group);
  return true;
}

void Muri::regroup(Pass& pass) {
  is_worth_a_look_ = false;
  rank_active(pass.view);
  choose_groups(pass.view);
  stop_everybody(pass.plan);
  // Homes first: whoever is placed anywhere could take the devices that keep a group in place.
  std::erase_if(chosen_, [&](const Together& group) { return place_at_home(pass.plan, group); });
  for (const Together& group : chosen_) static_cast<void>(place_anywhere(pass.plan, group));
}

/// A group that lost a member may now get less done than its best job would alone.
void Muri::take_apart_losers(Pass& pass) {
  const View& view = pass.view;
  for (const Slice& slice : shrunk_) {
    const auto here = view.cluster.jobs_on(slice.node, std::countr_zero(slice.devices));
    if (here.size() < 2) continue;
    std::vector<OrderKey> members;
    std::vector<StageTimes> stages;
    for (const JobId job : here) {
      members.push_back({key_of(view, job), job});
      stages.push_back(candidate(view, job).stages);
    }
    const double round = best_interleaving(stages).seconds * overhead_.of(stages.size());
    if (total_speed(stages, round) >= 1) continue;
    std::ranges::sort(members);
    for (std::size_t i = 1; i < members.size(); ++i) {
      pass.plan.preempt(members[i].job, Reason::Packing);
      touched_.push_back(members[i].job);
    }
  }
}

/// Jobs that wait, alone on GPUs that nobody uses.
void Muri::fill(Pass& pass) {
  waiting_.pass([&](ShapeId shape) { return pass.plan.has_room(pass.view.shapes[shape]); },
                [&](JobId job) {
                  const bool starts = prepare(pass.plan, job) && pass.plan.try_start(job);
                  return starts ? Tried::Started : Tried::NoPlace;
                });
}

void Muri::set_holding(JobId job, bool holds) {
  if (is_holding_[job] == holds) return;
  is_holding_[job] = holds;
  holding_ = holds ? holding_ + 1 : holding_ - 1;
}

/// Books what the plan has made of those it touched.
void Muri::absorb(const Pass& pass) {
  const View& view = pass.view;
  const Plan& plan = pass.plan;
  for (const JobId job : touched_) {
    const bool holds = plan.holds(job);
    if (holds) first_slice_[job] = plan.slices(job).front();
    if (holds == is_holding_[job]) continue;
    set_holding(job, holds);
    if (holds) {
      waiting_.forget(view.jobs.shape[job], job);
    } else {
      waiting_.push(view.jobs.shape[job], {key_of(view, job), job});
    }
  }
}

namespace {

Result<std::optional<InterleaveOverhead>> overhead_of(const Params& params) {
  if (params.text("overhead") == "profile") return std::nullopt;
  if (params.text("overhead") == "measured") return kMeasuredOverhead;
  BERTH_TRY(const auto times, params.numbers("overhead"));
  const bool sound = times.size() == kMaxInterleaved &&
                     std::ranges::all_of(times, [](double x) { return x >= 1 && x <= 100; });
  if (!sound)
    return params.wrong("overhead", "must be profile, measured or four numbers from 1 to 100");
  InterleaveOverhead overhead;
  std::ranges::copy(times, overhead.times.begin());
  return overhead;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  Options options;
  options.order = entry.name == "muri-s" ? Order::WorkLeft : Order::ServiceHeld;
  BERTH_TRY(options.interval, params.duration("interval"));
  BERTH_TRY(options.overhead, overhead_of(params));
  BERTH_TRY(options.exact_limit, params.whole<std::size_t>("exact_limit", 0, 5000));
  return std::make_unique<Muri>(entry.name, options);
}

std::vector<ParamSpec> common_params() {
  return {
      {"interval", "360", "seconds between two groupings, aligned to time zero; 0: at every event"},
      {"overhead", "profile",
       "what sharing costs beside the stages: profile, measured (1,1.3,1.5,1.37) or four factors"},
      {"exact_limit", "256", "jobs of one size that are matched exactly; more: by classes"}};
}

}  // namespace

}  // namespace berth::muri

namespace berth {

PolicyEntry muri_s_entry() {
  return {.name = "muri-s",
          .summary =
              "preemptive, interleaves up to four jobs per GPU, least estimated work x GPUs first",
          .params = muri::common_params(),
          .make = muri::make};
}

PolicyEntry muri_l_entry() {
  return {
      .name = "muri-l",
      .summary = "preemptive, interleaves up to four jobs per GPU, least GPU-seconds held first",
      .params = muri::common_params(),
      .make = muri::make};
}

}  // namespace berth
