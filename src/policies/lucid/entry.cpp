#include "policies/lucid/entry.h"

#include "policies/lucid/lucid.h"

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
