#include "policies/muri/entry.h"

#include <algorithm>

#include "policies/muri/muri.h"

namespace berth {

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

Result<std::unique_ptr<Policy>> make_muri(const PolicyEntry& entry, const Params& params) {
  MuriOptions options;
  options.by_work = entry.name == "muri-s";
  BERTH_TRY(options.interval, params.duration("interval"));
  BERTH_TRY(options.overhead, overhead_of(params));
  BERTH_TRY(const auto limit, params.integer("exact_limit", 0, 5000));
  options.exact_limit = static_cast<std::size_t>(limit);
  return std::make_unique<Muri>(entry.name, options);
}

std::vector<ParamSpec> muri_params() {
  return {
      {"interval", "360", "seconds between two groupings, aligned to time zero; 0: at every event"},
      {"overhead", "profile",
       "what sharing costs beside the stages: profile, measured (1,1.3,1.5,1.37) or four factors"},
      {"exact_limit", "256", "jobs of one size that are matched exactly; more: by classes"}};
}

}  // namespace

PolicyEntry muri_s_entry() {
  return {.name = "muri-s",
          .summary =
              "preemptive, interleaves up to four jobs per GPU, least estimated work x GPUs first",
          .params = muri_params(),
          .make = make_muri};
}

PolicyEntry muri_l_entry() {
  return {
      .name = "muri-l",
      .summary = "preemptive, interleaves up to four jobs per GPU, least GPU-seconds held first",
      .params = muri_params(),
      .make = make_muri};
}

}  // namespace berth
