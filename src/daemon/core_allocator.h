// Which cores of a node are whose. Cores are given lowest first; when there are not enough the job
// is bound to none in particular and shares them all.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/cluster.h"

namespace berth {

class CoreAllocator {
 public:
  /// Nodes of one machine take its cores in order: the first node the first cores. A node for which
  /// none are left binds nobody.
  CoreAllocator(const Cluster& cluster, const std::vector<std::int32_t>& machine_cores);
  /// Empty: as many are not free.
  [[nodiscard]] std::vector<std::int32_t> take(const std::string& node, std::int32_t cores);
  /// Those that a running job has; they may be taken already, by a description that has changed.
  void retake(const std::string& node, const std::vector<std::int32_t>& cores);
  void give(const std::string& node, const std::vector<std::int32_t>& cores);
  [[nodiscard]] std::int32_t free_on(const std::string& node) const;

 private:
  std::map<std::string, std::set<std::int32_t>> free_;
};

}  // namespace berth
