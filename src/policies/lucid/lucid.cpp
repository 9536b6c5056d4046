#include "policies/lucid/lucid.h"

#include <algorithm>

#include "policies/kit/beliefs.h"

namespace berth::lucid {

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

/// What was measured teaches the tree; with too little of it the built-in one serves.
SharingTree tree_for(const ProfileSet& profiles) {
  std::vector<SharingTree::Sample> samples;
  for (std::uint32_t i = 0; i < profiles.size(); ++i) {
    if (const auto speed = mean_packed_speed(profiles, ProfileId{i}))
      samples.push_back({features_of(profiles[ProfileId{i}]), score_from_speed(*speed)});
  }
  return samples.size() >= kEnoughSamples ? SharingTree::trained(samples)
                                          : SharingTree::untrained();
}

}  // namespace

void Lucid::begin(const View& view) {
  tree_ = tree_for(view.believed().profiles());
  profiler_.begin(view.cluster.cluster());
  rows_.resize(view.jobs.size());
  packing_ = options_.packing != Packing::Off;
}

SharingScore Lucid::score_of(const View& view, JobId job) {
  const ProfileId profile = view.jobs.profile[job];
  return scores_.of(profile,
                    [&] { return tree_->predict(features_of(view.believed().profile(profile))); });
}

void Lucid::enqueue(const View& view, JobId job) {
  rows_[job].place = Place::Waiting;
  const Int128 priority = Int128{view.estimated_left(job).count()} * view.gpus(job);
  waiting_.push(view.jobs.kind[job], {priority, job});
}

void Lucid::on_arrival(const View& view, JobId job) {
  arrivals_.add(view.now);
  if (!profiler_.takes(view.shape(job))) return enqueue(view, job);
  rows_[job].place = Place::WaitingForProfiler;
  profiler_.push(view, job);
}

void Lucid::detach(const View& view, JobId job) {
  JobRow& row = rows_[job];
  switch (row.place) {
    case Place::Waiting: waiting_.forget(view.jobs.kind[job], job); return;
    case Place::WaitingForProfiler: profiler_.forget(job); return;
    case Place::InProfiler: profiler_.forget(job); break;
    case Place::Alone: partners_.remove(row.as_partner); break;
    case Place::Packed: {
      const JobId mate = row.mate;
      row.mate = kNobody;
      rows_[mate].mate = kNobody;
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
  JobRow& row = rows_[job];
  row.place = Place::Alone;
  row.as_partner.expected_end = view.now + view.estimated_left(job);
  if (!row.stays_alone && !view.shape(job).is_fraction()) partners_.add(row.as_partner);
}

void Lucid::note_start(const Pass& pass, JobId job) {
  const View& view = pass.view;
  const PoolId pool = pass.plan.pool_of(job);
  const std::int64_t device = view.believed().device_memory_mib(pool);
  const double all = device > 0 ? static_cast<double>(device) : kNoLimitMib;
  rows_[job].as_partner = {.start = view.now,
                           .job = job,
                           .pool = pool,
                           .gpus = view.gpus(job),
                           .score = score_of(view, job),
                           .memory_left_mib = all - believed_memory_mib(view, job),
                           .expected_end = {}};
  ++running_;
}

void Lucid::look_at_the_forecast(Time now) {
  if (last_look_ != Time{Duration::min()} && now - last_look_ < kLookEvery) return;
  last_look_ = now;
  const double expected = arrivals_.next_hour(now);
  if (options_.packing == Packing::ByForecast) packing_ = expected > options_.quiet_arrivals;
  profiler_.resize(expected);
}

void Lucid::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  look_at_the_forecast(view.now);
  if (profiler_.is_on()) run_profiler(pass);
  if (options_.unpack) unpack_sufferers(pass);
  place_waiting(pass);
}

void Lucid::run_profiler(Pass& pass) {
  for (const JobId job : profiler_.take_due(pass.view.now)) {
    pass.plan.preempt(job, Reason::Profiling);
    --running_;
    enqueue(pass.view, job);
  }
  for (const JobId job : profiler_.start_waiting(pass)) {
    rows_[job].place = Place::InProfiler;
    ++running_;
  }
}

/// The rate of the one that suffers more, as a share of what it does alone.
double Lucid::slower_of(const View& view, const Trial& trial) const {
  const double newcomer = view.jobs.rate[trial.newcomer].value();
  const JobRow& host = rows_[trial.host];
  const bool is_measured = view.measured_over(trial.host) > Duration::zero();
  if (is_measured != host.was_measured) return newcomer;
  return std::min(newcomer, view.jobs.rate[trial.host].value() / host.rate_alone);
}

/// After the trial it is known whether the two bear each other; of whoever speaks, by what was
/// measured in it.
void Lucid::unpack_sufferers(Pass& pass) {
  const View& view = pass.view;
  const auto is_awaited = [&](JobId job) { return view.jobs.basis[job] == RateBasis::Awaited; };
  while (!trials_.empty() && trials_.front().due <= view.now) {
    Trial trial = trials_.front();
    trials_.pop_front();
    const auto [due, newcomer, host, extended] = trial;
    if (rows_[newcomer].mate != host) continue;
    if ((is_awaited(newcomer) || is_awaited(host)) && extended < kMostExtensions) {
      trial.due = view.now + std::max(options_.trial, Duration{std::chrono::seconds{1}});
      ++trial.extended;
      trials_.push_back(trial);
      continue;
    }
    if (slower_of(view, trial) >= kBearableSpeed) continue;
    pass.plan.preempt(newcomer, Reason::Interference);
    rows_[newcomer].stays_alone = true;
    detach(view, newcomer);
    enqueue(view, newcomer);
  }
}

bool Lucid::try_pack(Pass& pass, JobId job) {
  const View& view = pass.view;
  const Shape& shape = view.shape(job);
  if (rows_[job].stays_alone || shape.is_fraction()) return false;
  const Newcomer newcomer{.gpus = shape.gpus,
                          .score = score_of(view, job),
                          .memory_mib = static_cast<double>(believed_memory_mib(view, job)),
                          .left = std::max(Duration::zero(), view.estimated_left(job))};
  std::optional<PackingPartner> host;
  for (const PoolId pool : shape.pools) {
    const auto found = partners_.find(pool, newcomer, view.now);
    if (found && (!host || partners_.is_before(*found, *host))) host = found;
  }
  if (!host) return false;
  const std::vector<Slice> devices = devices_of(pass.plan, host->job);
  if (!pass.plan.try_share_on(job, host->pool, devices, 2)) return false;
  partners_.remove(*host);
  note_start(pass, job);
  JobRow& row = rows_[job];
  JobRow& other = rows_[host->job];
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

bool Lucid::try_alone(Pass& pass, JobId job) {
  const Shape& shape = pass.view.shape(job);
  ReservedNodes& reserved = profiler_.nodes();
  const bool keeps_outside = profiler_.is_on() && !shape.is_fraction();
  bool starts = keeps_outside ? reserved.try_start_outside(pass.plan, job, Reason::Order)
                              : pass.plan.try_start(job);
  // Too large for the main part, or nothing else runs: then the whole cluster is its.
  if (!starts && profiler_.is_on() &&
      (running_ == 0 || !reserved.is_outside_large_enough(pass.view.cluster.cluster(), shape)))
    starts = pass.plan.try_start(job);
  if (!starts) return false;
  note_start(pass, job);
  offer(pass.view, job);
  return true;
}

void Lucid::place_waiting(Pass& pass) {
  waiting_.pass([](KindId) { return true; },
                [&](JobId job) {
                  if ((packing_ && try_pack(pass, job)) || try_alone(pass, job))
                    return Tried::Started;
                  return packing_ ? Tried::NoPlace : Tried::Enough;  // else strictly in order
                });
}

std::optional<Time> Lucid::next_wakeup(const View& view) {
  Time next = profiler_.next_end();
  if (!trials_.empty()) next = std::min(next, trials_.front().due);
  const bool someone_waits = !waiting_.empty() || profiler_.has_waiting();
  const bool may_pack = options_.packing == Packing::ByForecast && !packing_;
  if (someone_waits && running_ > 0 && (may_pack || profiler_.is_on()))
    next = std::min(next, std::max(last_look_ + kLookEvery, view.now + Duration{1}));
  if (next == kNever) return std::nullopt;
  return next;
}

namespace {

Result<ProfilerOptions> profiler_options(const Params& params) {
  ProfilerOptions options;
  if (params.text("profiler_nodes") != "auto") {
    BERTH_TRY(options.nodes, params.whole<std::int32_t>("profiler_nodes", 0, kMaxNodes));
  }
  BERTH_TRY(options.largest, params.whole<std::int32_t>("profile_gpus", 1, 1'000'000));
  BERTH_TRY(options.longest, params.positive_duration("profile_time"));
  return options;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Options options;
  BERTH_TRY(options.packing, params.choice<Packing>("packing", {{"off", Packing::Off},
                                                                {"on", Packing::On},
                                                                {"auto", Packing::ByForecast}}));
  using Choice = PackingIndex::Choice;
  BERTH_TRY(options.partner,
            params.choice<Choice>(
                "partner", {{"first", Choice::FirstStarted}, {"least-score", Choice::LeastScore}}));
  BERTH_TRY(options.quiet_arrivals, params.number("quiet_arrivals", 0, 1e9));
  BERTH_TRY(options.unpack, params.flag("unpack"));
  BERTH_TRY(options.trial, params.positive_duration("trial"));
  BERTH_TRY(options.profiler, profiler_options(params));
  return std::make_unique<Lucid>(options);
}

}  // namespace

}  // namespace berth::lucid

namespace berth {

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
      .make = lucid::make};
}

}  // namespace berth
