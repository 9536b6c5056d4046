// The text of each file of a run; docs/formats/outputs.md describes them column by column.
#pragma once

#include <string>

#include "metrics/run_data.h"

namespace berth {

[[nodiscard]] std::string jobs_csv(const RunData& run);
[[nodiscard]] std::string actions_csv(const RunData& run);
[[nodiscard]] std::string timeline_csv(const RunData& run);
/// One row per device and interval, as the Gantt chart shows them; nodes_csv names the lanes.
[[nodiscard]] std::string intervals_csv(const RunData& run);
[[nodiscard]] std::string nodes_csv(const RunData& run);

}  // namespace berth
