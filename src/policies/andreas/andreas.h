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
#include <unordered_map>
#include <vector>

#include "core/policy.h"
#include "policies/andreas/fleet.h"
#include "policies/andreas/search.h"
#include "policies/policy_entry.h"

namespace berth {

struct AndreasOptions {
  andreas::Tariff tariff;
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
  std::int64_t sweeps = 100;
  std::int64_t effort = 5000;
  double best_share = andreas::kBestShare;
  std::size_t window = 5000;
  bool wait_cheaper = false;
};

class Andreas final : public Policy {
 public:
  explicit Andreas(const AndreasOptions& options)
      : options_(options), fleet_(options.tariff, options.elastic) {}
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
  /// Where a job runs, or will once its nodes have booted.
  struct Seat {
    std::uint32_t choice = andreas::kNone;
    std::vector<andreas::Share> shares;  // by NodeId
    friend bool operator==(const Seat&, const Seat&) = default;
  };
  struct Rank {  // of a waiting job; does not change while it waits
    double pressure;
    double weight;
    JobId job;  // in order of submission
    friend bool operator<(const Rank& a, const Rank& b) {
      if (a.pressure != b.pressure) return a.pressure > b.pressure;
      return a.weight != b.weight ? a.weight > b.weight : a.job < b.job;
    }
  };
  [[nodiscard]] double hours_left(const View& view, JobId job) const;
  [[nodiscard]] double weight_of(const View& view, JobId job) const;
  void enqueue(const View& view, JobId job);
  void set_seat(JobId job, Seat seat);
  void leave_seat(JobId job);
  [[nodiscard]] bool has_seat(JobId job) const noexcept { return seat_at_[job.value] != 0; }
  [[nodiscard]] const Seat& seat(JobId job) const { return seats_.find(job)->second; }

  [[nodiscard]] bool keep_found(const View& view, Plan& plan);
  [[nodiscard]] bool try_keep(const View& view, Plan& plan, JobId job);

  // A pass.
  [[nodiscard]] bool is_due(Time now) const noexcept;
  void reschedule(const View& view, Plan& plan, Rng& rng);
  void list_nodes(const View& view);
  void list_jobs(const View& view);
  void add_job(const View& view, JobId job);
  [[nodiscard]] std::vector<Seat> solve(std::uint64_t seed) const;
  void take_over(const View& view, Plan& plan, std::vector<Seat> seats);
  void release(Plan& plan, JobId job);

  // Carrying it out.
  void start_seated(Plan& plan);
  [[nodiscard]] bool try_start(Plan& plan, JobId job);
  [[nodiscard]] Slice choose_devices(const Plan& plan, JobId job,
                                     const andreas::Share& share) const;
  void start_without_gpus(Plan& plan);
  void switch_nodes(const View& view, Plan& plan);
  void switch_on(const View& view, Plan& plan, NodeId node);

  AndreasOptions options_;
  andreas::Fleet fleet_;

  std::set<Rank> waiting_;
  std::vector<std::optional<Rank>> rank_;  // by JobId, while it waits
  std::vector<JobId> seated_;              // in no order
  std::vector<std::uint32_t> seat_at_;     // by JobId: position there + 1
  std::unordered_map<JobId, Seat> seats_;  // lookup only
  std::vector<JobId> pending_;             // seated, not started yet
  std::vector<JobId> newcomers_;           // since the last decision
  std::vector<JobId> without_gpus_;        // jobs for cores alone
  std::vector<std::int32_t> users_;        // by node: seats on it
  std::vector<Time> booted_;               // by node: when its boot ends
  std::vector<Time> idle_since_;           // by node; kNever while somebody has a seat on it
  std::vector<bool> failed_;               // by node, as last seen
  bool has_changed_ = true;                // since the last pass
  std::optional<Time> last_pass_;
  Time next_switch_ = kNever;  // when some idle node is to be switched off

  andreas::Instance instance_;          // scratch
  std::vector<NodeId> nodes_;           // scratch: those of the instance
  std::vector<std::uint32_t> node_at_;  // scratch, by node: position there, or kNone
  std::unordered_map<JobId, std::vector<Slice>>
      left_;                   // scratch: what moving jobs held; lookup only
  std::vector<Slice> slices_;  // scratch
};

[[nodiscard]] PolicyEntry andreas_entry();

}  // namespace berth
