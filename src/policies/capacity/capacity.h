// Capacity queues in the manner of YARN's capacity scheduler.
//
// Each queue is guaranteed a share of the cluster and may use idle GPUs beyond it, up to its
// largest share. Again and again the queue that is least full (used / guaranteed, ties by name) and
// has a job that keeps it within its largest share starts its first job; a queue whose first job
// does not fit is blocked for the rest of the pass (`pass=strict`) or tries its next shape
// (`skip`). With `preemption`, a first job that its queue's guarantee covers takes GPUs back from
// queues that are over theirs, most recent start first (policies/common/victims.h).
//
// Assumes nothing about durations. With one queue, no preemption and consolidated placement it is
// the "YARN-CS" baseline of the DL scheduling papers. Preemption is by checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/policy.h"
#include "policies/capacity/queue_tree.h"
#include "policies/common/lanes.h"
#include "policies/common/victims.h"
#include "policies/list_order/list_order.h"
#include "policies/policy_entry.h"

namespace berth {

struct CapacityOptions {
  PassRule pass = PassRule::Strict;  // inside a queue
  bool preemption = false;
  double user_limit_factor = 0;      // of the queue's guarantee one user may use; 0 = no limit
  std::int64_t locality_delay = 40;  // passes a job waits for the fewest nodes possible
};

class Capacity final : public Policy {
 public:
  Capacity(QueueTree tree, const CapacityOptions& options)
      : options_(options), tree_(std::move(tree)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "capacity"; }
  void begin(const View& view) override;
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.preempts = true, .may_refuse = true};
  }
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  using QueueId = QueueTree::QueueId;
  struct UserLine {
    std::int64_t used = 0;
    JobHeap held_back;  // waits until the user is within the limit again
  };
  struct Leaf {
    Lanes<ShapeId> waiting;             // strict has one lane: the queue
    std::map<NameId, UserLine> users;   // only with a user limit
    bool blocked = false;               // for the rest of the pass
    bool head_failed = false;           // the first job of the queue was tried
    std::optional<std::uint32_t> next;  // lane of the job to try, found by has_candidate()
  };
  enum class Fit : std::uint8_t { Started, Scattered, NoRoom };

  void wait(const View& view, JobId job);
  void account(const View& view, JobId job, std::int32_t gpus);
  [[nodiscard]] bool has_user_limit() const noexcept { return options_.user_limit_factor > 0; }
  [[nodiscard]] bool is_over_user_limit(const View& view, QueueId queue, const UserLine& line,
                                        JobId job) const;
  [[nodiscard]] bool hold_back_user(const View& view, QueueId queue, std::uint32_t lane);
  void let_user_on(const View& view, QueueId queue, UserLine& line);

  [[nodiscard]] bool has_candidate(const View& view, QueueId queue);
  void try_candidate(const View& view, Plan& plan, QueueId queue);
  [[nodiscard]] Fit try_place(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool try_preempt(const View& view, Plan& plan, QueueId queue, JobId job);
  [[nodiscard]] const VictimKey* next_victim(std::span<const PoolId> pools) const;
  void started(const View& view, const Plan& plan, QueueId queue, JobId job);

  CapacityOptions options_;
  QueueTree tree_;
  std::vector<Leaf> leaves_;       // by QueueId; inner queues have none
  std::vector<QueueId> queue_of_;  // by JobId
  RunningJobs running_;            // by QueueId
  std::vector<std::uint32_t>
      scattered_;   // by JobId: passes in which it could only have been spread
  RoomMaker room_;  // scratch
};

[[nodiscard]] PolicyEntry capacity_entry();

}  // namespace berth
