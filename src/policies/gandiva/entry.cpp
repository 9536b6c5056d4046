#include "policies/gandiva/entry.h"

#include "policies/gandiva/gandiva.h"

namespace berth {

namespace {

using gandiva::Mechanism;

Result<Duration> above_zero(const Params& params, std::string_view key) {
  BERTH_TRY(const Duration duration, params.duration(key));
  if (duration <= Duration::zero()) return params.wrong(key, "must be more than zero");
  return duration;
}

Result<Mechanism> mechanism(const Params& params, std::string_view key) {
  BERTH_TRY(const bool on, params.flag(key));
  return on ? Mechanism::On : Mechanism::Off;
}

Result<void> read_times(const Params& params, gandiva::Options& options) {
  BERTH_TRY(options.slice, above_zero(params, "slice"));
  BERTH_TRY(options.tick, above_zero(params, "tick"));
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
  BERTH_TRY(const std::int64_t height, params.integer("max_height", 0, 1000));
  options.limits.max_height = static_cast<std::int32_t>(height);
  BERTH_TRY(options.limits.host_memory_mib, params.integer("host_mem", 0, 1'000'000'000));
  BERTH_TRY(options.defrag_threshold, params.number("defrag_threshold", 0, 1));
  BERTH_TRY(const std::int64_t probes, params.integer("max_probe", 0, 1'000'000));
  options.max_probe = static_cast<std::size_t>(probes);
  BERTH_TRY(const std::size_t step, params.choice("grow_step", {"double", "all"}));
  options.grow_step = step == 0 ? gandiva::GrowStep::Double : gandiva::GrowStep::All;
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
      .make = make};
}

}  // namespace berth
