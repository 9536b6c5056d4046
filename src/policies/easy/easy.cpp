#include "policies/easy/easy.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "policies/common/backfill_queues.h"
#include "policies/common/reservation.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/pass.h"

namespace berth {
namespace easy {

enum class Overrun : std::uint8_t { RunOn, Kill };  // of a job that outlives its estimate

class Easy final : public Policy {
 public:
  explicit Easy(Overrun overrun) : overrun_(overrun) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "easy"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::RunTime}; }
  void begin(const View& view) override {
    reservation_.begin(view);
    blocked_.begin(view.cluster.pools());
  }
  void on_arrival(const View& view, JobId job) override {
    waiting_.push(view.jobs.shape[job], job, view.estimated_left(job));
  }
  void on_departure(const View& view, JobId job) override {
    reservation_.ends().remove(job);
    waiting_.forget(view.jobs.shape[job], job);
  }
  void on_requeue(const View& view, JobId job) override {
    reservation_.ends().remove(job);
    on_arrival(view, job);
  }
  void on_rate(const View&, JobId job) override { reservation_.ends().has_changed(job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Candidate {
    JobId job;
    ShapeId shape;
    PoolId pool;
  };
  [[nodiscard]] std::optional<ShapeId> head_shape() const;
  void kill_overdue(const View& view, Plan& plan);
  void start_heads(const View& view, Plan& plan);
  void note_start(const View& view, const Candidate& candidate);
  [[nodiscard]] std::optional<Candidate> next_candidate(const View& view) const;
  void backfill(const View& view, Plan& plan, ShapeId head);

  Overrun overrun_;
  BackfillQueues<ShapeId> waiting_;
  Reservation reservation_;
  bool is_reserved_ = false;  // in the last pass: the head waits, and others might go before it
  BlockedPlaces blocked_;     // scratch of a pass
};

std::optional<ShapeId> Easy::head_shape() const {
  std::optional<ShapeId> head;
  for (const ShapeId shape : waiting_.active()) {
    if (!head || waiting_.first(shape) < waiting_.first(*head)) head = shape;
  }
  return head;
}

void Easy::note_start(const View& view, const Candidate& candidate) {
  waiting_.forget(candidate.shape, candidate.job);
  reservation_.ends().add(view, candidate.pool, candidate.job);
}

void Easy::start_heads(const View& view, Plan& plan) {
  while (const auto shape = head_shape()) {
    const JobId job = waiting_.first(*shape);
    const auto& pools = view.shapes[*shape].pools;
    const auto pool = std::ranges::find_if(
        pools, [&](PoolId each) { return plan.try_start_in(each, job, Reason::Order); });
    if (pool == pools.end()) return;
    note_start(view, {job, *shape, *pool});
  }
}

/// The earliest job that may go before the head, and where.
std::optional<Easy::Candidate> Easy::next_candidate(const View& view) const {
  std::optional<Candidate> best;
  for (const ShapeId shape : waiting_.active()) {
    const Shape& wanted = view.shapes[shape];
    for (const PoolId pool : wanted.pools) {
      if (view.cluster.free_gpus(pool) < wanted.gpus || blocked_.has(shape, pool)) continue;
      const auto window = reservation_.window(view, wanted, pool);
      const auto job =
          window ? waiting_.first_at_most(shape, *window) : std::optional{waiting_.first(shape)};
      if (job && (!best || *job < best->job)) best = Candidate{*job, shape, pool};
    }
  }
  return best;
}

/// Free GPUs and extra only shrink during a pass, so taking the earliest job that qualifies again
/// and again gives what one scan of the queue in order would.
void Easy::backfill(const View& view, Plan& plan, ShapeId head) {
  const JobId head_job = waiting_.first(head);
  waiting_.forget(head, head_job);  // the head itself is no candidate
  blocked_.clear();
  while (const auto next = next_candidate(view)) {
    const bool uses_extra = reservation_.outlasts(view, next->pool, next->job);
    const bool started = attempt(plan, [&] {
      return plan.try_start_in(next->pool, next->job, Reason::Backfill) &&
             (!uses_extra || reservation_.spares(view, plan, next->job));
    });
    if (started) {
      note_start(view, *next);
    } else {
      blocked_.add(next->shape, next->pool);  // its likes would be placed the same way
    }
  }
  waiting_.push(head, head_job, view.estimated_left(head_job));
}

void Easy::kill_overdue(const View& view, Plan& plan) {
  for (const RankedSet<EndKey>& ends : reservation_.ends().pools()) {
    while (!ends.empty() && ends.front().key.at <= view.now) {
      const JobId job = ends.front().key.job;
      reservation_.ends().remove(job);
      plan.kill(job);
    }
  }
}

void Easy::decide(const View& view, Plan& plan, Rng&) {
  reservation_.ends().refresh(view);
  if (overrun_ == Overrun::Kill) kill_overdue(view, plan);
  is_reserved_ = false;
  start_heads(view, plan);
  const auto head = head_shape();
  if (!head) return;
  const auto has_room = [&](ShapeId shape) { return plan.has_room(view.shapes[shape]); };
  if (std::ranges::none_of(waiting_.active(), has_room)) return;
  is_reserved_ = true;
  reservation_.make(view, plan, view.shapes[*head]);
  backfill(view, plan, *head);
}

std::optional<Time> Easy::next_wakeup(const View& view) {
  // What the starts of this pass really cost may have moved the promise.
  const bool moved = reservation_.ends().refresh(view);
  Time next = kNever;
  if (is_reserved_) next = moved ? view.now + Duration{1} : reservation_.next_change(view);
  if (overrun_ == Overrun::Kill) {
    for (const RankedSet<EndKey>& ends : reservation_.ends().pools()) {
      if (!ends.empty() && ends.front().key.at > view.now)
        next = std::min(next, ends.front().key.at);
    }
  }
  if (next == kNever) return std::nullopt;
  return next;
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const bool kill, params.flag("kill_overrun"));
  return std::make_unique<Easy>(kill ? Overrun::Kill : Overrun::RunOn);
}

}  // namespace
}  // namespace easy

PolicyEntry easy_entry() {
  return {.name = "easy",
          .summary = "FIFO with backfill around one reservation for the head",
          .params = {{"kill_overrun", "off", "kill a job that outlives its estimate"}},
          .make = easy::make};
}

}  // namespace berth
