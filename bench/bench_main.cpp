// ./run bench: how fast the simulator is, as a table. Absolute seconds depend on the machine; the
// ratios (per job at 1,000,000 against 10,000, load 1.3 against 0.9, 100,000 GPUs against 2,490) do
// not.
//   berth_bench                 the full table of docs/performance.md
//   berth_bench --quick         a hundredth of the jobs
//   berth_bench --growth F.svg  cost per job from 10,000 to 1,000,000 jobs, as a plot
//   berth_bench --csv N         seconds to read N rows
//   berth_bench --check FILE    what became slower than 1.3 times since the baseline was written
//   berth_bench --baseline FILE writes the baseline anew
//   berth_bench --jobs N --policies a,b --cluster C --load X    one line per policy
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/split.h"
#include "base/text_table.h"
#include "baseline.h"
#include "cases.h"
#include "placements/placements.h"
#include "policies/registry.h"
#include "reference.h"
#include "report/chart.h"

namespace {

using berth::Align;
using berth::Result;
using berth::TextTable;
using berth::bench::BaselineRow;
using berth::bench::Case;
using berth::bench::measure;
using berth::bench::Measured;

bool loop_allocates = false;  // some case did: the exit status says so

const std::string kPhilly = "321x2,231x8";  // 552 nodes, 2,490 GPUs

void print_runs(std::string_view title, const std::vector<Case>& cases) {
  fmt::print("\n{}\n\n", title);
  TextTable table{{{"policy", Align::Left},
                   {"jobs"},
                   {"GPUs", Align::Left},
                   {"load"},
                   {"seconds"},
                   {"us/job"},
                   {"M events/s"},
                   {"B/job"},
                   {"late allocs"},
                   {"largest queue"},
                   {"digest"}}};
  for (const Case& each : cases) {
    const Measured m = measure(each);
    if (!m.ok) {
      fmt::print(stderr, "{}: {}\n", each.policy, m.error);
      continue;
    }
    // Tables that double now and then are fine; an allocation per event is not.
    if (m.late_allocations * 2000 > std::max<std::size_t>(each.jobs, 100'000)) {
      fmt::print(stderr, "{}: the warm event loop allocates ({} times)\n", each.policy,
                 m.late_allocations);
      loop_allocates = true;
    }
    const auto jobs = static_cast<double>(each.jobs);
    table.add_row({each.policy, fmt::format("{}", each.jobs), each.cluster,
                   fmt::format("{:.2f}", each.load), fmt::format("{:.2f}", m.seconds),
                   fmt::format("{:.2f}", m.seconds / jobs * 1e6),
                   fmt::format("{:.2f}", static_cast<double>(m.events) / m.seconds * 1e-6),
                   fmt::format("{:.0f}", m.bytes_per_job), fmt::format("{}", m.late_allocations),
                   fmt::format("{}", m.largest_queue), m.digest});
    std::fflush(stdout);
  }
  fmt::print("{}", table.str());
}

std::vector<Case> each_policy(const std::vector<std::string>& policies, Case pattern) {
  std::vector<Case> cases;
  for (const std::string& policy : policies) {
    pattern.policy = policy;
    cases.push_back(pattern);
  }
  return cases;
}

const std::vector<std::string> kFast{"fifo", "fifo-skip",  "sjf", "srtf",
                                     "srsf", "tiresias-l", "easy"};

int plot_growth(const std::string& path) {
  berth::LineChart chart;
  chart.title = "Processor time per job against the number of jobs";
  chart.x = {.title = "Jobs (256 GPUs, load 0.9)", .scale = berth::Scale::Log};
  chart.y = {.title = "Microseconds per job"};
  chart.steps = false;
  for (const std::string& policy : kFast) {
    berth::Line line{.label = policy, .points = {}};
    for (const std::size_t jobs : {10'000U, 30'000U, 100'000U, 300'000U, 1'000'000U}) {
      double best = 0;  // of three: what the machine does besides only ever adds
      for (int repeat = 0; repeat < 3; ++repeat) {
        const Measured m = measure({.policy = policy, .cluster = "32x8", .jobs = jobs});
        if (m.ok && (repeat == 0 || m.seconds < best)) best = m.seconds;
      }
      line.points.emplace_back(static_cast<double>(jobs), best / static_cast<double>(jobs) * 1e6);
    }
    chart.lines.push_back(std::move(line));
  }
  const auto written = berth::write_file(path, berth::to_svg(chart));
  if (!written) fmt::print(stderr, "berth_bench: {}\n", written.error().text());
  return written ? 0 : 1;
}

/// The best of three, each beside the reference: both are slowed down alike by whatever else runs.
Result<double> cost_of(const Case& each) {
  double seconds = 0;
  double reference = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const double yardstick = berth::bench::reference_seconds();
    const Measured m = measure(each);
    if (!m.ok) return tl::unexpected(berth::Error{m.error});
    reference = repeat == 0 ? yardstick : std::min(reference, yardstick);
    seconds = repeat == 0 ? m.seconds : std::min(seconds, m.seconds);
  }
  return seconds / reference;
}

/// Every policy and every placement, with as many jobs as take a noticeable time.
std::vector<Case> baseline_cases() {
  std::vector<Case> cases;
  for (const berth::PolicyEntry& entry : berth::policy_registry())
    cases.push_back({.policy = entry.name, .cluster = "32x8"});
  for (const berth::PlacementInfo& info : berth::placements())
    if (info.name != "best-fit")
      cases.push_back({.policy = "sjf", .cluster = "32x8", .placement = info.name});
  for (Case& each : cases) {
    each.jobs = 125;
    while (each.jobs < 128'000 && measure(each).seconds < 0.1) each.jobs *= 2;
  }
  for (const std::string policy : {"fifo", "srtf", "tiresias-l", "easy"})
    cases.push_back({.policy = policy, .cluster = "12500x8", .jobs = 200'000});
  return cases;
}

int write_baseline(const std::string& path) {
  std::vector<BaselineRow> rows;
  for (const Case& each : baseline_cases()) {
    const Result<double> cost = cost_of(each);
    if (!cost) {
      fmt::print(stderr, "{} {}: {}\n", each.policy, each.placement, cost.error().text());
      return 1;
    }
    rows.push_back({each, *cost});
    fmt::print("{} {} {} x {} jobs: {:.3g}\n", each.policy, each.placement, each.cluster, each.jobs,
               *cost);
    std::fflush(stdout);
  }
  const auto written = berth::write_file(path, berth::bench::to_csv(rows));
  if (!written) fmt::print(stderr, "berth_bench: {}\n", written.error().text());
  return written ? 0 : 1;
}

/// Says of policies that the file does not know that they were not looked at.
void name_unknown(const std::vector<BaselineRow>& rows, const std::string& path) {
  for (const berth::PolicyEntry& entry : berth::policy_registry()) {
    const auto is_it = [&](const BaselineRow& row) { return row.each.policy == entry.name; };
    if (std::ranges::none_of(rows, is_it))
      fmt::print("{} is not in {}: not looked at (./run bench --baseline)\n", entry.name, path);
  }
}

int check_baseline(const std::string& path) {
  const auto text = berth::read_file(path);
  if (!text) {
    fmt::print(stderr, "berth_bench: {}\n", text.error().text());
    return 2;
  }
  const auto rows = berth::bench::parse_baseline(*text, path);
  if (!rows) {
    fmt::print(stderr, "berth_bench: {}\n", rows.error().text());
    return 2;
  }
  name_unknown(*rows, path);
  std::size_t slower = 0;
  double sum = 0;
  for (const BaselineRow& row : *rows) {
    const berth::bench::Compared compared = berth::bench::compare(row, cost_of);
    const std::string name = fmt::format("{} {} {} x {} jobs", row.each.policy, row.each.placement,
                                         row.each.cluster, row.each.jobs);
    sum += compared.error.empty() ? compared.times() : 0;
    if (!compared.is_too_slow()) continue;
    ++slower;
    if (compared.error.empty()) {
      fmt::print("SLOWER  {}: {:.2f} times its baseline ({:.3g}, now {:.3g})\n", name,
                 compared.times(), row.cost, compared.now);
    } else {
      fmt::print("FAILED  {}: {}\n", name, compared.error);
    }
    std::fflush(stdout);
  }
  fmt::print("{} cases, {} slower than {} times their baseline; on average {:.2f} times\n",
             rows->size(), slower, berth::bench::kTooSlow, sum / static_cast<double>(rows->size()));
  return slower == 0 ? 0 : 1;
}

void full_table(std::size_t million) {
  print_runs("Philly-like jobs on 2,490 GPUs",
             each_policy(kFast, {.policy = "", .cluster = kPhilly, .jobs = million}));
  print_runs("The same cluster and load, a hundredth of the jobs: 256 GPUs",
             each_policy(kFast, {.policy = "", .cluster = "32x8", .jobs = million / 100}));
  print_runs("… and all of them: cost per job must not grow with their number",
             each_policy(kFast, {.policy = "", .cluster = "32x8", .jobs = million}));
  print_runs("10,000 jobs on 2,490 GPUs, which they never fill",
             each_policy(kFast, {.policy = "", .cluster = kPhilly, .jobs = million / 100}));
  print_runs("A queue that grows for ever: load 1.3",
             each_policy(kFast, {.policy = "", .cluster = kPhilly, .jobs = million, .load = 1.3}));
  print_runs("100,000 GPUs",
             each_policy(kFast, {.policy = "", .cluster = "12500x8", .jobs = million}));
  fmt::print("\nReading a native CSV of {} rows: {:.2f} s\n", million,
             berth::bench::measure_csv(million));
}

}  // namespace

int main(int argc, char** argv) {
  Case pattern{.policy = "", .cluster = kPhilly, .jobs = 0};
  std::vector<std::string> policies{"fifo"};
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (option == "--quick") {
      quick = true;
    } else if (option == "--jobs") {
      pattern.jobs = std::strtoull(value().c_str(), nullptr, 10);
    } else if (option == "--policies") {
      const std::string names = value();
      policies.clear();
      for (const std::string_view name : berth::split(names, ',')) policies.emplace_back(name);
    } else if (option == "--cluster") {
      pattern.cluster = value();
    } else if (option == "--load") {
      pattern.load = std::strtod(value().c_str(), nullptr);
    } else if (option == "--growth") {
      return plot_growth(value());
    } else if (option == "--check") {
      return check_baseline(value());
    } else if (option == "--baseline") {
      return write_baseline(value());
    } else if (option == "--csv") {
      const std::size_t rows = std::strtoull(value().c_str(), nullptr, 10);
      fmt::print("Reading a native CSV of {} rows: {:.2f} s\n", rows,
                 berth::bench::measure_csv(rows));
      return 0;
    } else if (option == "--placement") {
      pattern.placement = value();
    } else {
      fmt::print(stderr, "berth_bench: unknown option {} (see the head of bench/bench_main.cpp)\n",
                 option);
      return 2;
    }
  }
  if (pattern.jobs > 0) {
    print_runs("As asked", each_policy(policies, pattern));
  } else {
    full_table(quick ? 10'000 : 1'000'000);
  }
  return loop_allocates ? 1 : 0;
}
