#include "policies/list_order/list_order.h"

#include <utility>

#include "policies/common/pass_rule.h"
#include "policies/kit/waiting_jobs.h"

namespace berth {
namespace list_order {

enum class Key : std::uint8_t { Arrival, RunTime, Gpus };

class ListOrder final : public Policy {
 public:
  ListOrder(std::string name, Key key, PassRule rule)
      : name_(std::move(name)), key_(key), rule_(rule) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = key_ == Key::RunTime ? Need::RunTime : Need::Nothing};
  }
  void on_arrival(const View& view, JobId job) override {
    waiting_.push(view.jobs.shape[job], {key_of(view, job), job});
  }
  void on_departure(const View& view, JobId job) override {
    waiting_.forget(view.jobs.shape[job], job);
  }
  void on_requeue(const View& view, JobId job) override { on_arrival(view, job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  [[nodiscard]] Int128 key_of(const View& view, JobId job) const;

  std::string name_;
  Key key_;
  PassRule rule_;
  WaitingByShape waiting_;
};

Int128 ListOrder::key_of(const View& view, JobId job) const {
  switch (key_) {
    case Key::Arrival: return 0;  // the order of JobIds is the order of arrival
    case Key::RunTime: return view.estimated_left(job).count();
    case Key::Gpus: return view.gpus(job);
  }
  return 0;
}

void ListOrder::decide(const View& view, Plan& plan, Rng&) {
  // Strict looks at the head of the whole queue whether it fits or not; skip only at heads that
  // may.
  const bool is_strict = rule_ == PassRule::Strict;
  waiting_.pass([&](ShapeId shape) { return is_strict || plan.has_room(view.shapes[shape]); },
                [&](JobId job) {
                  if (plan.try_start(job)) return Tried::Started;
                  return is_strict ? Tried::Enough : Tried::NoPlace;
                });
}

namespace {

template <Key key>
Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  BERTH_TRY(const PassRule rule, pass_rule(params));
  return std::make_unique<ListOrder>(entry.name, key, rule);
}

}  // namespace
}  // namespace list_order

std::vector<PolicyEntry> list_order_entries() {
  using list_order::Key;
  return {{.name = "fifo",
           .summary = "first come, first served; the first job that does not fit blocks the rest",
           .params = {pass_param("strict")},
           .make = list_order::make<Key::Arrival>},
          {.name = "fifo-skip",
           .summary = "arrival order, but any job that fits may start",
           .params = {pass_param("skip")},
           .make = list_order::make<Key::Arrival>},
          {.name = "sjf",
           .summary = "shortest estimated run time first",
           .params = {pass_param("skip")},
           .make = list_order::make<Key::RunTime>},
          {.name = "smallest",
           .summary = "fewest GPUs first",
           .params = {pass_param("skip")},
           .make = list_order::make<Key::Gpus>}};
}

}  // namespace berth
