// The generator against the statistics of its sources. The limits are those of the workload study:
// sizes within 0.02 (total variation), run times within 0.05 (KS) over all jobs and 0.07 per size
// class, jobs per day within 3 %, hours within 0.15, dispersion within a factor of 2, Gini within
// 0.05.
#include "trace/generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project_paths.h"
#include "trace/reader.h"
#include "trace/writer.h"

namespace berth {
namespace {

using testing::HasSubstr;

// Seconds on the source's clock, so that hours of day can be compared.
struct Job {
  double at;
  int gpus;
  double duration;
  std::string queue;
};
using Jobs = std::vector<Job>;

Jobs jobs_of(const Trace& trace, double clock_offset = 0) {
  Jobs jobs;
  for (const TraceJob& job : trace.jobs) {
    jobs.push_back({to_seconds(job.submit) + trace.zero_seconds + clock_offset, job.gpus,
                    to_seconds(job.duration), std::string(trace.text(job.queue))});
  }
  return jobs;
}

Trace generate(GenerateOptions options) {
  auto trace = generate_trace(options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace{};
}

std::map<int, double> size_shares(const Jobs& jobs) {
  std::map<int, double> shares;
  for (const Job& job : jobs) shares[job.gpus] += 1.0 / static_cast<double>(jobs.size());
  return shares;
}

double total_variation(const std::map<int, double>& a, const std::map<int, double>& b) {
  std::map<int, double> difference = a;
  for (const auto& [size, share] : b) difference[size] -= share;
  double sum = 0;
  for (const auto& [size, value] : difference) sum += std::abs(value);
  return sum / 2;
}

std::vector<double> durations(const Jobs& jobs, int least, int most) {
  std::vector<double> result;
  for (const Job& job : jobs) {
    if (job.gpus >= least && job.gpus <= most) result.push_back(job.duration);
  }
  std::ranges::sort(result);
  return result;
}

double share_up_to(const std::vector<double>& sorted, double value) {
  return static_cast<double>(std::ranges::upper_bound(sorted, value) - sorted.begin()) /
         static_cast<double>(sorted.size());
}

// Kolmogorov-Smirnov distance below the source's clamp.
double ks_distance(const std::vector<double>& a, const std::vector<double>& b, double clamp) {
  double most = 0;
  for (const auto* values : {&a, &b}) {
    for (const double value : *values) {
      if (value < clamp)
        most = std::max(most, std::abs(share_up_to(a, value) - share_up_to(b, value)));
    }
  }
  return most;
}

double span_of(const Jobs& jobs) {
  const auto [first, last] = std::ranges::minmax_element(jobs, {}, &Job::at);
  return last->at - first->at;
}

std::array<double, 24> hour_profile(const Jobs& jobs) {
  std::array<double, 24> profile{};
  for (const Job& job : jobs) {
    profile[static_cast<std::size_t>(std::fmod(job.at, 86'400) / 3600)] +=
        24.0 / static_cast<double>(jobs.size());
  }
  return profile;
}

double largest_difference(const std::array<double, 24>& a, const std::array<double, 24>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// Variance over mean of the number of jobs in an hour.
double hourly_dispersion(const Jobs& jobs) {
  const double first = std::ranges::min_element(jobs, {}, &Job::at)->at;
  std::vector<double> counts(static_cast<std::size_t>(span_of(jobs) / 3600) + 1);
  for (const Job& job : jobs) ++counts[static_cast<std::size_t>((job.at - first) / 3600)];
  const double mean = static_cast<double>(jobs.size()) / static_cast<double>(counts.size());
  double squares = 0;
  for (const double count : counts) squares += (count - mean) * (count - mean);
  return squares / static_cast<double>(counts.size()) / mean;
}

// Share of jobs in runs of five or more: one queue (where known), one size, gaps of at most 30 s.
double share_in_runs(Jobs jobs, bool queues_known) {
  if (!queues_known) {
    for (Job& job : jobs) job.queue.clear();
  }
  std::ranges::stable_sort(jobs, [](const Job& a, const Job& b) {
    return std::tie(a.queue, a.at) < std::tie(b.queue, b.at);
  });
  std::size_t in_runs = 0;
  std::size_t length = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ++length;
    const bool ends = i + 1 == jobs.size() || jobs[i + 1].queue != jobs[i].queue ||
                      jobs[i + 1].gpus != jobs[i].gpus || jobs[i + 1].at - jobs[i].at > 30;
    if (!ends) continue;
    if (length >= 5) in_runs += length;
    length = 0;
  }
  return static_cast<double>(in_runs) / static_cast<double>(jobs.size());
}

double gini_of_gpu_time(const Jobs& jobs) {
  std::map<std::string, double> time;
  for (const Job& job : jobs) time[job.queue] += job.gpus * job.duration;
  std::vector<double> values;
  for (const auto& [queue, value] : time) values.push_back(value);
  std::ranges::sort(values);
  double weighted = 0;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    weighted +=
        (2.0 * static_cast<double>(i + 1) - static_cast<double>(values.size()) - 1) * values[i];
    sum += values[i];
  }
  return weighted / (static_cast<double>(values.size()) * sum);
}

// Published facts about each source (workload-statistics.md), so that the test needs no data.
struct Facts {
  const char* like;
  std::size_t jobs;
  double jobs_per_day;
  std::map<int, double> sizes;      // the frequent ones
  std::array<double, 7> quantiles;  // p10 p25 p50 p75 p90 p95 p99 over all jobs
  double clamp;
  double dispersion;
  double share_in_runs;
  double gini;  // 0 = not known
};

const std::vector<Facts>& facts() {
  static const std::vector<Facts> kFacts{
      {"philly",
       82'247,
       755.3,
       {{1, .9317}, {2, .0221}, {4, .0227}, {8, .0200}, {16, .0024}, {32, .0008}},
       {61, 115, 1144, 2932, 11'265, 43'646, 254'758},
       1e12,
       161.4,
       0.641,
       0.57},
      {"helios",
       99'618,
       651.1,
       {{1, .5046}, {2, .0539}, {4, .0739}, {8, .2611}, {16, .0467}, {32, .0243}, {24, .0090}},
       {16, 70, 205, 1572, 20'100, 58'129, 172'800},
       172'800,
       37.0,
       0.113,
       0},
      {"pai",
       44'543,
       894.3,
       {{1, .7678}, {10, .0377}, {2, .0311}, {20, .0214}, {5, .0169}, {50, .0142}, {8, .0128}},
       {42, 140, 646, 3988, 12'797, 24'102, 67'664},
       172'800,
       8.3,
       0.131,
       0},
      {"itp",
       45'518,
       760.5,
       {{1, .8061}, {8, .1334}, {4, .0286}, {2, .0142}, {16, .0083}, {32, .0078}, {64, .0016}},
       {1085, 3130, 9340, 18'208, 28'972, 57'037, 167'990},
       1e12,
       53.4,
       0.395,
       0.61},
  };
  return kFacts;
}

TEST(Generator, MeetsThePublishedFacts) {
  for (const Facts& fact : facts()) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const Jobs jobs = jobs_of(generate({.like = fact.like, .jobs = fact.jobs, .seed = seed}));
      const auto shares = size_shares(jobs);
      for (const auto& [size, share] : fact.sizes)
        EXPECT_NEAR(shares.at(size), share, 0.002) << fact.like << " " << size;
      constexpr std::array kLevels{.10, .25, .50, .75, .90, .95, .99};
      const auto all = durations(jobs, 1, 1'000'000);
      for (std::size_t i = 0; i < kLevels.size(); ++i) {
        if (fact.quantiles[i] >= fact.clamp) continue;
        EXPECT_NEAR(share_up_to(all, fact.quantiles[i]), kLevels[i], 0.05)
            << fact.like << " p" << kLevels[i];
      }
      EXPECT_NEAR(static_cast<double>(jobs.size()) / span_of(jobs) * 86'400, fact.jobs_per_day,
                  0.03 * fact.jobs_per_day);
      const double dispersion = hourly_dispersion(jobs);
      EXPECT_GT(dispersion, fact.dispersion / 2) << fact.like;
      EXPECT_LT(dispersion, fact.dispersion * 2) << fact.like;
      EXPECT_NEAR(share_in_runs(jobs, fact.gini > 0), fact.share_in_runs, 0.05) << fact.like;
      if (fact.gini > 0) {
        EXPECT_NEAR(gini_of_gpu_time(jobs), fact.gini, 0.05) << fact.like;
      }
    }
  }
}

TEST(Generator, FollowsTheDayOfItsSource) {
  constexpr std::array<double, 24> kPhilly{1.27, .98,  1.12, 1.10, .70,  1.15, 1.67, 2.09,
                                           1.11, 1.01, 1.02, .87,  .75,  .70,  .64,  .65,
                                           .88,  .67,  .80,  .73,  1.02, .92,  1.13, 1.01};
  constexpr std::array<double, 24> kVenus{.92,  .63,  .58,  .33,  .26,  .19,  .17,  .22,
                                          .38,  .83,  1.37, 1.52, 1.15, 1.31, 1.55, 1.65,
                                          1.73, 1.73, 1.24, 1.30, 1.33, 1.33, 1.18, 1.10};
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    EXPECT_LE(largest_difference(
                  hour_profile(jobs_of(generate({.like = "philly", .jobs = 82'247, .seed = seed}))),
                  kPhilly),
              0.15);
    EXPECT_LE(largest_difference(
                  hour_profile(jobs_of(generate({.like = "venus", .jobs = 99'618, .seed = seed}))),
                  kVenus),
              0.15);
  }
}

// How Philly and Venus jobs end: shares, and mean GPU time of a killed job relative to any job.
TEST(Generator, EndsJobsAsTheSourceDid) {
  const auto check = [](const char* like, std::size_t count, std::array<double, 3> shares,
                        double killed_to_mean) {
    const Trace trace = generate({.like = like, .jobs = count});
    std::array<double, 3> jobs{};
    std::array<double, 3> time{};
    for (const TraceJob& job : trace.jobs) {
      const auto state = static_cast<std::size_t>(job.status);
      ++jobs[state];
      time[state] += job.gpus * to_seconds(job.duration);
    }
    const auto total = static_cast<double>(trace.jobs.size());
    const double mean = (time[0] + time[1] + time[2]) / total;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(jobs[i] / total, shares[i], 0.02) << like;
    const auto killed = static_cast<std::size_t>(TraceStatus::Killed);
    EXPECT_NEAR(time[killed] / jobs[killed] / mean, killed_to_mean, 0.3 * killed_to_mean) << like;
  };
  check("philly", 82'247, {.604, .305, .09}, 3.26);  // completed, failed, killed
  check("helios", 99'618, {.526, .202, .272}, 1.47);
}

TEST(Generator, MakesTheLoadThatWasAskedFor) {
  for (const FormatInfo& source : generator_sources()) {
    for (const double load : {0.3, 0.9, 2.0}) {
      for (const std::size_t count : {std::size_t{50}, std::size_t{3000}}) {
        const Trace trace = generate({.like = source.name,
                                      .jobs = count,
                                      .total_gpus = 128,
                                      .gpus_per_node = 8,
                                      .load = load});
        double demand = 0;
        for (const TraceJob& job : trace.jobs) demand += job.gpus * to_seconds(job.duration);
        EXPECT_NEAR(demand / (to_seconds(trace.jobs.back().submit) * 128), load, 0.01 * load)
            << source.name << " " << count;
      }
    }
  }
}

TEST(Generator, KeepsSizesInsideTheClusterAndInWholeNodes) {
  for (const FormatInfo& source : generator_sources()) {
    const Trace trace =
        generate({.like = source.name, .jobs = 5000, .total_gpus = 24, .gpus_per_node = 4});
    for (const TraceJob& job : trace.jobs) {
      EXPECT_LE(job.gpus, 24);
      EXPECT_TRUE(job.gpus <= 8 || job.gpus % 4 == 0) << job.gpus;
    }
  }
  for (const TraceJob& job : generate({.like = "pai", .jobs = 100, .total_gpus = 1}).jobs)
    EXPECT_EQ(job.gpus, 1);
}

TEST(Generator, IsTheSameForTheSameSeedAndAnotherForAnother) {
  const GenerateOptions options{.like = "philly", .jobs = 2000, .models = true, .deadlines = 0.5};
  const std::string csv = trace_to_csv(generate(options));
  EXPECT_EQ(trace_to_csv(generate(options)), csv);
  GenerateOptions other = options;
  other.seed = 2;
  EXPECT_NE(trace_to_csv(generate(other)), csv);
}

TEST(Generator, LabelsDoNotChangeSizesAndTimes) {
  const Trace plain = generate({.like = "helios", .jobs = 1000, .users = 0});
  const Trace rich =
      generate({.like = "helios", .jobs = 1000, .models = true, .deadlines = 1, .users = 7});
  for (std::size_t i = 0; i < plain.jobs.size(); ++i) {
    ASSERT_EQ(plain.jobs[i].submit, rich.jobs[i].submit);
    ASSERT_EQ(plain.jobs[i].duration, rich.jobs[i].duration);
    EXPECT_EQ(plain.jobs[i].user, NameId{});
    EXPECT_NE(rich.jobs[i].user, NameId{});
    EXPECT_NE(rich.jobs[i].model, NameId{});
    ASSERT_TRUE(rich.jobs[i].deadline.has_value());
    EXPECT_GE(*rich.jobs[i].deadline, rich.jobs[i].submit + rich.jobs[i].duration);
  }
}

TEST(Generator, AsManyUsersSubmitAsWereAskedFor) {
  const auto users_of = [](const Trace& trace) {
    std::set<NameId> users;
    for (const TraceJob& job : trace.jobs) users.insert(job.user);
    return users.size();
  };
  for (const FormatInfo& source : generator_sources()) {
    for (const int users : {1, 3, 10, 17, 100, 250}) {
      EXPECT_EQ(users_of(generate({.like = source.name, .jobs = 2000, .users = users})),
                static_cast<std::size_t>(users))
          << source.name;
    }
  }
  // A run of like jobs has one user: more users than runs there cannot be.
  const std::size_t most = users_of(generate({.like = "philly", .jobs = 20, .users = 1000}));
  EXPECT_GT(most, 1U);
  EXPECT_LE(most, 20U);
}

TEST(Generator, BurstAndDiurnalCanBeTurnedOff) {
  const Jobs calm = jobs_of(generate({.like = "philly", .jobs = 20'000, .burst = 0, .diurnal = 0}));
  EXPECT_LT(share_in_runs(calm, true), 0.1);
  std::array<double, 24> flat{};
  flat.fill(1);
  EXPECT_LT(largest_difference(hour_profile(calm), flat), 0.05);
  EXPECT_LT(hourly_dispersion(calm), 2);  // Poisson: 1
  const Jobs half = jobs_of(generate({.like = "philly", .jobs = 20'000, .burst = 0.5}));
  EXPECT_GT(share_in_runs(half, true), 0.2);
  EXPECT_LT(share_in_runs(half, true), 0.55);
}

TEST(Generator, RefusesNonsense) {
  const auto error = [](const GenerateOptions& options) {
    const auto trace = generate_trace(options);
    return trace ? std::string() : trace.error().text();
  };
  EXPECT_THAT(error({.like = "phily"}), HasSubstr("did you mean philly?"));
  EXPECT_THAT(error({.jobs = 0}), HasSubstr("jobs must lie between"));
  EXPECT_THAT(error({.load = 0.5}), HasSubstr("load needs the number of GPUs"));
  EXPECT_THAT(error({.total_gpus = 8, .load = -1}), HasSubstr("load must be above 0"));
  EXPECT_THAT(error({.total_gpus = 8, .load = std::nan("")}), HasSubstr("load must be above 0"));
  EXPECT_THAT(error({.burst = 2}), HasSubstr("burst must lie"));
  EXPECT_THAT(error({.diurnal = std::nan("")}), HasSubstr("diurnal must lie"));
  EXPECT_THAT(error({.deadlines = -1}), HasSubstr("deadlines must lie"));
  EXPECT_EQ(generate({.jobs = 1}).jobs.size(), 1U);
  EXPECT_EQ(generate({.jobs = 2, .total_gpus = 1, .load = 1}).jobs.size(), 2U);
}

// Against the data themselves.
struct Source {
  const char* like;
  std::vector<const char*> files;
  double clock_offset;  // seconds from midnight to the file's zero
  double first;         // jobs before are not part of the statistics
  double clamp;
  bool hours_known;
  bool queues_known;
};

Jobs read_source(const Source& source) {
  Jobs all;
  for (const char* file : source.files) {
    const auto trace = read_trace(std::string(BERTH_SHARED_DIR) + "/data/" + file);
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
    if (!trace) continue;
    for (Job job : jobs_of(*trace, source.clock_offset)) {
      if (source.files.size() > 1) job.queue = file;
      if (job.at >= source.first) all.push_back(job);
    }
  }
  return all;
}

TEST(Generator, MatchesTheDataOfItsSource) {
  if (!std::filesystem::exists(std::string(BERTH_SHARED_DIR) + "/data/README.md"))
    GTEST_SKIP() << "no shared traces";
  constexpr double kVenusZero =
      4 * 3600 + 60 + 40;  // 2020-03-18 04:01:40; statistics begin on April 1
  const std::vector<Source> sources{
      {"philly", {"philly/philly.csv.gz"}, 0, 0, 1e12, true, true},
      {"helios",
       {"helios/venus_gpu_jobs_2020-03_2020-08.csv.gz"},
       kVenusZero,
       14 * 86'400.0,
       172'800,
       true,
       false},
      {"pai", {"pai2020/pai_tasks_sample_day00-49.csv.gz"}, 0, 0, 172'800, false, false},
      {"itp",
       {"itp_raw/cluster01.csv", "itp_raw/cluster02.csv", "itp_raw/cluster03.csv",
        "itp_raw/cluster04.csv.gz", "itp_raw/cluster05.csv", "itp_raw/cluster06.csv",
        "itp_raw/cluster08.csv", "itp_raw/cluster10.csv"},
       0,
       0,
       1e12,
       false,
       true},
  };
  for (const Source& source : sources) {
    const Jobs real = read_source(source);
    const Jobs made = jobs_of(generate({.like = source.like, .jobs = real.size(), .seed = 11}));
    EXPECT_LE(total_variation(size_shares(real), size_shares(made)), 0.02) << source.like;
    const std::array<std::pair<int, int>, 5> classes{
        {{1, 1 << 30}, {1, 1}, {2, 7}, {8, 8}, {9, 1 << 30}}};
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const auto [least, most] = classes[i];
      EXPECT_LE(
          ks_distance(durations(real, least, most), durations(made, least, most), source.clamp),
          i == 0 ? 0.05 : 0.07)
          << source.like << " " << least << " to " << most;
    }
    const double rate = static_cast<double>(real.size()) / span_of(real);
    EXPECT_NEAR(static_cast<double>(made.size()) / span_of(made), rate, 0.03 * rate) << source.like;
    if (source.hours_known) {
      EXPECT_LE(largest_difference(hour_profile(real), hour_profile(made)), 0.15) << source.like;
    }
    EXPECT_NEAR(std::log(hourly_dispersion(made) / hourly_dispersion(real)), 0, std::log(2))
        << source.like;
    EXPECT_NEAR(share_in_runs(made, source.queues_known), share_in_runs(real, source.queues_known),
                0.05)
        << source.like;
    if (source.queues_known) {
      EXPECT_NEAR(gini_of_gpu_time(made), gini_of_gpu_time(real), 0.05) << source.like;
    }
  }
}

}  // namespace
}  // namespace berth
