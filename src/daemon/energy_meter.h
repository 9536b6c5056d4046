// Energy by node and what it was doing, by user and by job: measured where the machine counts it,
// else by the declared model (idle_watts and busy_watts of servers and device types). A device's
// energy is its holders', in equal parts; the server's is theirs by devices held of all; the rest
// is nobody's. Jobs and nobody together are all of it. What has come together goes on record, and
// the next life goes on from there; for the time in which nobody looked the model stands in.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "daemon/service.h"
#include "exec/gpu_energy.h"
#include "exec/rapl.h"
#include "model/cluster.h"

namespace berth {

enum class NodeUse : std::uint8_t { Busy, Idle, Booting, Off };
inline constexpr std::size_t kNodeUses = kNodeUseNames.size();
[[nodiscard]] std::string_view to_string(NodeUse use) noexcept;
inline constexpr const char* kEnergySetting = "energy";

/// Safe to call from any thread.
class EnergyMeter {
 public:
  struct Counters {  // of this machine; they count only where it is all of the cluster
    Rapl rapl{""};
    GpuEnergy gpus{""};
  };
  EnergyMeter(const Cluster& cluster, Counters counters);

  struct Held {
    JobNumber job = 0;
    NodeId node;
    std::uint64_t devices = 0;  // a mask
    Time since{};               // of its attempt; needed only to restore
  };
  /// Once, before anything is observed: what the life before has put down, who holds devices since
  /// then, by set_user() of whom, and what each node has been doing beside them. Anything else than
  /// its text is taken for nothing.
  void restore(const std::string& text, std::span<const Held> held,
               const std::vector<NodeUse>& nodes, Time now);
  /// Whoever keeps the text, now and then and never for long under a lock of theirs.
  void set_keeper(std::function<void(std::string)> keep) { keep_ = std::move(keep); }

  /// What was so until now is charged; from now on this is.
  void observe(Time now, std::vector<Held> held, const std::vector<NodeUse>& nodes);
  /// Whose a job is: asked once, when it is first seen.
  void set_user(JobNumber job, const std::string& user);
  [[nodiscard]] bool knows(JobNumber job) const;
  /// An attempt is over since `until`: what it is charged. The next one of the job begins with
  /// nothing. If it ended while nobody looked, its node was without it from then on.
  [[nodiscard]] double take(JobNumber job, Time until, Time now);
  /// Reads counters that must not wait, and puts down what has news. How long until the next time,
  /// in seconds; nothing: never.
  std::optional<double> sample(Time now);
  /// As much as there is.
  void keep(Time now);
  /// What people are shown is as new as now.
  void count_until(Time now);

  [[nodiscard]] double joules_of(JobNumber job) const;
  [[nodiscard]] double joules_of(const std::string& user) const;
  [[nodiscard]] double joules(NodeId node, NodeUse use) const;
  [[nodiscard]] std::array<double, kNodeUses> joules(NodeId node) const;
  [[nodiscard]] double nobody() const;
  /// "nvml(gpus) model(servers)".
  [[nodiscard]] std::string source() const;
  /// Prometheus text.
  [[nodiscard]] std::string metrics(Time now);

 private:
  struct Row {
    NodeUse use = NodeUse::Idle;
    std::array<double, kNodeUses> joules{};
  };
  struct Account {
    std::string user;
    double joules = 0;
  };
  struct Stay : Held {
    Time until{};
    std::optional<double> taken{};  // it is over, and charged so much of it
  };
  /// What a stretch of time has cost.
  struct Spent {
    std::vector<double> nodes;  // by what they were doing then
    std::vector<double> held;   // of each who held devices
  };
  struct Tally {
    std::vector<std::array<double, kNodeUses>> nodes;
    std::vector<double> stays;
  };
  /// The time in which nobody looked: charged by the model, and again whenever somebody is found to
  /// have ended in it.
  struct Gap {
    Time from{}, until{};
    std::vector<NodeUse> nodes;  // beside those who stay
    std::vector<Stay> stays;     // in the order of nodes
    std::vector<std::string> users;
    Tally charged;
  };
  enum class By : std::uint8_t { Counters, Model };
  [[nodiscard]] std::optional<Time> read(const std::string& text, std::span<const Held> held);
  void set_state(std::vector<Held> held, const std::vector<NodeUse>& nodes);
  void begin_counting(Time now);
  void charge(Time now);
  [[nodiscard]] Spent spend(std::span<const Held> held, std::span<const NodeUse> nodes,
                            double seconds, By by);
  [[nodiscard]] Tally tally(const Gap& gap);
  void charge_gap();
  [[nodiscard]] double server_joules(NodeId node, double held, double seconds, By by);
  [[nodiscard]] std::vector<double> device_joules(NodeId node,
                                                  const std::vector<std::int32_t>& holders,
                                                  double seconds, By by);
  [[nodiscard]] std::string text(Time now) const;
  [[nodiscard]] bool is_due(Time now) const;
  void keep_if_due(Time now);

  const Cluster& cluster_;
  mutable std::mutex mutex_;
  Counters counters_;
  bool has_rapl_ = false, has_gpus_ = false;
  std::uint64_t gaps_ = 0;
  std::optional<Time> since_;
  std::vector<Row> rows_;
  std::vector<NodeUse> uses_;  // as observed, whoever holds devices
  std::vector<Held> held_;
  Gap gap_;
  std::map<JobNumber, Account> jobs_;  // that run
  std::map<std::string, double> users_;
  double nobody_ = 0;
  std::function<void(std::string)> keep_;
  Time kept_{};
  bool has_news_ = false;  // an attempt is over, or a node went off or on, that is not kept
};

}  // namespace berth
