// Where jobs live, and with how many tickets. A user owns its tickets' part of each device type
// (users.h); what it owns of a type is split over those of its jobs that live there. A job that
// fits into a server has one as its home; a larger one lives on a type. A newcomer lives nowhere
// until it starts or shares are updated.
//
// The only owner of that state and of which jobs wait for a turn; quantum.h decides which ones run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/view.h"
#include "policies/gandiva_fair/stride.h"
#include "policies/gandiva_fair/users.h"
#include "policies/kit/beliefs.h"

namespace berth::gandiva_fair {

enum class Mechanism : std::uint8_t { Off, On };

struct Options {
  Duration quantum = std::chrono::seconds{60};
  StartRule start = StartRule::InRounds;
  Duration switch_cost = std::chrono::seconds{1};
  Duration migration_cost = std::chrono::seconds{2};
  Mechanism trading = Mechanism::On;
  Mechanism balancing = Mechanism::On;
  std::vector<std::pair<std::string, double>> tickets;  // of users; others have 1
};

class Homes {
 public:
  struct Row {
    std::uint32_t user = 0;
    const std::vector<double>* rates = nullptr;  // by pool, believed; nothing: it is over
    std::optional<PoolId> pool;                  // where it lives
    std::optional<NodeId> home;                  // the server, if it fits into one
    double tickets = 0;                          // on its type
    Duration start_cost{};                       // when it next starts
    bool is_waiting = true;                      // as of the last quantum
  };
  explicit Homes(const Options& options) : options_(options) {}
  void begin(const View& view);
  void add(const View& view, JobId job);
  void remove(const View& view, JobId job);

  [[nodiscard]] const Row& operator[](JobId job) const noexcept { return rows_[job]; }
  /// Of jobs that live somewhere.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  void set_waiting(JobId job, bool is_waiting);
  void set_start_cost(JobId job, Duration cost) { rows_[job].start_cost = cost; }

  void live_in(const View& view, JobId job, PoolId pool, std::optional<NodeId> home);
  /// Nothing happens if it lives nowhere.
  void move_out(const View& view, JobId job);
  void set_home(JobId job, std::optional<NodeId> home);
  [[nodiscard]] const std::vector<JobId>& homed_on(NodeId node) const noexcept {
    return homed_[node];
  }

  /// What every user owns now, where its jobs should live, and their tickets; newcomers are housed.
  void update_shares(const View& view, std::span<const JobId> newcomers);
  /// One job that waits, from the fullest server to the emptiest, if that lowers the higher of
  /// both.
  void balance(const View& view, PoolId pool);

  /// Who lives on a type, by stride.
  [[nodiscard]] std::uint32_t pools() const noexcept {
    return static_cast<std::uint32_t>(pools_.size());
  }
  [[nodiscard]] GangStride& stride(PoolId pool) noexcept { return pools_[pool].stride; }
  [[nodiscard]] const GangStride& stride(PoolId pool) const noexcept { return pools_[pool].stride; }
  [[nodiscard]] const std::vector<NodeId>& nodes(PoolId pool) const noexcept {
    return pools_[pool].nodes;
  }
  /// Types, by position.
  [[nodiscard]] const std::vector<std::size_t>& fastest_first() const noexcept {
    return fastest_first_;
  }

 private:
  struct Pool {
    GangStride stride = {};
    std::vector<NodeId> nodes = {};
  };
  [[nodiscard]] std::uint32_t user_of(const View& view, JobId job);
  [[nodiscard]] PoolId best_pool(JobId job) const;
  void move_between_types(const View& view);
  void set_tickets();
  [[nodiscard]] double tickets_of(const User& user, PoolId pool) const noexcept;
  [[nodiscard]] double load_of(const View& view, NodeId node) const;
  [[nodiscard]] std::optional<NodeId> least_loaded(const View& view, PoolId pool,
                                                   std::int32_t gpus) const;

  const Options& options_;
  Beliefs beliefs_;
  std::vector<User> users_;
  std::map<NameId, std::uint32_t> user_index_;
  Column<JobId, Row> rows_;
  Column<PoolId, Pool> pools_;
  Column<NodeId, std::vector<JobId>> homed_;
  Column<NodeId, double> node_tickets_;  // of those homed there
  std::vector<std::size_t> fastest_first_;
  std::size_t waiting_ = 0;
};

}  // namespace berth::gandiva_fair
