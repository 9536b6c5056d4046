// How long one scheduling pass takes, for every policy of the registry: hooks, decide, seal,
// carrying the actions out and asking for the next wake-up, at 10,000 GPUs and 2,000 active jobs.
//   pass_bench                           every policy
//   pass_bench --policies a,b            these
//   pass_bench --nodes N --active N      another size (nodes of eight, half V100, half A100)
//   pass_bench --minutes M --budget S    simulate so long, or until so many seconds of processor
//   pass_bench --limit MS                exit 1 if a p99 is above this (default 1000)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/split.h"
#include "base/text_table.h"
#include "passes.h"
#include "policies/registry.h"

namespace {

using berth::Align;
using berth::bench::measure_passes;
using berth::bench::PassCase;
using berth::bench::PassTimes;

std::string ms(double milliseconds) {
  return milliseconds < 10 ? fmt::format("{:.2f}", milliseconds)
                           : fmt::format("{:.0f}", milliseconds);
}

/// Prints the table; false: some policy is above the limit or did not run.
bool print_table(const std::vector<std::string>& policies, PassCase pattern, double limit_ms) {
  fmt::print(
      "| policy | simulated, min | passes | active jobs | busy GPUs | p50, ms | p99, ms | max, ms "
      "| first, ms |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|\n");
  bool all_within = true;
  for (const std::string& policy : policies) {
    pattern.policy = policy;
    const PassTimes times = measure_passes(pattern);
    if (!times.ok) {
      fmt::print(stderr, "{}: {}\n", policy, times.error);
      all_within = false;
      continue;
    }
    fmt::print("| {} | {:.0f} | {} | {:.0f} | {:.0f} | {} | {} | {} | {} |\n", policy,
               times.minutes, times.passes, times.active, times.busy_gpus, ms(times.p50_ms),
               ms(times.p99_ms), ms(times.max_ms), ms(times.first_ms));
    std::fflush(stdout);
    if (times.p99_ms <= limit_ms) continue;
    fmt::print(stderr, "{}: p99 of a pass is {} ms\n", policy, ms(times.p99_ms));
    all_within = false;
  }
  return all_within;
}

}  // namespace

int main(int argc, char** argv) {
  PassCase pattern;
  std::vector<std::string> policies;
  double limit_ms = 1000;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const std::string value = i + 1 < argc ? argv[++i] : "";
    const auto number = [&] { return std::strtoull(value.c_str(), nullptr, 10); };
    if (option == "--policies") {
      for (const std::string_view name : berth::split(value, ',')) policies.emplace_back(name);
    } else if (option == "--nodes") {
      pattern.nodes = number();
    } else if (option == "--active") {
      pattern.active = number();
    } else if (option == "--minutes") {
      pattern.minutes = std::strtod(value.c_str(), nullptr);
    } else if (option == "--budget") {
      pattern.budget_seconds = std::strtod(value.c_str(), nullptr);
    } else if (option == "--limit") {
      limit_ms = std::strtod(value.c_str(), nullptr);
    } else {
      fmt::print(stderr, "pass_bench: unknown option {} (see the head of bench/pass_bench.cpp)\n",
                 option);
      return 2;
    }
  }
  if (policies.empty()) {
    for (const berth::PolicyEntry& entry : berth::policy_registry()) policies.push_back(entry.name);
  }
  return print_table(policies, pattern, limit_ms) ? 0 : 1;
}
