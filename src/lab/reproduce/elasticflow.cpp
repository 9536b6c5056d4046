// ElasticFlow's headline on the traces its authors published: jobs with a fixed whole batch, the
// throughput of each on 1 to 64 A100 as measured by them, deadlines about as far as the run time.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/file.h"
#include "lab/reproduction.h"
#include "run/run.h"
#include "trace/csv.h"
#include "trace/reader.h"

namespace berth {

Result<Reproduced> reproduce_elasticflow(const ReproduceOptions& options);

namespace {

/// Iterations per second by GPUs, for one model and one whole batch.
using Throughput = std::map<std::int32_t, double>;

std::string profile_name(std::string_view model, std::int32_t batch) {
  return fmt::format("{} of {}", model, batch);
}

template <class Number>
Number number(std::string_view cell) {
  Number value{};
  std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return value;
}

/// By whole batch. Zero, empty and "nan" are sizes that were not measured.
Result<std::map<std::int32_t, Throughput>> read_throughputs(const std::string& path) {
  BERTH_TRY(const std::string bytes, read_file(path));
  CsvRows rows{bytes, ","};
  std::vector<std::int32_t> sizes;
  if (rows.next()) {
    for (const std::string_view cell : rows.fields()) sizes.push_back(number<std::int32_t>(cell));
  }
  std::map<std::int32_t, Throughput> table;
  while (rows.next()) {
    Throughput& row = table[number<std::int32_t>(rows.fields()[0])];
    for (std::size_t i = 1; i < std::min(rows.fields().size(), sizes.size()); ++i) {
      const auto rate = number<double>(rows.fields()[i]);
      if (rate > 0) row[sizes[i]] = rate;
    }
  }
  return table;
}

struct Workload {
  Trace trace;
  std::shared_ptr<ProfileSet> profiles = std::make_shared<ProfileSet>();
};

Profile profile_of(const std::string& name, std::int32_t batch, const Throughput& rates,
                   const RateModel& levels) {
  Profile profile;
  profile.name = name;
  profile.memory = {.fixed_mib = 4000, .per_sample_mib = 0};  // every measured size fitted
  for (const auto& [gpus, rate] : rates) {
    profile.measured.push_back({.device = "a100",
                                .gpus = gpus,
                                .level = levels.best_level(PoolId{0}, gpus),
                                .batch = std::max(1, batch / gpus),
                                .seconds = 1 / rate});
  }
  return profile;
}

/// A profile for each model and batch; a job may have the sizes that were measured.
Result<Workload> read_workload(const std::string& data, const std::string& file,
                               const Cluster& cluster) {
  Workload workload;
  BERTH_TRY(workload.trace, read_trace(fmt::format("{}/itp_elasticflow/{}.csv", data, file)));
  const RateModel levels{ProfileSet{}, cluster, {}};
  std::map<std::string, std::map<std::int32_t, Throughput>> known;
  for (TraceJob& job : workload.trace.jobs) {
    const std::string model{workload.trace.text(job.model)};
    if (!known.contains(model)) {
      BERTH_TRY(known[model], read_throughputs(fmt::format("{}/elasticflow/throughputs_A100/{}.csv",
                                                           data, model)));
    }
    const Throughput& rates = known[model][job.batch_size];
    const std::string name = profile_name(model, job.batch_size);
    if (!workload.profiles->find(name))
      workload.profiles->add(profile_of(name, job.batch_size, rates, levels));
    job.model = workload.trace.names.intern(name);
    // Nothing was measured: the job keeps its size.
    if (rates.empty()) continue;
    job.gpus_min = 1;
    job.gpus_max = std::max(job.gpus, rates.rbegin()->first);
  }
  return workload;
}

Result<double> share_in_time(const Workload& workload, const Cluster& cluster,
                             const std::string& policy) {
  RunSpec spec;
  spec.policy = policy;
  spec.profiles = workload.profiles;
  spec.sim.costs.resume = std::chrono::seconds{30};
  spec.sim.costs.migrate = std::chrono::seconds{30};
  BERTH_TRY(Run planned, make_run(workload.trace, cluster, spec));
  BERTH_TRY(const RunData run, planned.run());
  return 1 - run.summary.deadline_misses.value_or(0) / run.summary.deadline_jobs.value_or(1);
}

}  // namespace

Result<Reproduced> reproduce_elasticflow(const ReproduceOptions& options) {
  BERTH_TRY(const Cluster cluster, parse_cluster_short("16x8:a100"));
  std::vector<std::string> files{"195job", "cluster01", "cluster06"};
  if (options.quick) files.resize(1);
  const std::array<std::string, 5> baselines{"edf", "tiresias-l", "gandiva", "srtf", "chronus"};

  Reproduced result;
  result.setting =
      "16 x 8 A100, the authors' ITP traces with drawn models and deadlines (0.5 to 1.5 run times "
      "after submit), throughputs of 1 to 64 A100 as measured by them; exact run times, 30 s for "
      "every resume, migration and change of size; a refused job counts as missed";
  double least = 1e9, most = 0;
  for (const std::string& file : files) {
    BERTH_TRY(const Workload workload, read_workload(options.data, file, cluster));
    BERTH_TRY(const double ours, share_in_time(workload, cluster, "elasticflow"));
    for (const std::string& policy : baselines) {
      BERTH_TRY(const double other, share_in_time(workload, cluster, policy));
      result.figures.push_back(
          {.what = fmt::format("{} ({} jobs): deadlines met, elasticflow against {}", file,
                               workload.trace.jobs.size(), policy),
           .published = "1.46 to 7.65 x over all",
           .ours = fmt::format("{:.2f} x ({:.1f} % against {:.1f} %)", ours / std::max(other, 1e-9),
                               100 * ours, 100 * other),
           .why = ""});
      least = std::min(least, ours / std::max(other, 1e-9));
      most = std::max(most, ours / std::max(other, 1e-9));
    }
  }
  result.headline = {"1.46 to 7.65 x more deadlines met",
                     fmt::format("{:.2f} to {:.2f} x", least, most), judged(least, 1.46)};
  return result;
}

}  // namespace berth
