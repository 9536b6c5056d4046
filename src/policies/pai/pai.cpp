#include "policies/pai/pai.h"

#include <algorithm>
#include <utility>

#include "placements/node_picker.h"
#include "policies/common/aged_queues.h"
#include "policies/kit/beliefs.h"
#include "policies/kit/pass.h"
#include "policies/pai/balance.h"
#include "policies/pai/reserve.h"

namespace berth {
namespace pai {

enum class Order : std::uint8_t { RunTime, GpuTime };
enum class Borrowers : std::uint8_t { Keep, GiveWay };
enum class Servers : std::uint8_t { ByPlacement, Balanced };  // outside the high-end type

struct Options {
  Order order = Order::RunTime;
  double aging = 5;  // predictions waited until a job goes first; 0: never
  Duration least_wait = std::chrono::hours{1};
  bool reserve = true;
  double high_speedup = 1.5;
  double high_use = 0.4;  // share of a device's compute, where speeds were not measured
  std::string high_type;  // empty: the fastest
  Borrowers borrowers = Borrowers::Keep;
  Duration high_wait = std::chrono::minutes{5};  // then borrowers give way
  Servers servers = Servers::ByPlacement;
};

class Pai final : public Policy {
 public:
  explicit Pai(Options options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "pai"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Profile, .preempts = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override { enqueue(view, job); }
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  static constexpr AgedQueues::LaneId kHighLane{0};
  static constexpr AgedQueues::LaneId kLowLane{1};

  void enqueue(const View& view, JobId job);
  [[nodiscard]] bool is_high(const View& view, JobId job);
  [[nodiscard]] bool uses_high_type(const View& view, JobId job) const;
  [[nodiscard]] bool needs_large_memory(const View& view, JobId job) const;
  [[nodiscard]] bool start(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool start_in(const View& view, Plan& plan, PoolId pool, JobId job);
  void note_stop(const View& view, JobId job);
  void take_back(const View& view, Plan& plan);

  Options options_;
  AgedQueues queues_;
  bool has_high_type_ = false;  // and others beside it
  PoolId high_{};
  Memo<KindId, bool> is_high_;
  Reserve reserve_;
  std::int64_t held_by_high_ = 0;          // high-end devices
  std::vector<JobId> borrowers_;           // in order of start
  std::vector<JobId> high_waiting_;        // in order of arrival
  Column<JobId, std::int32_t> high_gpus_;  // high-end devices it holds
};

void Pai::begin(const View& view) {
  high_gpus_.resize(view.jobs.size());
  const Cluster& cluster = view.cluster.cluster();
  const auto named = std::ranges::find(cluster.pools, options_.high_type, &DeviceType::name);
  const auto fastest = std::ranges::max_element(cluster.pools, {}, &DeviceType::speed);
  const auto high = named != cluster.pools.end() ? named : fastest;
  high_ = PoolId{static_cast<std::uint32_t>(high - cluster.pools.begin())};
  has_high_type_ = options_.reserve && cluster.pools.size() > 1;
}

// --- who needs the high-end type

/// Its memory fits no device of the other types.
bool Pai::needs_large_memory(const View& view, JobId job) const {
  const std::int32_t wanted = believed_memory_mib(view, job);
  const auto& pools = view.cluster.cluster().pools;
  if (wanted > pools[high_.value].memory_mib) return false;
  for (std::uint32_t i = 0; i < pools.size(); ++i) {
    const bool holds = pools[i].memory_mib == 0 || wanted <= pools[i].memory_mib;
    if (PoolId{i} != high_ && holds) return false;
  }
  return true;
}

bool Pai::uses_high_type(const View& view, JobId job) const {
  const ProfileId profile = view.jobs.profile[job];
  if (profile == ProfileSet::fallback()) return false;  // nothing is known of it
  if (needs_large_memory(view, job)) return true;
  const RateModel& believed = view.believed();
  if (!believed.effects().device) return false;  // types do not differ
  if (believed.profile(profile).speeds.empty())  // never measured on several types
    return believed.profile(profile).gpu_utilisation > options_.high_use;
  double weakest = believed.speed(profile, high_);
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    weakest = std::min(weakest, believed.speed(profile, PoolId{i}));
  return believed.speed(profile, high_) >= options_.high_speedup * weakest;
}

bool Pai::is_high(const View& view, JobId job) {
  return has_high_type_ &&
         is_high_.of(view.jobs.kind[job], [&] { return uses_high_type(view, job); });
}

// --- who waits, who holds

void Pai::enqueue(const View& view, JobId job) {
  const Duration predicted = view.estimate(job);
  const bool high = is_high(view, job);
  const double patience =
      std::max(to_seconds(options_.least_wait), options_.aging * to_seconds(predicted));
  const Int128 size = options_.order == Order::GpuTime ? std::max(1, view.gpus(job)) : 1;
  queues_.push(job, {.lane = high ? kHighLane : kLowLane,
                     .shape = view.jobs.shape[job],
                     .key = Int128{predicted.count()} * size,
                     .patient_until = options_.aging > 0 && patience < kMaxInputSeconds
                                          ? view.now + seconds_to_duration(patience)
                                          : kNever});
  if (high) high_waiting_.push_back(job);
}

void Pai::note_stop(const View& view, JobId job) {
  if (is_high(view, job)) held_by_high_ -= high_gpus_[job];
  high_gpus_[job] = 0;
  std::erase(borrowers_, job);
}

void Pai::on_departure(const View& view, JobId job) {
  queues_.forget(job);
  std::erase(high_waiting_, job);
  note_stop(view, job);
}

void Pai::on_requeue(const View& view, JobId job) {
  note_stop(view, job);
  enqueue(view, job);
}

// --- starting

/// By the run's placement, or on the server where cores and GPUs stay balanced if the whole job
/// fits on one.
bool Pai::start_in(const View& view, Plan& plan, PoolId pool, JobId job) {
  const Shape& shape = view.shape(job);
  const bool balances =
      options_.servers == Servers::Balanced && shape.gpus > 0 && !shape.is_fraction() &&
      plan.cluster().mode() == ClusterState::Mode::Devices && !(has_high_type_ && pool == high_);
  if (balances) {
    if (const auto node = most_balanced(plan.cluster(), shape, pool)) {
      const Slice slice = slice_of(plan.cluster(), *node, shape.gpus);
      return plan.try_start_on(job, pool, {&slice, 1}, Reason::Balance);
    }
  }
  return plan.try_start_in(pool, job);
}

bool Pai::start(const View& view, Plan& plan, JobId job) {
  if (!has_high_type_ && options_.servers == Servers::ByPlacement) return plan.try_start(job);
  const bool high = is_high(view, job);
  const Shape& shape = view.shape(job);
  const auto try_in = [&](PoolId pool) {
    if (!start_in(view, plan, pool, job)) return false;
    if (!has_high_type_ || pool != high_) return true;
    high_gpus_[job] = shape.gpus;
    if (high) {
      held_by_high_ += shape.gpus;
    } else {
      borrowers_.push_back(job);
    }
    return true;
  };
  if (!has_high_type_) return std::ranges::any_of(shape.pools, try_in);
  const bool accepts_high = std::ranges::find(shape.pools, high_) != shape.pools.end();
  if (high && accepts_high && try_in(high_)) return true;
  if (std::ranges::any_of(shape.pools, [&](PoolId pool) { return pool != high_ && try_in(pool); }))
    return true;
  if (high || !accepts_high) return false;
  const bool insists = shape.pools.size() == 1;  // it asked for the type: that is no borrowing
  return (insists || may_borrow(plan.cluster().free_gpus(high_), reserve_.wanted(), held_by_high_,
                                shape.gpus)) &&
         try_in(high_);
}

/// Youngest borrowers first, until the job that has waited longest of those who need the devices
/// has them; nobody if that is not enough.
void Pai::take_back(const View& view, Plan& plan) {
  std::erase_if(high_waiting_, [&](JobId job) { return plan.holds(job); });
  if (high_waiting_.empty()) return;
  const JobId job = high_waiting_.front();
  if (view.now - view.jobs.submitted[job] < options_.high_wait) return;
  std::vector<JobId> stopped;
  const bool started = attempt(plan, [&] {
    return std::ranges::any_of(borrowers_.rbegin(), borrowers_.rend(), [&](JobId borrower) {
      plan.preempt(borrower, Reason::Guarantee);
      stopped.push_back(borrower);
      return start(view, plan, job);
    });
  });
  if (!started) return;
  queues_.forget(job);
  std::erase(high_waiting_, job);
  for (const JobId victim : stopped) {
    note_stop(view, victim);
    enqueue(view, victim);
  }
}

void Pai::decide(const View& view, Plan& plan, Rng&) {
  reserve_.note(view.now, held_by_high_);
  queues_.promote(view.now);
  queues_.pass(view, plan, PassRule::Skip, [&](JobId job) { return start(view, plan, job); });
  if (options_.borrowers == Borrowers::GiveWay && !borrowers_.empty()) take_back(view, plan);
  std::erase_if(high_waiting_, [&](JobId job) { return plan.holds(job); });
}

/// A job runs out of patience, or borrowers have to give way to one that needs their devices.
std::optional<Time> Pai::next_wakeup(const View& view) {
  Time next = queues_.next_promotion().value_or(kNever);
  if (options_.borrowers == Borrowers::GiveWay && !high_waiting_.empty()) {
    const Time due = view.jobs.submitted[high_waiting_.front()] + options_.high_wait;
    if (due > view.now) next = std::min(next, due);
  }
  if (next == kNever) return std::nullopt;
  return next;
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Options options;
  BERTH_TRY(const bool gpu_time, params.flag("gpu_time"));
  options.order = gpu_time ? Order::GpuTime : Order::RunTime;
  BERTH_TRY(options.aging, params.number("aging", 0, 1e6));
  BERTH_TRY(options.least_wait, params.duration("least_wait"));
  BERTH_TRY(options.reserve, params.flag("reserve"));
  BERTH_TRY(options.high_speedup, params.number("high_speedup", 1, 1000));
  BERTH_TRY(options.high_use, params.number("high_use", 0, 1));
  options.high_type = params.text("high_type");
  BERTH_TRY(const bool give_way, params.flag("preempt_borrowers"));
  options.borrowers = give_way ? Borrowers::GiveWay : Borrowers::Keep;
  BERTH_TRY(options.high_wait, params.duration("high_wait"));
  BERTH_TRY(const bool balance, params.flag("balance"));
  options.servers = balance ? Servers::Balanced : Servers::ByPlacement;
  return std::make_unique<Pai>(std::move(options));
}

}  // namespace
}  // namespace pai

PolicyEntry pai_entry() {
  return {
      .name = "pai",
      .summary =
          "shortest predicted run time first; high-end GPUs kept for jobs that use them (PAI)",
      .params =
          {{"gpu_time", "off", "on: order by predicted run time times GPUs"},
           {"aging", "5", "a job that has waited so many predictions goes first; 0: never"},
           {"least_wait", "1h", "and at least so long"},
           {"reserve", "on", "keep devices of the high-end type for jobs that need them"},
           {"high_type", "", "the high-end type; empty: the fastest"},
           {"high_speedup", "1.5",
            "a job needs it if it is so many times faster there than on the weakest"},
           {"high_use", "0.4",
            "where that was not measured: if it uses more than this share of a device's compute"},
           {"preempt_borrowers", "off",
            "others on high-end devices give way to a job that needs them"},
           {"high_wait", "5m", "once it has waited so long"},
           {"balance", "off",
            "on: outside the high-end type a job goes to the server whose cores and GPUs it loads "
            "least"}},
      .make = pai::make,
      .estimator = "pai"};
}

}  // namespace berth
