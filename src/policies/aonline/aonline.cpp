#include "policies/aonline/aonline.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "policies/common/sized_start.h"
#include "policies/kit/beliefs.h"

namespace berth::aonline {

std::int64_t Aonline::slots_for(double seconds) const {
  const double exact = seconds / to_seconds(options_.slot) * (1 - 1e-9);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(exact)));
}

/// A job too long for the longest window in every way is planned to its end, the fastest way, and
/// runs on from there.
std::vector<Configuration> Aonline::ways_of(const View& view, JobId job) const {
  std::vector<Configuration> ways;
  const double left = believed_left(view, job);
  for (const PoolId pool : view.shape(job).pools) {
    if (view.cluster.usable_gpus(pool) == 0) continue;
    const ElasticRange range = range_in(view, job, pool, options_.elastic);
    const std::int32_t asked = std::clamp(view.gpus(job), range.least, range.most);
    for (const std::int32_t gpus : doubling_sizes(range, asked)) {
      const double rate = believed_rate(view, job, pool, gpus);
      ways.push_back({pool.value, gpus, slots_for(left / rate),
                      options_.servers.count_for(gpus) * options_.servers.cores});
    }
  }
  const auto fastest = std::ranges::min_element(
      ways, {}, [](const Configuration& way) { return std::tuple(way.slots, way.gpus); });
  if (fastest == ways.end() || fastest->slots <= options_.windows.longest) return unbeaten(ways);
  Configuration clipped = *fastest;
  clipped.slots = options_.windows.longest;
  return {clipped};
}

/// As long as it is believed to need: a late job has a slot more at least.
Configuration Aonline::held_by(const View& view, JobId job) const {
  const PoolId pool = view.jobs.allocation[job].pool;
  const std::int32_t gpus = view.jobs.granted[job];
  const double rate = believed_rate(view, job, pool, gpus);
  return {pool.value, gpus, slots_for(believed_left(view, job) / rate),
          options_.servers.count_for(gpus) * options_.servers.cores};
}

std::optional<Refusal> Aonline::admit(const View& view, JobId job) {
  if (options_.too_long == TooLong::RunsOn) return std::nullopt;
  double least = std::numeric_limits<double>::infinity();
  for (const PoolId pool : view.shape(job).pools) {
    const ElasticRange range = range_in(view, job, pool, options_.elastic);
    for (std::int32_t gpus = range.least; gpus <= range.most; ++gpus)
      least = std::min(least, believed_left(view, job) / believed_rate(view, job, pool, gpus));
  }
  const std::int64_t slots = slots_for(least);
  if (slots <= options_.windows.longest) return std::nullopt;
  return Refusal{
      Reason::NeverFits,
      fmt::format("needs {} slots of {} at its fastest, the longest window has {}", slots,
                  human_duration(to_seconds(options_.slot)), options_.windows.longest)};
}

void Aonline::on_arrival(const View&, JobId job) { waiting_.insert(job); }

void Aonline::on_departure(const View&, JobId job) {
  waiting_.erase(job);
  std::erase_if(planned_, [&](const Planned& planned) { return planned.job == job; });
  in_window_.erase(job);
  running_.erase(job);
}

void Aonline::on_requeue(const View&, JobId job) {
  in_window_.erase(job);
  running_.erase(job);
  waiting_.insert(job);
}

/// Who was planned and could not start joins the next batch.
void Aonline::close_window(Time now) {
  for (const Planned& planned : planned_) waiting_.insert(planned.job);
  planned_.clear();
  in_window_.clear();
  begin_ = options_.early ? now : end_of_window();
  window_ = options_.windows.after(window_);
  open_ = false;
}

/// The first window that begins now or later. One that was waited for has begun even if the wake-up
/// came late, unless it is over.
void Aonline::find_next_window(Time now) {
  if (idle_ && options_.restart) {
    window_ = Window{};
    begin_ = now;
  }
  idle_ = false;
  if (options_.early) begin_ = now;
  const bool is_awaited = awaited_ <= now;
  while (is_awaited ? end_of_window() <= now : begin_ < now) {
    begin_ = end_of_window();
    window_ = options_.windows.after(window_);
  }
}

void Aonline::plan_window(const View& view) {
  std::vector<std::int64_t> usable;
  for (std::uint32_t p = 0; p < view.cluster.pools(); ++p)
    usable.push_back(view.cluster.usable_gpus(PoolId{p}));
  const std::int64_t cores = options_.servers.any() ? all_cores(view.cluster.cluster()) : 0;
  Room room{usable, cores, window_.length};
  // Nobody is stopped, so what runs takes its GPUs out of the window for as long as it needs them.
  for (const JobId job : running_) room.occupy(held_by(view, job));
  std::vector<BatchJob> batch;
  for (const JobId job : waiting_) {
    const double weight = std::max(1e-6, static_cast<double>(view.request(job).weight));
    batch.push_back({.weight = weight, .ways = ways_of(view, job)});
  }
  const BatchPlan plan = plan_batch(room, batch, options_.batch);
  JobList left;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (const auto& choice = plan.choices[i]) {
      const Configuration& way = batch[i].ways[choice->way];
      planned_.push_back({.start = begin_ + options_.slot * choice->start,
                          .job = waiting_[i],
                          .pool = PoolId{way.type},
                          .gpus = static_cast<std::int32_t>(way.gpus)});
    } else {
      left.insert(waiting_[i]);
    }
  }
  waiting_ = std::move(left);
  std::ranges::sort(planned_, {}, &Planned::key);
  open_ = true;
}

void Aonline::decide(const View& view, Plan& plan, Rng&) {
  if (open_ && (view.now >= end_of_window() || (options_.early && is_plan_done())))
    close_window(view.now);
  while (!open_ && !waiting_.empty()) {
    find_next_window(view.now);
    if (begin_ > view.now) break;
    plan_window(view);
    // A window in which nobody finds a place is over at once, unless no longer one will come.
    const bool longest = window_.length >= options_.windows.longest;
    if (options_.early && is_plan_done() && !longest) close_window(view.now);
  }
  start_due(view, plan);
  idle_ = waiting_.empty() && planned_.empty() && running_.empty();
}

/// In the order of the plan; GPUs that a late job still holds are waited for. Ahead of its time a
/// job starts only if all before it in its pool have: so everybody starts when it was planned to at
/// the latest, if those before it end in time.
void Aonline::start_due(const View& view, Plan& plan) {
  held_up_.resize(0);  // all of it anew
  held_up_.resize(view.cluster.pools());
  std::erase_if(planned_, [&](const Planned& due) {
    const bool is_next = options_.ahead && !held_up_[due.pool];
    if (due.start > view.now && !is_next) return false;
    held_up_[due.pool] = true;
    if (plan.cluster().free_gpus(due.pool) < due.gpus) return false;
    const ElasticRange range = range_in(view, due.job, due.pool, options_.elastic);
    if (!try_start_up_to(plan, view, due.job, due.pool, due.gpus, range, Reason::Reservation))
      return false;
    held_up_[due.pool] = false;
    in_window_.insert(due.job);
    running_.insert(due.job);
    return true;
  });
}

std::optional<Time> Aonline::next_wakeup(const View& view) {
  Time next = kNever;
  awaited_ = !open_ && !waiting_.empty() ? begin_ : kNever;
  next = std::min(next, awaited_);
  if (open_ && (!waiting_.empty() || !planned_.empty())) next = end_of_window();
  for (const Planned& planned : planned_) {
    if (planned.start <= view.now) continue;
    next = std::min(next, planned.start);
    break;  // in order of their starts
  }
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  Options options;
  BERTH_TRY(options.slot, params.positive_duration("slot"));
  BERTH_TRY(options.windows.growth, params.number("beta", 1.01, 16));
  BERTH_TRY(options.windows.longest, params.integer("max_window", 1, 100'000));
  BERTH_TRY(options.early, params.flag("early"));
  BERTH_TRY(options.restart, params.flag("origin"));
  BERTH_TRY(options.ahead, params.flag("ahead"));
  BERTH_TRY(options.too_long, params.choice<TooLong>("too_long", {{"run-on", TooLong::RunsOn},
                                                                  {"reject", TooLong::Rejected}}));
  BERTH_TRY(options.batch.exact_jobs, params.whole<std::size_t>("exact_jobs", 0, 64));
  BERTH_TRY(options.batch.steps, params.integer("exact_steps", 1, 1'000'000'000));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.servers, parameter_servers(params));
  return std::make_unique<Aonline>(entry.name, options);
}

std::vector<ParamSpec> all_params() {
  std::vector<ParamSpec> params{
      {"slot", "10m", "seconds of a slot: planned starts lie on its multiples"},
      {"beta", "2", "length of a window against the one before"},
      {"max_window", "64", "slots of the longest window"},
      {"early", "on", "the next window begins as soon as the plan of the last one is done"},
      {"origin", "on", "windows begin at one slot again once the cluster was empty"},
      {"ahead", "off",
       "a job starts before its planned slot if all before it have and GPUs are free", "on"},
      {"too_long", "run-on", "jobs longer than the longest window: run-on beyond it, or reject"},
      {"exact_jobs", "8", "batches of at most so many jobs are solved by branch and bound"},
      {"exact_steps", "20000", "steps after which branch and bound takes the best it has"}};
  for (ParamSpec& spec : elastic_params()) params.push_back(std::move(spec));
  for (ParamSpec& spec : parameter_server_params()) params.push_back(std::move(spec));
  return params;
}

}  // namespace

}  // namespace berth::aonline

namespace berth {

PolicyEntry aonline_entry() {
  return {.name = "aonline",
          .summary = "batches in doubling windows: the most weight in each, type and size by job",
          .params = aonline::all_params(),
          .make = aonline::make,
          .test_settings = {{"slot", "2"}, {"elastic", "all"}}};
}

}  // namespace berth
