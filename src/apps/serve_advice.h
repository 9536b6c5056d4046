// `berth serve --engine slurm --advise`: Berth beside a Slurm that schedules by itself.
#pragma once

#include "apps/serve.h"
#include "base/result.h"
#include "daemon/config.h"

namespace berth {

/// In the foreground, until it is stopped. Changes nothing, in Slurm or on disk, but for its socket.
[[nodiscard]] Result<void> serve_advice(const ServeOptions& options, const ServeConfig& config);

}  // namespace berth
