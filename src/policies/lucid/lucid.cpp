#include "policies/lucid/lucid.h"

#include <algorithm>

namespace berth {

namespace {

constexpr Duration kLookEvery = std::chrono::seconds{100};
constexpr double kBearableSpeed = 0.85;
constexpr std::int32_t kMostExtensions = 4;  // of a trial
constexpr std::size_t kEnoughSamples = 8;
constexpr double kNoLimitMib = 1e15;

UsageFeatures features_of(const Profile& profile) {
  return {.gpu_utilisation = profile.gpu_utilisation,
          .memory_utilisation = profile.memory_utilisation,
          .memory_mib = profile.memory_mib(profile.batch)};
}

/// Mean speed beside all partners it was measured with.
std::optional<double> mean_packed_speed(const ProfileSet& profiles, ProfileId of) {
  double sum = 0;
  int pairs = 0;
  for (std::uint32_t i = 0; i < profiles.size(); ++i) {
    if (!profiles.has_pair(of, ProfileId{i})) continue;
    sum += 1 / profiles.slowdown(of, ProfileId{i});
    ++pairs;
  }
  if (pairs == 0) return std::nullopt;
  return sum / pairs;
}

}  // namespace

void Lucid::begin(const View& view) {
  learn_scores(view);
  profiler_.begin(view.cluster.cluster());
  rows_.resize(view.jobs.size());
  packing_ = options_.packing != LucidPacking::Off;
}

void Lucid::learn_scores(const View& view) {
  const ProfileSet& profiles = view.believed().profiles();
  std::vector<SharingTree::Sample> samples;
  for (std::uint32_t i = 0; i < profiles.size(); ++i) {
    if (const auto speed = mean_packed_speed(profiles, ProfileId{i}))
      samples.push_back({features_of(profiles[ProfileId{i}]), score_from_speed(*speed)});
  }
  tree_ =
      samples.size() >= kEnoughSamples ? SharingTree::trained(samples) : SharingTree::untrained();
}

SharingScore Lucid::score_of(const View& view, JobId job) {
  const ProfileSet& profiles = view.believed().profiles();
  const std::uint32_t profile = view.jobs.profile[job].value;
  while (score_of_profile_.size() <= profile) {
    const ProfileId next{static_cast<std::uint32_t>(score_of_profile_.size())};
    score_of_profile_.push_back(tree_->predict(features_of(profiles[next])));
  }
  return score_of_profile_[profile];
}

double Lucid::memory_mib(const View& view, JobId job) const {
  return view.believed().memory_mib(view.jobs.profile[job], view.jobs.batch[job], Terms{});
}

void Lucid::enqueue(const View& view, JobId job) {
  rows_[job.value].place = Place::Waiting;
  const Int128 priority = Int128{view.estimated_left(job).count()} * view.gpus(job);
  waiting_.push(view.jobs.kind[job], {priority, job});
}

void Lucid::on_arrival(const View& view, JobId job) {
  arrivals_.add(view.now);
  if (!profiler_.takes(view.shape(job))) return enqueue(view, job);
  rows_[job.value].place = Place::WaitingForProfiler;
  profiler_.push(view, job);
}

void Lucid::detach(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  switch (row.place) {
    case Place::Waiting: waiting_.forget(view.jobs.kind[job], job); return;
    case Place::WaitingForProfiler: profiler_.forget(job); return;
    case Place::InProfiler: profiler_.forget(job); break;
    case Place::Alone: partners_.remove(row.as_partner); break;
    case Place::Packed: {
      const JobId mate = row.mate;
      row.mate = kNobody;
      rows_[mate.value].mate = kNobody;
      offer(view, mate);
      break;
    }
  }
  --running_;
}

void Lucid::on_departure(const View& view, JobId job) { detach(view, job); }

void Lucid::on_requeue(const View& view, JobId job) {
  detach(view, job);
  enqueue(view, job);
}

void Lucid::offer(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  row.place = Place::Alone;
  row.as_partner.expected_end = view.now + view.estimated_left(job);
  if (!row.stays_alone && !view.shape(job).is_fraction()) partners_.add(row.as_partner);
}

void Lucid::note_start(const View& view, const Plan& plan, JobId job) {
  const PoolId pool = plan.pool_of(job);
  const std::int64_t device = view.believed().device_memory_mib(pool);
  const double all = device > 0 ? static_cast<double>(device) : kNoLimitMib;
  rows_[job.value].as_partner = {.start = view.now,
                                 .job = job,
                                 .pool = pool,
                                 .gpus = view.gpus(job),
                                 .score = score_of(view, job),
                                 .memory_left_mib = all - memory_mib(view, job),
                                 .expected_end = {}};
  ++running_;
}

void Lucid::look_at_the_forecast(Time now) {
  if (last_look_ != Time{Duration::min()} && now - last_look_ < kLookEvery) return;
  last_look_ = now;
  const double expected = arrivals_.next_hour(now);
  if (options_.packing == LucidPacking::ByForecast) packing_ = expected > options_.quiet_arrivals;
  profiler_.resize(expected);
}

void Lucid::decide(const View& view, Plan& plan, Rng&) {
  look_at_the_forecast(view.now);
  run_profiler(view, plan);
  if (options_.unpack) unpack_sufferers(view, plan);
  place_waiting(view, plan);
}

void Lucid::run_profiler(const View& view, Plan& plan) {
  if (!profiler_.is_on()) return;
  jobs_.clear();
  profiler_.take_due(view.now, jobs_);
  for (const JobId job : jobs_) {
    plan.preempt(job, Reason::Profiling);
    --running_;
    enqueue(view, job);
  }
  jobs_.clear();
  profiler_.start_waiting(view, plan, jobs_);
  for (const JobId job : jobs_) {
    rows_[job.value].place = Place::InProfiler;
    ++running_;
  }
}

/// The rate of the one that suffers more, as a share of what it does alone.
double Lucid::slower_of(const View& view, const Trial& trial) const {
  const double newcomer = view.jobs.rate[trial.newcomer].value();
  const JobRow& host = rows_[trial.host.value];
  const bool is_measured = view.measured_over(trial.host) > Duration::zero();
  if (is_measured != host.was_measured) return newcomer;
  return std::min(newcomer, view.jobs.rate[trial.host].value() / host.rate_alone);
}

/// After the trial it is known whether the two bear each other; of whoever speaks, by what was
/// measured in it.
void Lucid::unpack_sufferers(const View& view, Plan& plan) {
  const auto is_awaited = [&](JobId job) { return view.jobs.basis[job] == RateBasis::Awaited; };
  while (!trials_.empty() && trials_.front().due <= view.now) {
    Trial trial = trials_.front();
    trials_.pop_front();
    const auto [due, newcomer, host, extended] = trial;
    if (rows_[newcomer.value].mate != host) continue;
    if ((is_awaited(newcomer) || is_awaited(host)) && extended < kMostExtensions) {
      trial.due = view.now + std::max(options_.trial, Duration{std::chrono::seconds{1}});
      ++trial.extended;
      trials_.push_back(trial);
      continue;
    }
    const double slower = slower_of(view, trial);
    if (slower >= kBearableSpeed) continue;
    plan.preempt(newcomer, Reason::Interference);
    rows_[newcomer.value].stays_alone = true;
    detach(view, newcomer);
    enqueue(view, newcomer);
  }
}

bool Lucid::try_pack(const View& view, Plan& plan, JobId job) {
  const Shape& shape = view.shape(job);
  if (rows_[job.value].stays_alone || shape.is_fraction()) return false;
  const Newcomer newcomer{.gpus = shape.gpus,
                          .score = score_of(view, job),
                          .memory_mib = memory_mib(view, job),
                          .left = std::max(Duration::zero(), view.estimated_left(job))};
  std::optional<PackingPartner> host;
  for (const PoolId pool : shape.pools) {
    const auto found = partners_.find(pool, newcomer, view.now);
    if (found && (!host || partners_.is_before(*found, *host))) host = found;
  }
  if (!host) return false;
  const auto slices = plan.slices(host->job);
  slices_.assign(slices.begin(), slices.end());
  if (!plan.try_share_on(job, host->pool, slices_, 2)) return false;
  partners_.remove(*host);
  note_start(view, plan, job);
  JobRow& row = rows_[job.value];
  JobRow& other = rows_[host->job.value];
  row.place = other.place = Place::Packed;
  // Against what it did alone: one that is slower than its estimate says suffers from nobody.
  const double alone = view.jobs.rate[host->job].value();
  other.rate_alone = alone > 0 ? alone : 1;
  other.was_measured = view.measured_over(host->job) > Duration::zero();
  row.mate = host->job;
  other.mate = job;
  if (options_.unpack) trials_.push_back({view.now + options_.trial, job, host->job, 0});
  return true;
}

bool Lucid::try_alone(const View& view, Plan& plan, JobId job) {
  const Shape& shape = view.shape(job);
  const auto outside = [&](PoolId pool) {
    return profiler_.place_outside(plan.cluster(), shape, pool, slices_) &&
           plan.try_start_on(job, pool, slices_);
  };
  bool starts = profiler_.is_on() && !shape.is_fraction()
                    ? std::ranges::any_of(shape.pools, outside)
                    : plan.try_start(job);
  // Too large for the main part, or nothing else runs: then the whole cluster is its.
  if (!starts && profiler_.is_on() &&
      (running_ == 0 || !profiler_.is_outside_large_enough(view.cluster.cluster(), shape))) {
    starts = plan.try_start(job);
  }
  if (!starts) return false;
  note_start(view, plan, job);
  offer(view, job);
  return true;
}

void Lucid::place_waiting(const View& view, Plan& plan) {
  waiting_.pass([](KindId) { return true; },
                [&](JobId job) {
                  if ((packing_ && try_pack(view, plan, job)) || try_alone(view, plan, job))
                    return Tried::Started;
                  return packing_ ? Tried::NoPlace : Tried::Enough;  // else strictly in order
                });
}

std::optional<Time> Lucid::next_wakeup(const View& view) {
  Time next = profiler_.next_end();
  if (!trials_.empty()) next = std::min(next, trials_.front().due);
  const bool someone_waits = !waiting_.empty() || profiler_.waiting() > 0;
  const bool may_pack = options_.packing == LucidPacking::ByForecast && !packing_;
  if (someone_waits && running_ > 0 && (may_pack || profiler_.is_on()))
    next = std::min(next, std::max(last_look_ + kLookEvery, view.now + Duration{1}));
  if (next == kNever) return std::nullopt;
  return next;
}

}  // namespace berth

namespace berth {

namespace {

Result<ProfilerOptions> profiler_options(const Params& params) {
  ProfilerOptions options;
  if (params.text("profiler_nodes") != "auto") {
    BERTH_TRY(const auto nodes, params.integer("profiler_nodes", 0, kMaxNodes));
    options.nodes = static_cast<std::int32_t>(nodes);
  }
  BERTH_TRY(const auto largest, params.integer("profile_gpus", 1, 1'000'000));
  options.largest = static_cast<std::int32_t>(largest);
  BERTH_TRY(options.longest, params.duration("profile_time"));
  if (options.longest <= Duration::zero())
    return params.wrong("profile_time", "must be more than zero");
  return options;
}

Result<std::unique_ptr<Policy>> make_lucid(const PolicyEntry&, const Params& params) {
  LucidOptions options;
  BERTH_TRY(const auto packing, params.choice("packing", {"off", "on", "auto"}));
  options.packing = static_cast<LucidPacking>(packing);
  BERTH_TRY(const auto partner, params.choice("partner", {"first", "least-score"}));
  options.partner =
      partner == 0 ? PackingIndex::Choice::FirstStarted : PackingIndex::Choice::LeastScore;
  BERTH_TRY(options.quiet_arrivals, params.number("quiet_arrivals", 0, 1e9));
  BERTH_TRY(options.unpack, params.flag("unpack"));
  BERTH_TRY(options.trial, params.duration("trial"));
  if (options.trial <= Duration::zero()) return params.wrong("trial", "must be more than zero");
  BERTH_TRY(options.profiler, profiler_options(params));
  return std::make_unique<Lucid>(options);
}

}  // namespace

PolicyEntry lucid_entry() {
  return {
      .name = "lucid",
      .summary = "packs jobs beside running ones where both hardly notice, never preempts",
      .params = {{"packing", "auto", "auto: unless the forecast is quiet; on; off"},
                 {"partner", "first", "of the partners that suit: first started, or least-score"},
                 {"quiet_arrivals", "2",
                  "jobs forecast for the coming hour up to which it is quiet"},
                 {"unpack", "off", "stop a newcomer if either runs below 0.85 after the trial"},
                 {"trial", "300", "seconds of that"},
                 {"profiler_nodes", "auto",
                  "nodes for profiling runs; auto: one in twenty from eight nodes on"},
                 {"profile_gpus", "8", "larger jobs are not profiled"},
                 {"profile_time", "300", "seconds of a profiling run at most"}},
      .make = make_lucid};
}

}  // namespace berth
