// Which job lives where: the queue, the servers by affinity (servers.h), the ring of each unit
// (ring.h) and the home of each job. A job waits in the queue, lives on a unit, or is over. The
// only owner of that state; turns.h decides which residents run, migration.h which ones move.
//
// It also notes which units have changed: in this instant, for the turns to be settled, and since
// the last tick (`touched`), for introspection.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "core/view.h"
#include "policies/gandiva/options.h"
#include "policies/gandiva/ring.h"
#include "policies/gandiva/servers.h"
#include "policies/kit/memo.h"
#include "policies/kit/waiting_jobs.h"

namespace berth::gandiva {

struct Home {
  PoolId pool;
  UnitId unit;
  friend auto operator<=>(const Home&, const Home&) = default;
};

/// At most one moment for each home.
class HomeTimers {
 public:
  struct Timer {
    Time at;
    Home home;
    friend auto operator<=>(const Timer&, const Timer&) = default;
  };
  void set(Home home, Time at) {
    clear(home);
    at_.emplace(home, at);
    timers_.insert({at, home});
  }
  void clear(Home home) {
    const auto found = at_.find(home);
    if (found == at_.end()) return;
    timers_.erase({found->second, home});
    at_.erase(found);
  }
  [[nodiscard]] bool has(Home home) const { return at_.contains(home); }
  [[nodiscard]] bool empty() const noexcept { return timers_.empty(); }
  [[nodiscard]] Time first() const noexcept { return empty() ? kNever : timers_.begin()->at; }
  /// The earliest first.
  [[nodiscard]] auto begin() const noexcept { return timers_.begin(); }
  [[nodiscard]] auto end() const noexcept { return timers_.end(); }

 private:
  std::set<Timer> timers_;
  std::map<Home, Time> at_;
};

class Housing {
 public:
  explicit Housing(const Options& options) : options_(options) {}
  void begin(const View& view);

  void on_arrival(const View& view, JobId job) { enqueue(view, job, Line::Tail); }
  void on_departure(const View& view, JobId job);
  /// Back to the head of the queue, if it still lives somewhere.
  void on_requeue(const View& view, JobId job);
  void on_server_up(const View& view, NodeId node);
  /// All residents go back to the head of the queue, also suspended ones: their state is lost with
  /// the host. Answers those that still hold devices on other servers of their set.
  [[nodiscard]] std::vector<JobId> on_server_down(const View& view, NodeId node);

  [[nodiscard]] bool has_queue() const noexcept { return !queue_.empty(); }
  /// First come, first served; a job that finds no place does not hold up the others.
  void place_queue(const View& view, std::optional<AffinityClass> only = std::nullopt);
  /// The server on which it still runs, from before this engine, as large as it asked to be.
  [[nodiscard]] std::optional<Home> home_found(const View& view, const Plan& plan, JobId job) const;
  /// A job of the queue lives where it was found, if there is room: a better server would cost it
  /// what it has done.
  void settle_found(const View& view, const Plan& plan, JobId job);

  [[nodiscard]] std::optional<Home> home_of(JobId job) const noexcept { return jobs_[job].home; }
  [[nodiscard]] const Ring& ring(Home home) const { return row(home).ring; }
  [[nodiscard]] Ring& ring(Home home) { return row(home).ring; }
  [[nodiscard]] const Servers::Unit& unit(Home home) const {
    return pools_[home.pool].servers[home.unit];
  }
  [[nodiscard]] const Servers& servers(PoolId pool) const { return pools_[pool].servers; }
  [[nodiscard]] std::uint32_t pools() const noexcept {
    return static_cast<std::uint32_t>(pools_.size());
  }
  [[nodiscard]] const Demand& demand_of(const View& view, JobId job);
  /// GPUs that are waited for, by class.
  [[nodiscard]] const std::map<AffinityClass, std::int64_t>& queued(PoolId pool) const {
    return pools_[pool].queued;
  }

  // A move takes room at the new home, gives it back at the old one, and changes rings.
  /// Takes room on the unit that this placement step finds, or declines.
  [[nodiscard]] std::optional<UnitId> take_room(PoolId pool, Step step, const Demand& demand);
  void take_room(Home home, const Demand& demand) {
    pools_[home.pool].servers.add(home.unit, demand);
  }
  void give_room(Home home, const Demand& demand) {
    pools_[home.pool].servers.remove(home.unit, demand);
  }
  /// Moves a suspended resident to the ring of a unit where room is taken for it.
  void rehouse(JobId job, std::int32_t gpus, Home to);

  /// What the next start of a job costs it.
  [[nodiscard]] Duration start_cost(JobId job) const noexcept { return jobs_[job].start_cost; }
  void set_start_cost(JobId job, Duration cost) { jobs_[job].start_cost = cost; }

  /// Something about the unit has changed in this instant.
  void touch(Home home);
  void end_slice(Home home);
  [[nodiscard]] bool is_changed(Home home) const { return row(home).is_changed; }
  [[nodiscard]] bool is_slice_over(Home home) const { return row(home).is_slice_over; }
  /// Units that a job has left in this instant, ascending, with the class they had before.
  [[nodiscard]] std::vector<std::pair<Home, AffinityClass>> left() const;
  /// Units that have changed in this instant, ascending.
  [[nodiscard]] const std::vector<Home>& sort_changed();
  /// All changes of this instant are dealt with.
  void settle_changed();
  [[nodiscard]] bool has_touched() const noexcept { return !touched_.empty(); }
  /// Units that were touched since this was asked last.
  [[nodiscard]] std::vector<Home> take_touched();

 private:
  enum class Line : std::uint8_t { Head, Tail };
  struct JobRow {
    std::optional<Home> home;
    bool is_queued = false;
    Duration start_cost{};
  };
  struct UnitRow {
    Ring ring;
    AffinityClass left_by = 0;   // its class before a job left it in this instant; 0: none did
    bool is_slice_over = false;  // its slice ends in this instant
    bool is_changed = false;     // in this instant
    bool is_touched = false;     // since the last tick
  };
  struct PoolRow {
    Servers servers;
    Column<UnitId, UnitRow> units = {};
    std::map<AffinityClass, std::int64_t> queued = {};  // by those who accept this pool first
  };
  [[nodiscard]] UnitRow& row(Home home) { return pools_[home.pool].units[home.unit]; }
  [[nodiscard]] const UnitRow& row(Home home) const { return pools_[home.pool].units[home.unit]; }
  void note_changed(Home home);
  void enqueue(const View& view, JobId job, Line line);
  void dequeue(const View& view, JobId job);
  void settle_in(JobId job, std::int32_t gpus, Home home);
  void move_out(const View& view, JobId job);
  void send_back(const View& view, JobId job);
  [[nodiscard]] bool try_place(const View& view, JobId job);
  [[nodiscard]] Demand compute_demand(const View& view, JobId job) const;

  const Options& options_;
  Column<PoolId, PoolRow> pools_;
  Column<JobId, JobRow> jobs_;
  Memo<KindId, Demand> demands_;
  WaitingByShape queue_;
  std::vector<Home> changed_;
  std::vector<Home> touched_;
};

}  // namespace berth::gandiva
