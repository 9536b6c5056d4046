// What Slurm writes into its accounting fields, shared by the readers of its text and JSON forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/trace.h"
#include "trace/trace_builder.h"

namespace berth {

/// "billing=24,cpu=8,gres/gpu:v100=1,gres/gpu=1,mem=199G,node=1" taken apart.
struct SlurmResources {
  std::int64_t gpus = 0;
  std::int64_t shards = 0;  // parts of a GPU
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::string gpu_type;  // "v100", or "a100|v100"; empty = none named
};

[[nodiscard]] SlurmResources parse_tres(std::string_view text);
/// "gpu:2", "gpu:a100:2", "gpu:v100:1(IDX:0),nvme:1", "gres/gpu=4": the GPUs of AllocGRES, ReqGRES.
[[nodiscard]] SlurmResources parse_gres(std::string_view text);
/// "COMPLETED", "CANCELLED by 1042", "NODE_FAIL", "REQUEUED" …
[[nodiscard]] TraceStatus slurm_status(std::string_view state);
/// Whether a run in this state is over, waits, runs, or was put back. `has_ended`: the log knows
/// when.
[[nodiscard]] RunEnd slurm_run_end(std::string_view state, bool has_ended);
/// Copies amounts into the job, capped to what a job can hold: CPUs alone are a share of nothing
/// of one device, and shards, of which nobody says how many make a GPU, are one. False: it asks for
/// nothing that is known.
[[nodiscard]] bool set_resources(TraceJob& job, const SlurmResources& given);

/// When a run held its devices, as far as the log tells: end is empty while it runs.
struct SlurmTimes {
  std::optional<Time> start, end;
  Duration elapsed{};  // without the time in which it was suspended
  std::int32_t restarts = 0;
};
void set_record(TraceJob& job, const SlurmTimes& times);

}  // namespace berth
