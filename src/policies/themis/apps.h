// The apps of a run: which jobs belong together, what each job holds, how far an app is behind its
// fair share, and in which markets it asks for more. The only owner of that state; the auction and
// the grants read it and report changes.
//
// When a lease ends, the job's GPUs are on offer until the auction of that instant is over. The job
// still holds them, but its app's rho and demand no longer count them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/view.h"
#include "policies/themis/fairness.h"
#include "policies/themis/job_times.h"
#include "policies/themis/market.h"
#include "policies/themis/offer_map.h"
#include "policies/themis/options.h"

namespace berth::themis {

/// What an app has at stake in one auction: its GPUs that are not on offer and what it gets.
struct Stake {
  AppId app;
  std::vector<JobId> jobs;  // longest without GPUs first
  std::unique_ptr<ViewedTimes> times;
  AppSplit split;                         // as it stands; refers to `times`
  AppBid bid = {};                        // of a bidder: from what it has that is not on offer
  std::uint32_t row = 0;                  // of its bid that it has
  Pieces pieces = {};                     // of the offer, where distance counts
  std::vector<std::uint32_t> homes = {};  // machines of the offer its jobs are on, ascending
};

class Apps {
 public:
  explicit Apps(const Options& options) : options_(options) {}

  void begin(const View& view);
  void add(const View& view, JobId job);
  void remove(const View& view, JobId job);

  [[nodiscard]] AppId app_of(JobId job) const noexcept { return rows_[job].app; }
  [[nodiscard]] std::span<const JobId> jobs_of(AppId app) const noexcept { return apps_[app].jobs; }
  [[nodiscard]] std::int32_t unit(JobId job) const noexcept { return rows_[job].unit; }
  /// GPUs it holds, on offer or not, and of which pool.
  [[nodiscard]] std::int32_t held(JobId job) const noexcept { return rows_[job].held; }
  [[nodiscard]] PoolId pool_of(JobId job) const noexcept { return rows_[job].pool; }
  /// GPUs it keeps whatever becomes of the offer.
  [[nodiscard]] std::int32_t firm(JobId job) const noexcept {
    return rows_[job].on_offer ? 0 : rows_[job].held;
  }
  /// What the job holds from now on, off offer. The caller refreshes its app.
  void set_held(const View& view, JobId job, PoolId pool, std::int32_t gpus);

  void put_on_offer(JobId job);
  /// Jobs whose leases have ended in this instant; some may have been stopped or renewed since.
  [[nodiscard]] std::span<const JobId> ended(PoolId pool) const noexcept {
    return pools_[pool].ended;
  }
  [[nodiscard]] bool is_on_offer(JobId job) const noexcept { return rows_[job].on_offer; }
  [[nodiscard]] std::int64_t gpus_of_ended(PoolId pool) const noexcept;
  void close_offer(PoolId pool);

  [[nodiscard]] const Market& market(PoolId pool) const noexcept { return pools_[pool].market; }
  /// Updates the app's place in every market; called after anything about it has changed.
  void refresh(const View& view, AppId app);
  /// Takes the app out of all markets until it is refreshed.
  void withdraw(AppId app);
  /// The app was next in line but its gang did not fit the offer. After `starve_leases` of these it
  /// starves: GPUs are held back for it.
  void note_miss(const View& view, PoolId pool, AppId app);

  [[nodiscard]] Stake stake(const View& view, AppId app, PoolId pool) const;
  /// T_id: seconds the app would have taken on a private share of the cluster.
  [[nodiscard]] double ideal(const View& view, AppId app) const;
  [[nodiscard]] double elapsed(const View& view, AppId app) const;

 private:
  struct JobRow {
    AppId app;
    std::int32_t unit = 1;
    std::int32_t most = 1;
    std::int32_t held = 0;
    PoolId pool;
    bool on_offer = false;
    Time since{};               // without GPUs since then
    double alone = 0;           // seconds it takes by itself with all it can use
    Duration work_at_change{};  // done when it was last started or resized
  };
  struct App {
    std::vector<JobId> jobs = {};  // unfinished, ascending
    Time start{};
    double integral_at_start = 0;
    double alone_done = 0;  // longest of its completed jobs
    Time since = kNever;    // without GPUs since then
    std::int32_t missed = 0;
    Time last_miss{};
  };
  struct PoolRow {
    Market market = {};
    std::vector<JobId> ended = {};
  };
  [[nodiscard]] AppId find_or_make(const View& view, JobId job);
  [[nodiscard]] bool may_grow(const View& view, JobId job) const;
  [[nodiscard]] double rho(const View& view, AppId app) const;

  const Options& options_;
  Column<PoolId, PoolRow> pools_;
  Column<JobId, JobRow> rows_;
  Column<AppId, App> apps_;
  std::map<NameId, AppId> by_name_;
  ActiveApps active_;
  std::vector<std::int32_t> units_;  // scratch, by pool
};

}  // namespace berth::themis
