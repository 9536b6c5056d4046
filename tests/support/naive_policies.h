// Reference policies: the plain algorithms of the literature, looking at every job at every pass.
// Slow and obvious on purpose; the product's incremental policies must give the same result with
// counting placement.
#pragma once

#include <vector>

#include "base/int128.h"
#include "core/policy.h"

namespace berth::test {

/// Walk over all active jobs by key from an empty cluster; what fits runs.
class NaiveWalk final : public Policy {
 public:
  enum class Key { WorkLeft, WorkLeftGpus, Attained, AttainedGpus };
  NaiveWalk(Key key, Duration quantum) : key_(key), quantum_(quantum) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "naive-walk"; }
  [[nodiscard]] Need needs() const noexcept override { return Need::RunTime; }
  void on_arrival(const View&, JobId job) override { active_.push_back(job); }
  void on_departure(const View&, JobId job) override { std::erase(active_, job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  [[nodiscard]] Int128 key_of(const View& view, JobId job) const;
  Key key_;
  Duration quantum_;
  std::vector<JobId> active_;
};

/// EASY backfill by a scan of the queue and of the running jobs.
class NaiveEasy final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "naive-easy"; }
  [[nodiscard]] Need needs() const noexcept override { return Need::RunTime; }
  void on_arrival(const View&, JobId job) override { queue_.push_back(job); }
  void on_departure(const View&, JobId job) override {
    std::erase(running_, job);
    std::erase(queue_, job);
  }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  struct Promise {
    JobId head;
    Time shadow;
  };
  std::vector<Promise> promises;  // what each pass promised to its head

 private:
  void run(Plan& plan, JobId job);
  std::vector<JobId> queue_;
  std::vector<JobId> running_;
};

/// 2D-LAS with K queues: the reference pass of Tiresias.
class NaiveTiresias final : public Policy {
 public:
  NaiveTiresias(std::vector<double> thresholds, double knob)
      : thresholds_(std::move(thresholds)), knob_(knob) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "naive-tiresias"; }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Row {
    JobId job;
    std::size_t queue = 0;
    Duration base{};
    Duration waited{};
    Time since{};
  };
  [[nodiscard]] double service(const View& view, const Row& row) const;
  [[nodiscard]] Time due(const View& view, const Row& row, bool runs) const;
  std::vector<double> thresholds_;
  double knob_;
  std::vector<std::vector<Row>> running_;  // by queue, in grant order
  std::vector<std::vector<Row>> waiting_;  // by queue, head first
};

}  // namespace berth::test
