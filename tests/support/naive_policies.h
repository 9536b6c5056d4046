// Reference policies: the plain algorithms of the literature, looking at every job at every pass.
// Slow and obvious on purpose; the product's incremental policies must give the same result with
// counting placement.
#pragma once

#include <set>
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
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::RunTime}; }
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

/// The same walk where jobs sit on devices, in one pool: running jobs stay where they are; who is
/// granted by count and finds no devices takes those of jobs behind it, and these have their turn
/// again when the walk comes to them. Who finds no place even so is left out, with those of its
/// shape behind it, and the walk begins again; so it does when somebody who made way found no other
/// place.
class NaiveRankWalk final : public Policy {
 public:
  enum class Key { WorkLeft, WorkLeftGpus, Attained, AttainedGpus, Deadline };
  NaiveRankWalk(Key key, Duration quantum) : key_(key), quantum_(quantum) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "naive-rank-walk"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Deadline};
  }
  void on_arrival(const View&, JobId job) override { active_.push_back(job); }
  void on_departure(const View&, JobId job) override { std::erase(active_, job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  [[nodiscard]] Int128 key_of(const View& view, JobId job) const;
  [[nodiscard]] std::vector<JobId> walk_by_count(const View& view, Plan& plan) const;
  [[nodiscard]] bool place(const View& view, Plan& plan, std::vector<JobId>& todo, std::size_t at);
  Key key_;
  Duration quantum_;
  std::vector<JobId> active_;
  std::set<JobId> blocked_;   // in one pass, and with them whoever of their shape comes later
  std::set<JobId> made_way_;  // of one round
};

/// EASY backfill by a scan of the queue and of the running jobs.
class NaiveEasy final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "naive-easy"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::RunTime}; }
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

/// 2D-LAS with K queues: the reference pass of Tiresias. Where jobs sit on devices, of one pool, a
/// granted job that finds none takes those of runners of lower queues; these look for others before
/// the waiting jobs of their queue have their turn, or wait ahead of it.
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
  using Queues = std::vector<std::vector<Row>>;  // by queue
  [[nodiscard]] double service(const View& view, const Row& row) const;
  void demote_and_promote(const View& view, const Plan& plan);
  [[nodiscard]] std::vector<Row> walk_by_count(const View& view, Plan& plan);
  [[nodiscard]] bool place_all(const View& view, Plan& plan, const std::vector<Row>& starts);
  [[nodiscard]] bool place(const View& view, Plan& plan, JobId job, std::size_t queue);
  void place_displaced(const View& view, Plan& plan, std::size_t up_to);
  [[nodiscard]] Time due(const View& view, const Row& row, bool runs) const;
  std::vector<double> thresholds_;
  double knob_;
  Queues running_;              // in grant order
  Queues waiting_;              // head first
  std::set<JobId> blocked_;     // in one pass, and with them whoever of their shape comes later
  std::vector<Row> displaced_;  // of one round, in the order of their turns
  bool has_left_ = false;       // one of them, in this round
};

}  // namespace berth::test
