#include "policies/gandiva/gandiva.h"

#include <algorithm>

namespace berth::gandiva {

void Gandiva::begin(const View& view) {
  housing_.begin(view);
  observations_.begin(view);
  migration_.begin(view);
}

void Gandiva::on_arrival(const View& view, JobId job) {
  housing_.on_arrival(view, job);
  newcomers_.push_back(job);
}

void Gandiva::on_departure(const View& view, JobId job) { housing_.on_departure(view, job); }

void Gandiva::on_requeue(const View& view, JobId job) { housing_.on_requeue(view, job); }

void Gandiva::on_capacity_change(const View& view, NodeId node) {
  if (view.cluster.is_up(node)) return housing_.on_server_up(view, node);
  const std::vector<JobId> orphans = housing_.on_server_down(view, node);
  orphans_.insert(orphans_.end(), orphans.begin(), orphans.end());
}

void Gandiva::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  for (const JobId job : orphans_)
    if (plan.holds(job)) plan.preempt(job, Reason::NodeLost);
  orphans_.clear();
  turns_.end_due_slices(view, observations_);
  for (const JobId job : newcomers_) housing_.settle_found(view, plan, job);
  newcomers_.clear();
  housing_.place_queue(view);
  migration_.pull_after_departures(pass);
  if (ticks_.is_due(view.now)) on_tick(pass);
  if (rebalances_.is_due(view.now)) {
    rebalances_.settle();
    migration_.rebalance(pass);
  }
  turns_.carry_out(pass);
  if (housing_.has_touched()) ticks_.go_on(view.now);
}

void Gandiva::on_tick(Pass& pass) {
  const View& view = pass.view;
  const auto watch = [&](Home home) {
    if (!housing_.is_changed(home)) observations_.watch(view, housing_.ring(home));
  };
  ticks_.settle();
  for (const auto& [end, home] : turns_.slices()) watch(home);
  const std::vector<Home> touched = housing_.take_touched();
  for (const Home home : touched) watch(home);
  if (options_.packing == Mechanism::On) packing_.on_tick(pass);
  migration_.on_tick(pass, touched);
  growth_.grow_due(pass);
  if (growth_.next_due() != kNever)
    ticks_.stir(std::max(growth_.next_due(), view.now + Duration{1}));
  if (!turns_.slices().empty() || packing_.has_probes()) ticks_.go_on(view.now);
}

std::optional<Time> Gandiva::next_wakeup(const View& view) {
  turns_.start_clocks(view);
  const bool nothing_runs = view.cluster.free_gpus() == view.cluster.usable_gpus();
  if (nothing_runs) return std::nullopt;  // only an event can change that
  const bool contended = housing_.has_queue() || !turns_.slices().empty();
  if (contended && rebalances_.grid().has_period()) rebalances_.go_on(view.now);
  const Time next = std::min({ticks_.next(), rebalances_.next(), turns_.slices().first()});
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

}  // namespace berth::gandiva

namespace berth {

namespace {

using gandiva::GrowStep;
using gandiva::Mechanism;

Result<Mechanism> mechanism(const Params& params, std::string_view key) {
  BERTH_TRY(const bool on, params.flag(key));
  return on ? Mechanism::On : Mechanism::Off;
}

Result<void> read_times(const Params& params, gandiva::Options& options) {
  BERTH_TRY(options.slice, params.positive_duration("slice"));
  BERTH_TRY(options.tick, params.positive_duration("tick"));
  BERTH_TRY(options.switch_cost, params.duration("switch_cost"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  BERTH_TRY(options.resize_cost, params.duration("resize_cost"));
  BERTH_TRY(const std::int64_t probe_slices, params.integer("pack_probe", 1, 1'000'000));
  options.pack_probe = options.slice * probe_slices;
  BERTH_TRY(options.rebalance, params.duration("rebalance"));
  BERTH_TRY(options.idle_period, params.duration("idle_period"));
  BERTH_TRY(options.migrate_cooldown, params.duration("migrate_cooldown"));
  BERTH_TRY(options.horizon, params.duration("horizon"));
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  gandiva::Options options;
  BERTH_TRY_VOID(read_times(params, options));
  BERTH_TRY(options.limits.max_height, params.whole<std::int32_t>("max_height", 0, 1000));
  BERTH_TRY(options.limits.host_memory_mib, params.integer("host_mem", 0, 1'000'000'000));
  BERTH_TRY(options.defrag_threshold, params.number("defrag_threshold", 0, 1));
  BERTH_TRY(options.max_probe, params.whole<std::size_t>("max_probe", 0, 1'000'000));
  BERTH_TRY(options.grow_step, params.choice<GrowStep>("grow_step", {{"double", GrowStep::Double},
                                                                     {"all", GrowStep::All}}));
  BERTH_TRY(options.packing, mechanism(params, "packing"));
  BERTH_TRY(options.migration, mechanism(params, "migration"));
  BERTH_TRY(options.growing, mechanism(params, "growing"));
  return std::make_unique<gandiva::Gandiva>(entry.name, options);
}

}  // namespace

PolicyEntry gandiva_entry() {
  return {
      .name = "gandiva",
      .summary = "time slices on servers by affinity; packing, migration and growth as measured",
      .params =
          {{"slice", "60", "seconds of a turn on a server with more jobs than GPUs"},
           {"switch_cost", "1", "seconds a job pays when its turn begins"},
           {"migration_cost", "2", "seconds a job pays when it changes server"},
           {"resize_cost", "5", "seconds a job pays when it grows or shrinks"},
           {"max_height", "2",
            "GPUs asked for on a server per GPU it has, rounded up; 0 = no limit"},
           {"host_mem", "0",
            "MiB of host memory a server has for jobs that take turns there; 0 = no limit"},
           {"tick", "60", "seconds between two looks at packing, migration and growth"},
           {"packing", "on", "put jobs that take turns on the same GPUs if that is faster"},
           {"pack_probe", "2", "slices after which a packing is judged"},
           {"max_probe", "64", "packings under trial at once"},
           {"migration", "on", "move jobs between servers"},
           {"migrate_cooldown", "10m", "seconds a job stays where it is after a migration"},
           {"horizon", "10m", "seconds in which a migration must win back what it costs"},
           {"defrag_threshold", "0.75",
            "share of a server's GPUs that must be free for its jobs to be moved elsewhere"},
           {"rebalance", "10m", "seconds between two looks at what classes deserve; 0 = never"},
           {"growing", "on", "let jobs with a largest size above their own take idle GPUs"},
           {"idle_period", "5m", "seconds GPUs are idle before a job of their server takes them"},
           {"grow_step", "double", "double: twice the GPUs each time; all: all idle ones at once"}},
      .make = make,
      .test_settings = {{"slice", "3"},
                        {"tick", "2"},
                        {"pack_probe", "1"},
                        {"rebalance", "5"},
                        {"idle_period", "3"},
                        {"migrate_cooldown", "4"}}};
}

}  // namespace berth
