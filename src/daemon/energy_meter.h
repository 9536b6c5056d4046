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
  /// Once, before anything is observed: what the life before has put down, and who holds devices
  /// since then, by set_user() of whom. Anything else than its text is taken for nothing.
  void restore(const std::string& text, std::span<const Held> held, Time now);
  /// Whoever keeps the text, now and then and never for long under a lock of theirs.
  void set_keeper(std::function<void(std::string)> keep) { keep_ = std::move(keep); }

  /// What was so until now is charged; from now on this is.
  void observe(Time now, std::vector<Held> held, const std::vector<NodeUse>& nodes);
  /// Whose a job is: asked once, when it is first seen.
  void set_user(JobNumber job, const std::string& user);
  [[nodiscard]] bool knows(JobNumber job) const;
  /// An attempt is over since `until`: what it is charged. The next one of the job begins with
  /// nothing.
  [[nodiscard]] double take(JobNumber job, Time until, Time now);
  /// Reads counters that must not wait. How long until the next time, in seconds; nothing: never.
  std::optional<double> look(Time now);
  /// As much as there is.
  void keep(Time now);

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
    // What the model has charged for the time in which nobody looked: it may have ended in it.
    double unseen_joules = 0;
    Time unseen_from{}, unseen_until{};
  };
  enum class By : std::uint8_t { Counters, Model };
  [[nodiscard]] std::optional<Time> read(const std::string& text, std::span<const Held> held);
  void begin_counting(Time now);
  void charge(Time now, By by = By::Counters);
  [[nodiscard]] double server_joules(NodeId node, double held, double seconds, By by);
  [[nodiscard]] std::vector<double> device_joules(NodeId node,
                                                  const std::vector<std::int32_t>& holders,
                                                  double seconds, By by);
  void charge_job(JobNumber job, double joules);
  [[nodiscard]] std::string text(Time now) const;
  void keep_if_due(Time now);

  const Cluster& cluster_;
  mutable std::mutex mutex_;
  Counters counters_;
  bool has_rapl_ = false, has_gpus_ = false;
  std::uint64_t gaps_ = 0;
  std::optional<Time> since_;
  std::vector<Row> rows_;
  std::vector<Held> held_;
  std::map<JobNumber, Account> jobs_;  // that run
  std::map<std::string, double> users_;
  double nobody_ = 0;
  std::function<void(std::string)> keep_;
  Time kept_{};
  bool has_news_ = false;  // somebody's attempt is over that is not kept
};

}  // namespace berth
