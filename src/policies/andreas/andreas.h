// ANDREAS (FiCloud 2021): jobs by energy and tardiness. At every submission, completion and change
// of capacity, and every `period` at the latest, a randomised greedy with local search decides for
// all jobs, running ones included, on which node and on how many of its GPUs they run or that they
// wait (search.h); nodes that nobody needs are switched off, others on.
//
// A decision stands until the next one: a job whose nodes are still booting has its seat there and
// starts when they are up. A running job that keeps its node and size is left alone. Whom it takes
// over from another policy has a seat where it runs; that alone is no reason for a pass.
//
// Assumes: the run time of every job on every type and number of GPUs is believed known; deadlines
// are soft, and being late costs the job's weight per hour; preemption is by checkpoint.
// O(jobs considered * choices) per construction; the number of constructions falls with the number
// of jobs, so that a pass tries about `effort` placements. Of waiting jobs the `window` most
// pressing are considered, found without touching the others.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "core/policy.h"
#include "policies/andreas/fleet.h"
#include "policies/andreas/node_power.h"
#include "policies/andreas/search.h"
#include "policies/andreas/seats.h"
#include "policies/policy_entry.h"

namespace berth::andreas {

struct Options {
  Tariff tariff;
  ElasticRule elastic;
  double omega = 1;  // EUR per hour late of a job of weight 1
  double rho = 100;
  double aging = 0.01;  // EUR per hour late and hour waited, without deadline
  Duration period = std::chrono::hours{1};
  Duration restart = std::chrono::seconds{30};
  Duration boot = std::chrono::seconds{120};
  Duration idle_off{};
  Duration min_interval{};  // between two passes
  std::int64_t iterations = 1000;
  LocalSearchOptions local;
  std::int64_t effort = 5000;
  double best_share = kBestShare;
  std::size_t window = 5000;
};

class Andreas final : public Policy {
 public:
  explicit Andreas(const Options& options)
      : options_(options),
        fleet_(options.tariff, options.elastic),
        power_(options.boot, options.idle_off) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "andreas"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Deadline | Need::Profile,
            .preempts = true,
            .resizes = true,
            .manages_power = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Rank {  // of a waiting job; does not change while it waits
    double pressure;
    double weight;
    JobId job;  // in order of submission
    friend bool operator<(const Rank& a, const Rank& b) {
      if (a.pressure != b.pressure) return a.pressure > b.pressure;
      return a.weight != b.weight ? a.weight > b.weight : a.job < b.job;
    }
  };
  [[nodiscard]] double weight_of(const View& view, JobId job) const;
  void enqueue(const View& view, JobId job);
  void dequeue(JobId job) { waiting_.erase(*rank_[job]); }
  [[nodiscard]] bool keep_found(Pass& pass);
  [[nodiscard]] bool try_keep(Pass& pass, JobId job);
  void start_without_gpus(Plan& plan);

  // A pass.
  [[nodiscard]] bool is_due(Time now) const noexcept;
  void reschedule(Pass& pass);
  void list_nodes(const View& view);
  void list_jobs(const View& view);
  void add_job(const View& view, JobId job);
  [[nodiscard]] std::vector<Seat> solve(std::uint64_t seed) const;
  void take_over(Pass& pass, std::vector<Seat> seats);

  Options options_;
  Fleet fleet_;
  Seats seats_;
  NodePower power_;

  std::set<Rank> waiting_;                   // without a seat
  Column<JobId, std::optional<Rank>> rank_;  // that it has there, or had
  std::vector<JobId> newcomers_;             // since the last decision
  std::vector<JobId> without_gpus_;          // jobs for cores alone
  Column<NodeId, bool> failed_;              // as last seen
  bool has_changed_ = true;                  // since the last pass
  std::optional<Time> last_pass_;

  Instance instance_;                      // scratch
  std::vector<NodeId> nodes_;              // scratch: those of the instance
  Column<NodeId, std::uint32_t> node_at_;  // scratch: position there, or kNone
};

}  // namespace berth::andreas

namespace berth {

[[nodiscard]] PolicyEntry andreas_entry();

}  // namespace berth
