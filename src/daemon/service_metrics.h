// What a monitoring system scrapes of jobs, nodes and the scheduler, in
// Prometheus' text form. A pure function of what the service has gathered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/scheduler.h"
#include "wire/views.h"

namespace berth {

struct ServiceState {
  ClusterView cluster;
  std::vector<NodeView> nodes;
  SchedulerFigures figures;
  std::map<Outcome, std::uint64_t> ended;  // in this life
  std::size_t set_aside = 0;
  std::uint64_t submits = 0;
  std::uint64_t unexplained = 0;
  std::uint64_t journal_bytes_left = 0;
};
[[nodiscard]] std::string service_metrics(const ServiceState& state);

}  // namespace berth
