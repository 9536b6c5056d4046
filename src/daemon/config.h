// The configuration of a scheduler, from a YAML file (docs/formats/serve.md): everything has a
// default, so that an empty one runs this machine for whoever starts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/admission.h"
#include "daemon/live_service.h"
#include "daemon/node_power.h"
#include "daemon/scheduler.h"
#include "exec/container.h"

namespace berth {

/// Of the engine slurm.
struct SlurmConfig {
  std::string commands;   // their folder; empty: on PATH
  std::int64_t poll = 5;  // seconds between two readings
};

struct ServeConfig {
  std::string engine = "machine";  // or "slurm"
  bool advise = false;             // slurm decides, Berth reads and answers
  SlurmConfig slurm;
  std::string state_dir;  // empty: see default_dirs()
  std::string run_dir;
  std::string socket;
  std::string listen;  // "127.0.0.1:6420", "none"; empty: none
  std::string tls_certificate, tls_key;
  bool plain_network = false;
  double max_requests_per_second = 5'000;  // of one caller; 0: no limit
  std::string cluster;                     // as --cluster takes it; empty: this machine
  std::optional<std::int32_t> devices;     // CPU slots where the machine has no GPU
  SchedulerOptions scheduling;
  AdmissionOptions admission;
  ServiceOptions service;
  PowerOptions power;
  ContainerOptions containers;
  std::string log_level = "info";
  std::string log_format = "text";
};

/// `name` is for messages.
[[nodiscard]] Result<ServeConfig> parse_serve_config(std::string_view text,
                                                     const std::string& name);
[[nodiscard]] Result<ServeConfig> load_serve_config(const std::string& path);

/// Where state, running jobs and the socket are unless told otherwise: below /var/lib and /run for
/// root, below the user's own directories for anybody else.
struct DefaultDirs {
  std::string state, run, socket;
};
[[nodiscard]] DefaultDirs default_dirs();
void fill_defaults(ServeConfig& config);

/// What is to be scheduled: the description if there is one, otherwise this machine; where it has
/// no GPUs its cores are devices ("cpu"), two cores a device unless told otherwise.
[[nodiscard]] Result<Cluster> cluster_of(const ServeConfig& config);

}  // namespace berth
