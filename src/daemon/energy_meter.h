// Energy by node and what it was doing, by user and by job, in this life of the scheduler: measured
// where the machine counts it, else by the declared model (idle_watts and busy_watts of servers and
// device types). A device's energy is its holders', in equal parts; the server's is theirs by
// devices held of all; the rest is nobody's. Jobs and nobody together are all of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "daemon/service.h"
#include "exec/rapl.h"
#include "model/cluster.h"

namespace berth {

enum class NodeUse : std::uint8_t { Busy, Idle, Booting, Off };
inline constexpr std::size_t kNodeUses = 4;
[[nodiscard]] std::string_view to_string(NodeUse use) noexcept;

/// Safe to call from any thread.
class EnergyMeter {
 public:
  /// `rapl`: counters of this machine; they count only where it is all of the cluster.
  EnergyMeter(const Cluster& cluster, Rapl rapl);

  struct Held {
    JobNumber job = 0;
    NodeId node;
    double gpus = 0;  // a shared device counts in parts
  };
  /// What was so until now is charged; from now on this is.
  void observe(Time now, std::vector<Held> held, const std::vector<NodeUse>& nodes);
  /// Whose a job is: asked once, when it is first seen.
  void set_user(JobNumber job, const std::string& user);
  [[nodiscard]] bool knows(JobNumber job) const;

  [[nodiscard]] double joules_of(JobNumber job) const;
  [[nodiscard]] double joules_of(const std::string& user) const;
  [[nodiscard]] double joules(NodeId node, NodeUse use) const;
  [[nodiscard]] double nobody() const;
  /// Prometheus text.
  [[nodiscard]] std::string metrics(Time now);

 private:
  struct Row {
    NodeUse use = NodeUse::Idle;
    std::array<double, kNodeUses> joules{};
  };
  void charge(Time now);
  [[nodiscard]] double server_joules(NodeId node, double held, double seconds);

  const Cluster& cluster_;
  mutable std::mutex mutex_;
  Rapl rapl_;
  bool measures_ = false;
  std::uint64_t gaps_ = 0;
  std::optional<Time> since_;
  std::vector<Row> rows_;
  std::vector<Held> held_;
  struct Account {
    std::string user;
    double joules = 0;
  };
  std::map<JobNumber, Account> jobs_;  // that run
  std::map<std::string, double> users_;
  double nobody_ = 0;
};

}  // namespace berth
