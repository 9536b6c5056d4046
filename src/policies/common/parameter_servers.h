// Parameter servers for the policies that plan with them: tasks on CPU cores beside the workers.
// All-reduce clusters have none, which is the default. They are reckoned with when a schedule is
// made; nothing is started for them, because traces and executors know only of workers.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/params.h"
#include "model/cluster.h"

namespace berth {

struct ParameterServers {
  double workers_each = 0;  // workers one of them serves; 0 = there are none
  std::int64_t cores = 4;   // of one

  [[nodiscard]] bool any() const noexcept { return workers_each > 0; }
  /// Never more of them than workers.
  [[nodiscard]] std::int64_t count_for(std::int64_t workers) const noexcept {
    if (!any()) return 0;
    const double exact = static_cast<double>(workers) / workers_each;
    return std::min(workers, static_cast<std::int64_t>(std::ceil(exact - 1e-9)));
  }
};

/// Cores of the whole cluster; more than anybody needs if some node does not say.
[[nodiscard]] inline std::int64_t all_cores(const Cluster& cluster) {
  std::int64_t milli = 0;
  for (const Node& node : cluster.nodes) {
    if (node.cpus_milli == 0) return std::int64_t{1} << 40U;
    milli += node.cpus_milli;
  }
  return milli / 1000;
}

[[nodiscard]] inline std::vector<ParamSpec> parameter_server_params() {
  return {{"ps_workers", "0", "workers that one parameter server serves; 0 = all-reduce, none"},
          {"ps_cores", "4", "CPU cores of a parameter server"}};
}
[[nodiscard]] inline Result<ParameterServers> parameter_servers(const Params& params) {
  ParameterServers servers;
  BERTH_TRY(servers.workers_each, params.number("ps_workers", 0, 1e6));
  BERTH_TRY(servers.cores, params.integer("ps_cores", 1, 1'000'000));
  return servers;
}

}  // namespace berth
