// A complete scheduler in one process: store, journal writer, host, engine and service, wired
// together in the order in which they may fail. The API and the command line stand in front of its
// service.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "daemon/live_abilities.h"
#include "daemon/live_service.h"
#include "daemon/node_power.h"
#include "exec/container.h"
#include "exec/local_host.h"
#include "store/sqlite_store.h"

namespace berth {

/// What a host may use of the scheduler that it runs attempts for; outlives it.
struct HostWorld {
  std::function<void(HostEvent)> tell;
  const Ledger& ledger;  // as it was left; only while the host is made
  Journal& journal;
  const StatusBoard& board;
  Store& store;
  const LiveClock& clock;
  const Cluster& cluster;
  Logger& log;
  LogLimit& limit;
};
using HostMaker = std::function<Result<std::unique_ptr<Host>>(const HostWorld&)>;

struct DaemonOptions {
  Cluster cluster;
  std::string state_dir;  // the journal
  std::string run_dir;    // claims, orders and exit records; survives us, not a reboot
  std::string shim;       // program; empty: beside ours
  std::string helper;     // program that hosts sessions in jobs; empty: our own
  std::vector<std::string> cgroup_roots;
  SchedulerOptions live;
  AdmissionOptions admission;
  ServiceOptions service;
  PowerOptions power;
  ContainerOptions containers;
  /// Of every job's environment, beside what its user says.
  std::function<std::vector<std::pair<std::string, std::string>>(JobNumber)> extra_env;
  /// Where training code finds us; empty: nobody listens. One that cannot be opened is logged and
  /// done without.
  std::string training_socket;
  std::int64_t keep_journal_seconds = 30 * 86'400;
  /// Where attempts run; empty: as processes of this machine. One of its own is told where to run
  /// what, and nothing of scripts, environments and users.
  HostMaker host{};
  HostTraits host_traits{};
};

class Daemon {
 public:
  /// Opens, recovers the state and begins a new life; jobs are looked after from run() on.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> open(DaemonOptions options, Logger& log);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  [[nodiscard]] LiveService& service() noexcept;
  /// The engine, in the caller's thread, until stop(). Jobs go on without us. An error: the journal
  /// cannot be written any more; whoever starts us again finds everything that was acknowledged.
  [[nodiscard]] Result<void> run();
  /// From any thread.
  void stop();
  /// The configuration was read again; from any thread (see Scheduler::set_options).
  void set_options(const SchedulerOptions& live);
  [[nodiscard]] std::uint64_t generation() const noexcept;

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace berth
