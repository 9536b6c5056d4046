// What can be asked of the cluster rather than of a job: its state, nodes, the
// policy, shares. Reads the status board and the scheduler's figures; changes
// are settings in the journal. Safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "daemon/admission.h"
#include "daemon/clock.h"
#include "daemon/energy_meter.h"
#include "daemon/scheduler.h"
#include "daemon/service.h"
#include "daemon/status_board.h"
#include "store/store.h"

namespace berth {

class ClusterService {
 public:
  struct Parts {
    const StatusBoard& board;
    Store& store;
    const LiveClock& clock;
    const Scheduler& scheduler;
    const Admission& admission;
    const Cluster& cluster;
    EnergyMeter* energy = nullptr;
    std::uint64_t generation = 0;
    std::string version;
    double half_life = 0;             // of use, in seconds
    std::uint64_t reserve_bytes = 0;  // kept free for ends when submits are refused
    std::function<Answer<void>(SettingRecord)> write_setting;
  };
  explicit ClusterService(Parts parts);
  /// What stands in the way of taking jobs; empty: nothing.
  void set_trouble(std::string trouble);

  [[nodiscard]] ClusterView cluster();
  [[nodiscard]] std::vector<NodeView> nodes();
  [[nodiscard]] Answer<NodeView> set_node(const Caller& caller, const std::string& node,
                                          const std::string& state, const std::string& reason);
  [[nodiscard]] Answer<ClusterView> set_policy(
      const Caller& caller, const std::string& policy,
      const std::vector<std::pair<std::string, std::string>>& settings);
  [[nodiscard]] std::vector<ShareView> shares(const Caller& caller);
  [[nodiscard]] Answer<ShareView> set_share(const Caller& caller, const ShareView& share);
  [[nodiscard]] std::string learnt_profiles(const Caller& caller);

 private:
  Parts parts_;
  const std::int64_t started_wall_;
  const Time started_;
  mutable std::mutex trouble_mutex_;
  std::string trouble_;
};

}  // namespace berth
