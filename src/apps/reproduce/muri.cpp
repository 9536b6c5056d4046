// Muri's headline on the traces its authors published with their simulator: 64 GPUs, stage times of
// each job's model and size from the trace itself, the measured cost of sharing.
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "apps/reproduce.h"
#include "apps/run.h"
#include "base/file.h"
#include "perf/interleave.h"
#include "trace/csv.h"
#include "trace/reader.h"

namespace berth {

Result<Reproduced> reproduce_muri(const ReproduceOptions& options);

namespace {

struct Workload {
  Trace trace;
  std::shared_ptr<ProfileSet> profiles = std::make_shared<ProfileSet>();
};

std::string profile_name(std::string_view model, std::int32_t gpus) {
  return fmt::format("{} on {}", model, gpus);
}

double number(std::string_view cell) {
  double value = 0;
  std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return value;
}

/// One profile per model and size. The trace gives storage and CPU as one time; it is halved.
Result<void> read_stages(const std::string& path, Workload& workload) {
  BERTH_TRY(const std::string bytes, read_file(path));
  CsvRows rows{bytes, ","};
  std::map<std::string, std::size_t> column;
  if (rows.next()) {
    for (const std::string_view name : rows.fields()) column.emplace(name, column.size());
  }
  for (const char* needed :
       {"model_name", "num_gpu", "resource_time_0", "resource_time_1", "resource_time_2"}) {
    if (!column.contains(needed)) return fail(fmt::format("{}:1: no column {}", path, needed));
  }
  while (rows.next()) {
    const auto cell = [&](const char* name) { return rows.fields()[column.at(name)]; };
    if (rows.fields().size() < column.size()) continue;  // the trace reader has reported it
    Profile profile;
    profile.name =
        profile_name(cell("model_name"), static_cast<std::int32_t>(number(cell("num_gpu"))));
    const double first = number(cell("resource_time_0")) / 2000;
    profile.stages = {first, first, number(cell("resource_time_1")) / 1000,
                      number(cell("resource_time_2")) / 1000};
    profile.memory = {.fixed_mib = 4000, .per_sample_mib = 0};  // four fit: memory is no limit here
    if (!workload.profiles->find(profile.name)) workload.profiles->add(std::move(profile));
  }
  return {};
}

Result<Workload> read_workload(const std::string& path) {
  Workload workload;
  BERTH_TRY(workload.trace, read_trace(path));
  BERTH_TRY_VOID(read_stages(path, workload));
  for (TraceJob& job : workload.trace.jobs) {
    const std::string name = profile_name(workload.trace.text(job.model), job.gpus);
    job.model = workload.trace.names.intern(name);
  }
  workload.profiles->set_interleave_overhead(kMeasuredOverhead);
  return workload;
}

Result<Summary> run_policy(const Workload& workload, const Cluster& cluster,
                           const std::string& policy, std::uint64_t seed) {
  RunSpec spec;
  spec.policy = policy;
  spec.seed = seed;
  spec.profiles = workload.profiles;
  BERTH_TRY(const RunData run, run_one(workload.trace, cluster, spec));
  return run.summary;
}

struct Pair {
  std::string ours;
  std::string other;
  std::string published;
};

std::string against(const Summary& ours, const Summary& other) {
  return fmt::format("{:.2f} x average JCT, {:.2f} x makespan",
                     other.avg_jct.value_or(0) / ours.avg_jct.value_or(1),
                     other.makespan.value_or(0) / ours.makespan.value_or(1));
}

}  // namespace

Result<Reproduced> reproduce_muri(const ReproduceOptions& options) {
  BERTH_TRY(const Cluster cluster, parse_cluster_short("8x8:v100"));
  const std::vector<Pair> pairs{
      {"muri-s", "srsf", "up to 3.6 x JCT, 1.6 x makespan over all"},
      {"muri-s", "srtf", "up to 3.6 x JCT, 1.6 x makespan over all"},
      {"muri-l", "tiresias-l", "up to 3.6 x JCT, 1.6 x makespan over all"}};
  std::vector<std::string> traces{"trace1", "trace2", "trace3"};
  if (options.quick) traces.resize(1);

  Reproduced result;
  result.setting =
      "8 x 8 V100, the simulator traces of the authors, stage times by model and size from the "
      "trace, "
      "sharing cost 1.3, 1.5, 1.37, no restart cost, grouping every 6 min";
  for (const std::string& name : traces) {
    BERTH_TRY(const Workload workload,
              read_workload(fmt::format("{}/muri/simulator/{}.csv", options.data, name)));
    std::map<std::string, Summary> done;
    for (const Pair& pair : pairs) {
      for (const std::string& policy : {pair.ours, pair.other}) {
        if (done.contains(policy)) continue;
        BERTH_TRY(const Summary summary, run_policy(workload, cluster, policy, options.seed));
        done.emplace(policy, summary);
      }
      result.figures.push_back(
          {.what = fmt::format("{}: {} against {}", name, pair.ours, pair.other),
           .published = pair.published,
           .ours = against(done.at(pair.ours), done.at(pair.other)),
           .why = ""});
    }
  }
  return result;
}

}  // namespace berth
