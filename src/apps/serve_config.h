// What `berth serve` is told, by file and command line, and whether that can be served: checked
// before anything is bound or written. `--check`, the start and a reload ask the same.
#pragma once

#include <string>
#include <vector>

#include "api/server.h"
#include "apps/serve.h"
#include "base/log.h"
#include "base/result.h"
#include "daemon/config.h"
#include "model/cluster.h"

namespace berth {

/// The file, what the command line says instead, and defaults; names of policies, placements and
/// the like are known to exist.
[[nodiscard]] Result<ServeConfig> configuration(const ServeOptions& options);

struct CheckedServing {
  api::ServerOptions server;
  LogLevel level{};
  LogFormat format{};
  std::vector<std::string> warnings;
};
/// What serve can refuse of its log and its sockets, whatever it serves.
[[nodiscard]] Result<CheckedServing> check_front(const ServeConfig& config);
/// Everything serve can refuse before it binds or writes.
[[nodiscard]] Result<CheckedServing> check_serving(const ServeConfig& config, Cluster cluster);

}  // namespace berth
