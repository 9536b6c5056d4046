#include "lab/reproduce/muri_workload.h"

#include <map>

#include <fmt/format.h>

#include "lab/fit/table.h"
#include "perf/interleave.h"
#include "trace/reader.h"

namespace berth {

namespace {

std::string profile_name(std::string_view model, std::int32_t gpus) {
  return fmt::format("{} on {}", model, gpus);
}

Result<Profile> profile_in(const Table& table, std::size_t row) {
  const auto gpus = table.number(row, "num_gpu");
  const auto host = table.number(row, "resource_time_0");
  const auto device = table.number(row, "resource_time_1");
  const auto network = table.number(row, "resource_time_2");
  if (!gpus || !host || !device || !network)
    return fail(fmt::format("{}: needs num_gpu and resource_time_0 to 2", table.place(row, 0)));
  Profile profile;
  profile.name = profile_name(table.text(row, "model_name"), static_cast<std::int32_t>(*gpus));
  // Milliseconds; the host's time is one figure, divided evenly between storage and CPU.
  profile.stages = {*host / 2000, *host / 2000, *device / 1000, *network / 1000};
  profile.memory = {.fixed_mib = 4000, .per_sample_mib = 0};  // four fit: memory is no limit here
  return profile;
}

}  // namespace

Result<MuriWorkload> read_muri_workload(const std::string& path) {
  MuriWorkload workload;
  workload.profiles = std::make_shared<ProfileSet>();
  BERTH_TRY(workload.trace, read_trace(path));
  BERTH_TRY(const Table table, Table::load(path));
  std::map<std::string, double, std::less<>> iteration;  // by job
  for (std::size_t row = 0; row < table.size(); ++row) {
    BERTH_TRY(Profile profile, profile_in(table, row));
    iteration[std::string(table.text(row, "job_id"))] =
        table.number(row, "iteration_time").value_or(0) / 1000;
    if (!workload.profiles->find(profile.name)) workload.profiles->add(std::move(profile));
  }
  for (TraceJob& job : workload.trace.jobs) {
    const std::string name = profile_name(workload.trace.text(job.model), job.gpus);
    job.model = workload.trace.names.intern(name);
    const auto known = iteration.find(workload.trace.text(job.id));
    workload.iteration.push_back(known == iteration.end() ? 0 : known->second);
  }
  workload.profiles->set_interleave_overhead(kMeasuredOverhead);
  return workload;
}

}  // namespace berth
