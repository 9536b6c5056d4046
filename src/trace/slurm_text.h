// What Slurm writes into its accounting fields, shared by the readers of its text and JSON forms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/trace.h"

namespace berth {

/// "billing=24,cpu=8,gres/gpu:v100=1,gres/gpu=1,mem=199G,node=1" taken apart.
struct SlurmResources {
  std::int64_t gpus = 0;
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::string gpu_type;  // "v100", or "a100|v100"; empty = none named
};

[[nodiscard]] SlurmResources parse_tres(std::string_view text);
/// "gpu:2", "gpu:a100:2", "gpu:v100:1(IDX:0),nvme:1", "gres/gpu=4": the GPUs of AllocGRES, ReqGRES.
[[nodiscard]] SlurmResources parse_gres(std::string_view text);
/// "COMPLETED", "CANCELLED by 1042", "NODE_FAIL", "REQUEUED" …
[[nodiscard]] TraceStatus slurm_status(std::string_view state);
/// Copies amounts into the job, capped to what a job can hold.
void set_resources(TraceJob& job, const SlurmResources& resources);

}  // namespace berth
