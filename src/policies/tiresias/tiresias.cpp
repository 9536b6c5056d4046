#include "policies/tiresias/tiresias.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/rounds.h"
#include "policies/common/make_way.h"
#include "policies/tiresias/queue_pass.h"
#include "policies/tiresias/service_queues.h"
#include "policies/tiresias/timer_heap.h"

namespace berth {
namespace tiresias {

struct Options {
  std::vector<double> thresholds{3200};  // GPU-seconds, rising
  double promote_knob = std::numeric_limits<double>::infinity();
  std::optional<GittinsOptions> gittins;
  Duration min_interval{};
  NoNodes no_nodes = NoNodes::EvictLower;
};

/// The policy itself: what time does to jobs. They sink when they have had the service of their
/// queue, and are promoted when they have waited long enough.
class Tiresias final : public Policy {
 public:
  Tiresias(std::string name, const Options& options)
      : name_(std::move(name)),
        options_(options),
        queues_(options.thresholds, options.gittins),
        pass_(queues_, options.no_nodes) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = options_.gittins ? Need::History : Need::Nothing, .preempts = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_rate(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Waits {
    Time since{};
    Duration before{};  // since its last promotion, after its first run
  };
  void cancel_timers(JobId job);
  void fire_timers(const View& view);
  void set_timers(const View& view);
  void promote(const View& view, JobId job);
  void note_outcome(const View& view);

  std::string name_;
  Options options_;
  ServiceQueues queues_;
  QueuePass pass_;
  Column<JobId, Waits> waits_;
  TimerHeap demotions_;       // of runners
  TimerHeap promotions_;      // of jobs that wait
  std::vector<JobId> fresh_;  // started or kept by the last pass: timers follow once that is known
  std::vector<JobId> stopped_;  // preempted by the last pass
  std::optional<Time> last_pass_;
  bool has_room_elsewhere_ = false;  // somebody evicted in this pass: in a pool it was not in
  std::vector<JobId> demoted_;       // in this instant: they still hold their devices
  std::vector<JobId> due_;           // scratch
};

void Tiresias::begin(const View& view) {
  queues_.begin(view);
  pass_.begin(view);
  waits_.resize(view.jobs.size());
  demotions_.begin(view.jobs.size());
  promotions_.begin(view.jobs.size());
}

void Tiresias::on_arrival(const View& view, JobId job) {
  waits_[job].since = view.now;
  queues_.arrive(view, job);
}

void Tiresias::on_departure(const View& view, JobId job) {
  cancel_timers(job);
  queues_.depart(view, job);
}

/// Service was consumed and stays; the place in the queue is lost.
void Tiresias::on_requeue(const View& view, JobId job) {
  cancel_timers(job);
  waits_[job].since = view.now;
  queues_.sink(view, job);
  queues_.wait(view, job);
}

/// Its start may have taken effect at another moment than was expected: its timer is set anew.
void Tiresias::on_rate(const View& view, JobId job) {
  if (queues_.row(job).runs && view.jobs.held_from[job] <= view.now) fresh_.push_back(job);
}

// --- timers

void Tiresias::cancel_timers(JobId job) {
  demotions_.cancel(job);
  promotions_.cancel(job);
}

void Tiresias::fire_timers(const View& view) {
  demoted_.clear();
  demotions_.collect_due(view.now, due_);
  for (const JobId job : due_) {
    // Its start took effect later than was expected: it has not had all of its service yet.
    if (queues_.service_left(view, job) > 0) {
      fresh_.push_back(job);
      continue;
    }
    cancel_timers(job);
    queues_.sink(view, job);
    demoted_.push_back(job);
  }
  promotions_.collect_due(view.now, due_);
  for (const JobId job : due_) promote(view, job);
}

void Tiresias::promote(const View& view, JobId job) {
  cancel_timers(job);
  waits_[job] = {.since = view.now};
  queues_.promote(view, job);
}

/// When a start takes effect is known only after the pass, so timers are set here.
void Tiresias::set_timers(const View& view) {
  for (const JobId job : fresh_) {
    if (!queues_.row(job).runs || queues_.row(job).firm) continue;
    const auto left = queues_.service_left(view, job);
    if (!left) continue;
    const std::int64_t gpus = view.gpus(job);
    const auto ticks = static_cast<std::int64_t>((*left + gpus - 1) / gpus);
    const Time held = std::max(view.now, view.jobs.held_from[job]);
    demotions_.set(job, held + Duration{std::max<std::int64_t>(1, ticks)});
  }
  fresh_.clear();
  for (const JobId job : stopped_) {
    const Duration executed = view.jobs.attained(job, view.now) - queues_.row(job).base;
    if (queues_.row(job).runs || std::isinf(options_.promote_knob) || executed <= Duration::zero())
      continue;
    const Duration patience{static_cast<std::int64_t>(
        std::ceil(options_.promote_knob * static_cast<double>(executed.count())))};
    const Waits& waits = waits_[job];
    promotions_.set(job, std::max(view.now + Duration{1}, waits.since + patience - waits.before));
  }
  stopped_.clear();
}

// --- the pass

void Tiresias::decide(const View& view, Plan& plan, Rng&) {
  if (last_pass_ && view.now < *last_pass_ + options_.min_interval) return;
  last_pass_ = view.now;
  queues_.refresh_ranks(view);
  fire_timers(view);
  pass_.run(view, plan, demoted_);
  note_outcome(view);
}

/// Notes how long the jobs that changed have waited, and whose timers are to be set.
void Tiresias::note_outcome(const View& view) {
  has_room_elsewhere_ = false;
  const auto stop = [&](JobId job) {
    waits_[job].since = view.now;
    stopped_.push_back(job);
    const ServiceQueues::Row& row = queues_.row(job);
    has_room_elsewhere_ =
        has_room_elsewhere_ || (!row.runs && has_room_elsewhere(view, job, row.pool));
  };
  for (const JobId job : pass_.lost()) stop(job);
  for (const JobId job : pass_.moved()) {
    cancel_timers(job);
    if (queues_.row(job).runs) fresh_.push_back(job);
  }
  for (const QueuePass::Step& step : pass_.steps()) {
    cancel_timers(step.job);
    if (!step.granted) {
      stop(step.job);
      continue;
    }
    fresh_.push_back(step.job);
    Waits& waits = waits_[step.job];
    const bool has_run = view.jobs.attained(step.job, view.now) > queues_.row(step.job).base;
    if (step.from == ServiceQueues::From::Queue && has_run) waits.before += view.now - waits.since;
  }
}

std::optional<Time> Tiresias::next_wakeup(const View& view) {
  set_timers(view);
  bool anybody_waits = false;
  bool is_contended = false;  // somebody waits in a queue where running jobs may lose their rank
  for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
    const bool waits = queues_.anybody_waits(queue);
    anybody_waits = anybody_waits || waits;
    is_contended =
        is_contended || (waits && queues_.is_ranked(queue) && !queues_.runners().empty(queue));
  }
  Time next = std::min(demotions_.next(), promotions_.next());
  if (is_contended) next = std::min(next, Grid{options_.gittins->interval}.after(view.now));
  if (has_room_elsewhere_) next = view.now + Duration{1};
  if (last_pass_ && options_.min_interval > Duration::zero() && anybody_waits) {
    const Time allowed = *last_pass_ + options_.min_interval;
    next = allowed > view.now ? allowed : std::max(next, allowed);
  }
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

namespace {

Result<double> promote_knob_of(const Params& params) {
  if (params.text("promote_knob") == "off") return std::numeric_limits<double>::infinity();
  return params.number("promote_knob", 0, 1e9);
}

Result<Options> options_of(const Params& params) {
  Options options;
  BERTH_TRY(options.thresholds, params.numbers("thresholds"));
  const auto& thresholds = options.thresholds;
  const bool is_rising =
      std::ranges::adjacent_find(thresholds, std::ranges::greater_equal{}) == thresholds.end();
  if (thresholds.empty() || thresholds.size() > 100 || thresholds.front() <= 0 ||
      thresholds.back() > kMaxInputSeconds || !is_rising) {
    return params.wrong("thresholds", "must be 1 to 100 rising GPU-seconds above zero");
  }
  BERTH_TRY(options.promote_knob, promote_knob_of(params));
  BERTH_TRY(options.min_interval, params.duration("min_interval"));
  BERTH_TRY_VOID(params.number("pack_limit", 0, 1));  // read by the placement `skew`
  BERTH_TRY(const bool evicts, params.flag("evict_for_consolidation"));
  options.no_nodes = evicts ? NoNodes::EvictLower : NoNodes::Wait;
  return options;
}

Result<std::unique_ptr<Policy>> make_l(const PolicyEntry& entry, const Params& params) {
  BERTH_TRY(const Options options, options_of(params));
  return std::make_unique<Tiresias>(entry.name, options);
}

Result<std::unique_ptr<Policy>> make_g(const PolicyEntry& entry, const Params& params) {
  BERTH_TRY(Options options, options_of(params));
  GittinsOptions& gittins = options.gittins.emplace();
  BERTH_TRY(gittins.history, params.whole<std::size_t>("history", 1, 10'000'000));
  BERTH_TRY(gittins.min_samples, params.whole<std::size_t>("min_samples", 1, 10'000'000));
  BERTH_TRY(gittins.samples, params.numbers("samples"));
  BERTH_TRY(gittins.interval, params.positive_duration("gittins_interval"));
  return std::make_unique<Tiresias>(entry.name, options);
}

std::vector<ParamSpec> params_l() {
  return {{"thresholds", "3200",
           "GPU-seconds at which a job falls to the next queue, rising, comma separated"},
          {"promote_knob", "off",
           "a job that waited this many times its run time goes back to the first queue"},
          {"min_interval", "0", "seconds between two passes at least"},
          {"pack_limit", "0.5", "with --placement skew: skew above which a model is consolidated"},
          {"evict_for_consolidation", "on",
           "a consolidated job that finds no nodes takes those of jobs in lower queues"}};
}

std::vector<ParamSpec> params_g() {
  const std::vector<ParamSpec> more = {
      {"history", "5000", "how many finished jobs the Gittins index looks back on"},
      {"min_samples", "30", "below this many finished jobs it behaves like tiresias-l"},
      {"samples", "", "GPU-seconds of jobs known from before the run, comma separated"},
      {"gittins_interval", "60", "seconds between two looks at the indices of running jobs"}};
  std::vector<ParamSpec> params = params_l();
  params.insert(params.end(), more.begin(), more.end());
  return params;
}

}  // namespace
}  // namespace tiresias

std::vector<PolicyEntry> tiresias_entries() {
  return {{.name = "tiresias-l",
           .summary = "preemptive, queues by GPU-seconds attained, first come first served inside",
           .params = tiresias::params_l(),
           .make = tiresias::make_l,
           .test_settings = {{"thresholds", "9,30"}}},
          {.name = "tiresias-g",
           .summary = "preemptive, queues by GPU-seconds attained, Gittins index inside",
           .params = tiresias::params_g(),
           .make = tiresias::make_g,
           .test_settings = {{"thresholds", "9,30"}, {"min_samples", "3"}}}};
}

}  // namespace berth
