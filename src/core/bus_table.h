// Which jobs are on which server, and how much of its bus (PCIe and host memory) each of them
// takes: what decides how much they get into each other's way. Kept by ClusterState for runs in
// which somebody minds, so a plan that is rolled back leaves no trace here either. A change costs
// what there are jobs on one server; so does every question.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/id.h"
#include "perf/rate_function.h"

namespace berth {

class BusTable {
 public:
  struct Resident {
    JobId job;
    std::int32_t bus_milli = 0;  // thousandths of the server's bus it takes alone
    friend bool operator==(const Resident&, const Resident&) = default;
  };

  explicit BusTable(std::size_t nodes) : on_(nodes) {}

  void enter(NodeId node, const Resident& resident) {
    auto& here = on_[node.value];  // by job: sums do not depend on who came first
    here.insert(std::ranges::lower_bound(here, resident.job, {}, &Resident::job), resident);
  }
  void leave(NodeId node, JobId job) {
    auto& here = on_[node.value];
    const auto found = std::ranges::find(here, job, &Resident::job);
    BERTH_CHECK(found != here.end(), "a job leaves a server it is on");
    here.erase(found);
  }

  [[nodiscard]] std::span<const Resident> on(NodeId node) const noexcept { return on_[node.value]; }

  /// How many times longer an iteration of the resident takes for those on the server now; whether
  /// it is one of them makes no difference.
  [[nodiscard]] double slowdown(NodeId node, const Resident& resident) const noexcept {
    BusPressure pressure{share(resident)};
    for (const Resident& other : on(node)) {
      if (other.job != resident.job) pressure.add_neighbour(share(other));
    }
    return pressure.slowdown();
  }
  /// What a newcomer and those on the server would lose by each other: the sum over pairs of what
  /// is above one.
  [[nodiscard]] double disturbance(NodeId node, std::int32_t bus_milli) const noexcept {
    double sum = 0;
    for (const Resident& other : on(node)) sum += pair_slowdown(bus_milli, other.bus_milli) - 1;
    return sum;
  }
  /// Of either, with nobody else on the server.
  [[nodiscard]] static double pair_slowdown(std::int32_t one, std::int32_t other) noexcept {
    BusPressure pressure{one / 1000.0};
    pressure.add_neighbour(other / 1000.0);
    return pressure.slowdown();
  }

 private:
  [[nodiscard]] static double share(const Resident& resident) noexcept {
    return resident.bus_milli / 1000.0;
  }

  std::vector<std::vector<Resident>> on_;  // by node
};

}  // namespace berth
