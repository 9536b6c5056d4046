// A Slurm without a Slurm: a slurmctld that holds, places, starts, requeues and forgets jobs in
// simulated time, behind the verbs of slurm::Link. Users submit and cancel, nodes are lost, the
// controller is killed and goes back by seconds, verbs fail after or before they were carried out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "slurm/link.h"

namespace berth::test {

class SimSlurm final : public slurm::Link {
 public:
  struct Faults {
    double unread = 0;         // a reading fails
    double stale = 0;          // a reading is the last one again
    double unsent = 0;         // a verb fails and was not carried out
    double undone_answer = 0;  // a verb fails and was carried out
    double slow_end = 0;       // a run takes up to a minute to be gone
  };
  struct Options {
    std::vector<std::int32_t> gpus{4, 4};  // by node: n0, n1 …
    Faults faults{};
    std::uint64_t seed = 1;
    std::int64_t min_job_age = 300;
    std::int64_t requeue_pause = 6;  // begin time after a requeue
  };
  explicit SimSlurm(Options options);

  /// What a user asks for, and what the job does: it needs so many seconds in all (a run that was
  /// ended keeps what it has done), and leaves with this code.
  struct Request {
    std::string user = "ann";
    std::string name = "train";
    std::int32_t gpus = 1;
    std::int64_t seconds = 60;
    std::int32_t exit_code = 0;
    std::int64_t time_limit = 0;
    bool is_stubborn = false;       // ignores SIGTERM: it is killed after 30 s
    bool fails_on_warning = false;  // leaves with 1 when it is warned, before it is ended
    bool may_requeue = true;
    bool is_batch = true;
    bool is_held = true;  // by job_submit.lua
    std::string tasks{};  // of an array: "0-3"
    std::string dependency{};
  };
  std::uint32_t submit(const Request& request);

  // --- people and the world

  void user_cancels(std::uint32_t job);
  void user_holds(std::uint32_t job);
  void admin_requeues(std::uint32_t job);
  void admin_releases(std::uint32_t job);
  void set_limit(std::uint32_t job, std::int64_t seconds);
  void clear_dependency(std::uint32_t job);
  void lose_node(std::size_t node);
  void bring_back(std::size_t node);
  /// slurmctld is killed: everything since so many seconds is forgotten, and it is away for `away`.
  void kill_controller(std::int64_t forgets, std::int64_t away);
  void set_faults(const Faults& faults) { faults_ = faults; }

  // --- time

  void set_now(std::int64_t seconds);  // Unix; things happen up to then
  [[nodiscard]] std::int64_t now() const noexcept { return now_; }

  // --- what is seen from outside

  [[nodiscard]] const slurm::Job* find(std::uint32_t job) const;
  [[nodiscard]] std::vector<slurm::Job> all() const;
  /// Everybody is over.
  [[nodiscard]] bool is_quiet() const;
  /// How often it was started, in all its runs.
  [[nodiscard]] int starts_of(std::uint32_t job) const;
  /// Asked before a place is carried out: what is wrong with it; empty: nothing.
  void set_place_check(
      std::function<std::string(const slurm::Job&, const slurm::Placement&)> check) {
    check_ = std::move(check);
  }
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const noexcept {
    return counts_;
  }

  // --- the link

  [[nodiscard]] slurm::Linked<slurm::Version> version() override {
    return slurm::Version{24, 11, 5};
  }
  [[nodiscard]] slurm::Linked<std::optional<std::vector<slurm::Job>>> jobs() override;
  [[nodiscard]] slurm::Linked<std::optional<std::vector<slurm::Node>>> nodes() override;
  [[nodiscard]] slurm::Linked<std::vector<slurm::Partition>> partitions() override;
  [[nodiscard]] slurm::Linked<std::vector<slurm::Switch>> topology() override { return {}; }
  [[nodiscard]] slurm::Linked<std::vector<slurm::Reservation>> reservations() override {
    return {};
  }
  [[nodiscard]] slurm::Linked<slurm::Config> config() override { return slurm::Config{}; }
  [[nodiscard]] slurm::Linked<void> place(const slurm::JobRef& job,
                                          const slurm::Placement& placement) override;
  [[nodiscard]] slurm::Linked<void> hold(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> release(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> requeue_held(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> cancel(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> signal(const slurm::JobRef& job, int number) override;
  [[nodiscard]] slurm::Linked<void> signal_script(const slurm::JobRef& job, int number) override {
    return signal(job, number);
  }
  [[nodiscard]] slurm::Linked<void> suspend(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> resume(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> set_time_limit(const slurm::JobRef& job,
                                                   std::int64_t seconds) override;
  [[nodiscard]] slurm::Linked<void> set_admin_comment(const slurm::JobRef& job,
                                                      const std::string& text) override;
  [[nodiscard]] slurm::Linked<void> resume_node(const std::string& node) override;

 private:
  enum class After : std::uint8_t { Over, Held, Unheld };  // what becomes of a run that is ended
  struct Row {
    slurm::Job job;
    Request request;
    std::int64_t done = 0;   // seconds of work behind it
    std::int64_t begin = 0;  // not before
    std::vector<std::string> required{};
    std::optional<std::uint32_t> placed_run{};  // restarts, when it was last placed by its link
    std::int64_t gone_at = 0;                   // while it completes
    After after = After::Over;
    slurm::JobPhase phase_after{};
    int starts = 0;
  };
  using Rows = std::map<std::uint32_t, Row>;
  struct State {
    Rows rows;
    std::uint32_t next_id = 1;
  };

  void tick();
  void start_what_fits();
  void start(Row& row);
  void end_run(Row& row, slurm::JobPhase phase, After after);
  void finish(Row& row);
  void requeue(Row& row, After after);
  [[nodiscard]] bool fits(const Row& row) const;
  [[nodiscard]] std::int32_t used_on(const std::string& node) const;
  [[nodiscard]] Row* row_of(const slurm::JobRef& ref);
  [[nodiscard]] Row& split_off(Row& array, std::int32_t task);
  void check_plan(const slurm::Job& job, const slurm::Placement& placement);
  [[nodiscard]] bool strikes(double often, const char* what);
  template <class Do>
  slurm::Linked<void> carry_out(const slurm::JobRef& ref, Do act);

  Options options_;
  Faults faults_;
  Rng rng_;
  State state_;
  std::map<std::int64_t, State> saved_;  // what a killed controller goes back to
  std::set<std::size_t> lost_nodes_;
  std::int64_t now_ = 0;
  std::int64_t away_until_ = 0;
  std::vector<slurm::Job> last_reading_;
  std::function<std::string(const slurm::Job&, const slurm::Placement&)> check_;
  std::vector<std::string> violations_;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace berth::test
