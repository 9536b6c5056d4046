#include "policies/bsbf/entry.h"

#include "policies/bsbf/sharing_sjf.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  SharingSjfOptions options;
  options.best_benefit = entry.name == "sjf-bsbf";
  BERTH_TRY(options.consolidate, params.flag("consolidate"));
  BERTH_TRY(const auto key, params.choice("key", {"time", "gpu_time"}));
  BERTH_TRY(options.restore, params.flag("restore"));
  BERTH_TRY(const auto reserve, params.number("reserve", 0, 1000));
  BERTH_TRY(options.age_weight, params.number("w_age", 0, 1e6));
  BERTH_TRY(const auto depth, params.integer("scan_depth", 1, 1'000'000'000));
  BERTH_TRY(options.interval, params.duration("interval"));
  options.by_gpu_time = key == 1;
  options.reserve_mib = static_cast<std::int32_t>(reserve * 1024);
  options.scan_depth = static_cast<std::int32_t>(depth);
  if (options.best_benefit) {
    BERTH_TRY(const auto rank, params.choice("rank", {"tcon", "benefit"}));
    options.rank = rank == 0 ? PartnerRank::AverageTime : PartnerRank::Benefit;
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

PolicyEntry sjf_ffs_entry() {
  return {
      .name = "sjf-ffs",
      .summary = "shortest first; when free GPUs run out, shares the first that have memory enough",
      .params = common_params(),
      .make = make};
}

PolicyEntry sjf_bsbf_entry() {
  std::vector<ParamSpec> params = common_params();
  params.push_back({"rank", "tcon",
                    "best partner by least average completion time (tcon) or largest gain over "
                    "waiting (benefit)"});
  return {.name = "sjf-bsbf",
          .summary =
              "shortest first; shares a GPU where that lowers the pair's average completion time",
          .params = std::move(params),
          .make = make};
}

}  // namespace berth
