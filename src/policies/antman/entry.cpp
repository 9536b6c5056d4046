#include "policies/antman/entry.h"

#include <cmath>

#include "policies/antman/antman.h"
#include "policies/antman/lite.h"

namespace berth {

namespace {

std::set<std::string, std::less<>> words_of(std::string_view text) {
  std::set<std::string, std::less<>> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) words.emplace(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<antman::Tenants> tenants_of(const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("quota"));
  antman::Tenants tenants;
  for (const auto& [tenant, numbers] : list) {
    const bool whole = numbers.size() == 1 && numbers.front() == std::floor(numbers.front()) &&
                       numbers.front() >= 0 && numbers.front() <= 1e9;
    if (!whole) return params.wrong("quota", "must be TENANT:GPUs in whole GPUs");
    tenants.set_quota(tenant, static_cast<std::int64_t>(numbers.front()));
  }
  return tenants;
}

Result<std::int32_t> small(const Params& params, std::string_view key, std::int64_t most) {
  BERTH_TRY(const std::int64_t number, params.integer(key, 0, most));
  return static_cast<std::int32_t>(number);
}

Result<void> read_interference(const Params& params, Interference& interference) {
  BERTH_TRY(interference.tolerance, params.number("tol", 0, 10));
  BERTH_TRY(interference.least_rate, params.number("r_min", 0.001, 1));
  BERTH_TRY(interference.bandwidth_term, params.number("bw_term", 0, 10));
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  antman::Options options;
  options.opportunistic = words_of(params.text("op"));
  BERTH_TRY(options.tenants, tenants_of(params));
  BERTH_TRY_VOID(read_interference(params, options.interference));
  BERTH_TRY(options.busiest, params.number("u_max", 0, 1));
  const std::int64_t most_guests = kMaxSharers - 1;
  BERTH_TRY(options.guests_beside, small(params, "max_op", most_guests));
  BERTH_TRY(options.guests_alone, small(params, "max_op_free", most_guests));
  BERTH_TRY(options.reserve_mib, small(params, "reserve", 1'000'000));
  BERTH_TRY(options.least_mib, small(params, "m_min", 1'000'000));
  BERTH_TRY(options.upgrade, params.duration("op_upgrade"));
  BERTH_TRY(options.crawling, params.duration("op_migrate"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  return std::make_unique<antman::Antman>(entry.name, std::move(options));
}

Result<std::unique_ptr<Policy>> make_lite(const PolicyEntry& entry, const Params&) {
  return std::make_unique<antman::Lite>(entry.name);
}

}  // namespace

PolicyEntry antman_entry() {
  return {
      .name = "antman",
      .summary = "guaranteed jobs as if alone, opportunistic ones on what they leave of the GPUs",
      .params =
          {{"op", "hpo,debug,interactive",
            "kinds and queues whose jobs are opportunistic, comma separated; a negative priority "
            "makes a job so too"},
           {"quota", "",
            "TENANT:GPUs guaranteed, comma separated; tenant is a job's group, else its user; none "
            "given: no limit for anybody"},
           {"tol", "0.02", "slowdown a guaranteed job bears"},
           {"r_min", "0.05", "least share of its kernels an opportunistic job issues; else paused"},
           {"bw_term", "0.1", "slowdown by memory traffic per share of kernels beside a job"},
           {"u_max", "0.8", "utilisation of a GPU from which no opportunistic job joins it"},
           {"max_op", "1", "opportunistic jobs on the GPU of a guaranteed job"},
           {"max_op_free", "3", "opportunistic jobs on any other GPU"},
           {"reserve", "500", "MiB of device memory kept free of opportunistic jobs"},
           {"m_min", "2048", "MiB of device memory to spare for a GPU to be joined"},
           {"op_upgrade", "30m",
            "seconds of waiting after which an opportunistic job is guaranteed if its tenant's "
            "quota has room; 0 = never"},
           {"op_migrate", "5m",
            "seconds at less than a fifth of its kernels after which an opportunistic job moves to "
            "idle GPUs; 0 = never"},
           {"migration_cost", "2", "seconds an opportunistic job pays when it moves"}},
      .make = make};
}

PolicyEntry antman_lite_entry() {
  return {.name = "antman-lite",
          .summary =
              "FIFO without preemption; jobs share a GPU while their utilisations sum to at most 1",
          .params = {},
          .make = make_lite};
}

}  // namespace berth
