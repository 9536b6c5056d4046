// A Slurm without processes, for tests: the jobs and nodes of a cluster in memory, behind the same
// link as a real one, and with its habits, as measured: a placed job starts at the next second, the
// lowest free GPUs are taken, a requeued one waits held with a later begin time, a lost node's jobs
// come back unheld with their old nodes, a suspended job keeps its GPUs.
//
// Time passes only in advance(). What people, nodes and slurmctld do to a cluster are the verbs
// below those of the link.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "slurm/link.h"

namespace berth::test {

class FakeSlurm final : public slurm::Link {
 public:
  struct Settings {
    std::int64_t now = 1'800'000'000;
    std::int64_t begin_delay = 6;  // after a requeue: cred_expire + 1
    std::int64_t kill_wait = 0;    // seconds that a run takes to end
    std::int64_t min_job_age = 300;
    bool holds = true;  // jobs are held at submit
  };
  FakeSlurm() : FakeSlurm(Settings{}) {}
  explicit FakeSlurm(Settings settings) : now(settings.now), settings_(settings) {}

  // --- the link

  [[nodiscard]] slurm::Linked<slurm::Version> version() override;
  [[nodiscard]] slurm::Linked<std::optional<std::vector<slurm::Job>>> jobs() override;
  [[nodiscard]] slurm::Linked<std::optional<std::vector<slurm::Node>>> nodes() override;
  [[nodiscard]] slurm::Linked<std::vector<slurm::Partition>> partitions() override;
  [[nodiscard]] slurm::Linked<std::vector<slurm::Switch>> topology() override;
  [[nodiscard]] slurm::Linked<std::vector<slurm::Reservation>> reservations() override;
  [[nodiscard]] slurm::Linked<slurm::Config> config() override;
  [[nodiscard]] slurm::Linked<void> place(const slurm::JobRef& job,
                                          const slurm::Placement& placement) override;
  [[nodiscard]] slurm::Linked<void> hold(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> release(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> requeue_held(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> cancel(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> signal(const slurm::JobRef& job, int number) override;
  [[nodiscard]] slurm::Linked<void> signal_script(const slurm::JobRef& job, int number) override;
  [[nodiscard]] slurm::Linked<void> suspend(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> resume(const slurm::JobRef& job) override;
  [[nodiscard]] slurm::Linked<void> set_time_limit(const slurm::JobRef& job,
                                                   std::int64_t seconds) override;
  [[nodiscard]] slurm::Linked<void> set_admin_comment(const slurm::JobRef& job,
                                                      const std::string& text) override;
  [[nodiscard]] slurm::Linked<void> resume_node(const std::string& node) override;

  // --- what happens to a cluster

  /// `count` nodes n1, n2 … behind those there are, with GPUs of this type.
  void add_nodes(int count, const std::string& gpu_type, int gpus, int cpus = 32);
  /// Gives it an id, a submit time and what a user gets who says nothing.
  std::uint32_t submit(slurm::Job job);
  /// Second by second: runs that have to end do, then released jobs start where they fit.
  void advance(std::int64_t seconds);
  /// Its run ends by itself. `advance` ends it after `seconds` if those are given.
  void end(std::uint32_t job, slurm::JobPhase phase, std::int32_t exit_code = 0);
  void end_after(std::uint32_t job, std::int64_t seconds);
  void lose_node(const std::string& node);
  void return_node(const std::string& node);
  /// slurmctld kill -9: everything since `keep()` is forgotten, ids included.
  void keep() { kept_ = {jobs_, next_id_}; }
  void forget();

  [[nodiscard]] const slurm::Job* find(std::uint32_t job) const;

  std::int64_t now;
  bool is_reachable = true;
  /// The next so many commands are carried out, and their answers are lost.
  int lost_answers = 0;
  std::vector<std::string> log{};  // every command that arrived: "place 7 n[1-2]"
  std::vector<slurm::Switch> switches{};
  slurm::Config configuration{};

 private:
  struct Held {
    std::int64_t begins = 0;  // not before
    std::int64_t ends = 0;    // its processes, by themselves; 0: not
    bool requeues = false;    // when its processes have ended
    std::optional<slurm::JobPhase> becomes{};
  };
  struct Entry {
    slurm::Job job;
    Held more{};
  };

  [[nodiscard]] slurm::Linked<void> reach(const std::string& command);
  [[nodiscard]] slurm::Linked<void> answer();
  /// The job; a task that waits with its array is split off.
  [[nodiscard]] slurm::Linked<Entry*> at(const slurm::JobRef& job);
  [[nodiscard]] bool try_start(Entry& entry);
  [[nodiscard]] std::optional<slurm::HeldNode> room_on(const slurm::Node& node,
                                                       const slurm::Job& job) const;
  void finish(Entry& entry, slurm::JobPhase phase);
  void begin_end(Entry& entry, bool requeues, slurm::JobPhase phase);
  void requeue(Entry& entry, bool held);
  void count_held();

  Settings settings_;
  std::uint32_t next_id_ = 1;
  std::map<std::uint32_t, Entry> jobs_{};
  std::vector<slurm::Node> nodes_{};
  std::pair<std::map<std::uint32_t, Entry>, std::uint32_t> kept_{{}, 1};
};

}  // namespace berth::test
