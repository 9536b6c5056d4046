// Which servers hold gangs and which hold single GPUs, so that the two can be kept apart and single
// ones moved out of a gang's way. Jobs are told of when they start and stop; O(servers of the job).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/allocation.h"

namespace berth {

class ServerUse {
 public:
  void start(JobId job, std::span<const Slice> slices);
  void stop(JobId job);
  /// In the order of their starts.
  [[nodiscard]] std::span<const JobId> singles_on(NodeId node) const;
  /// Adds the servers that hold gangs.
  void list_with_gangs(std::vector<NodeId>& nodes) const;
  void list_with_singles(std::vector<NodeId>& nodes) const;

 private:
  struct Server {
    std::int32_t gangs = 0;
    std::vector<JobId> singles;
  };
  struct Place {
    bool is_single = false;
    std::vector<NodeId> nodes;
  };
  std::map<NodeId, Server> servers_;  // those that hold somebody
  std::map<JobId, Place> places_;
};

}  // namespace berth
