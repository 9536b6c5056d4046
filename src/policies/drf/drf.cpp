#include "policies/drf/drf.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include "policies/common/ranked_set.h"
#include "policies/kit/waiting_jobs.h"

namespace berth {
namespace drf {

namespace {
constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kScale = std::int64_t{1} << 60;
}  // namespace

/// Users and their weights (above zero); everybody else has weight 1.
using Weights = std::vector<std::pair<std::string, double>>;
using UserId = Id<struct UserTag>;

class Drf final : public Policy {
 public:
  explicit Drf(Weights weights) : weights_(std::move(weights)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "drf"; }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  struct Amounts {
    std::int64_t gpus = 0;
    std::int64_t cpus_milli = 0;
    std::int64_t memory_mib = 0;
  };
  struct User {
    std::string name;
    std::int64_t weight_ppm = kMillion;
    Amounts used;
    Int128 share = 0;               // dominant, over the weight
    std::optional<ShapeId> listed;  // in which order it stands, under `share`
  };
  struct Rank {
    Int128 share = 0;
    std::string_view name;
    UserId user;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };

  [[nodiscard]] UserId user_of(const View& view, JobId job);
  [[nodiscard]] Int128 share_of(const User& user) const;
  void unlist(UserId id);
  void list(const View& view, UserId id);
  void change_use(const View& view, UserId id, JobId job, std::int64_t sign);
  [[nodiscard]] std::optional<ShapeId> next_shape(const View& view, const Plan& plan) const;

  Weights weights_;
  Amounts capacity_;        // zero: not declared, so nobody's dominant resource
  std::deque<User> users_;  // by UserId; names stay where they are: Rank points at them
  std::map<NameId, UserId> ids_;
  WaitingJobs<UserId> waiting_;
  Column<ShapeId, RankedSet<Rank>> orders_;  // users whose next job has the shape
  std::vector<ShapeId> active_;              // shapes with users
  Column<JobId, bool> running_;
  BlockedSet<ShapeId> blocked_;  // scratch of a pass
};

void Drf::begin(const View& view) {
  for (const Node& node : view.cluster.cluster().nodes) {
    capacity_.gpus += node.gpus;
    capacity_.cpus_milli += node.cpus_milli;
    capacity_.memory_mib += node.memory_mib;
  }
  running_.resize(view.jobs.size());
}

UserId Drf::user_of(const View& view, JobId job) {
  const NameId name = view.request(job).user;
  const auto [entry, is_new] =
      ids_.try_emplace(name, UserId{static_cast<std::uint32_t>(users_.size())});
  if (is_new) {
    User& user = users_.emplace_back();
    user.name = view.text(name);
    const auto weight = std::ranges::find(weights_, user.name, &Weights::value_type::first);
    if (weight != weights_.end())
      user.weight_ppm = std::max<std::int64_t>(1, std::llround(weight->second * kMillion));
  }
  return entry->second;
}

Int128 Drf::share_of(const User& user) const {
  const auto part = [&](std::int64_t used, std::int64_t of) {
    return of == 0 ? Int128{0} : Int128{used} * kScale * kMillion / (Int128{of} * user.weight_ppm);
  };
  return std::max({part(user.used.gpus, capacity_.gpus),
                   part(user.used.cpus_milli, capacity_.cpus_milli),
                   part(user.used.memory_mib, capacity_.memory_mib)});
}

/// Before anything of the user changes: it is found in the order by its share and next job.
void Drf::unlist(UserId id) {
  User& user = users_[id.value];
  if (!user.listed) return;
  auto& order = orders_[*user.listed];
  order.erase({user.share, user.name, id});
  if (order.empty()) std::erase(active_, *user.listed);
  user.listed.reset();
}

/// Puts the user where its share and its next job belong; a user without a waiting job stands
/// nowhere.
void Drf::list(const View& view, UserId id) {
  User& user = users_[id.value];
  user.share = share_of(user);
  if (waiting_.empty(id)) return;
  user.listed = view.jobs.shape[waiting_.top(id).job];
  if (orders_.size() < view.shapes.size()) orders_.resize(view.shapes.size());  // new ones arrive
  auto& order = orders_[*user.listed];
  if (order.empty()) active_.push_back(*user.listed);
  order.insert({user.share, user.name, id}, 0);
}

/// By what the cluster counts for the gang, which rounds cores and memory up per device.
void Drf::change_use(const View& view, UserId id, JobId job, std::int64_t sign) {
  const Shape& shape = view.shape(job);
  Amounts& used = users_[id.value].used;
  used.gpus += sign * shape.gpus;
  used.cpus_milli += sign * shape.gpus * shape.cpus_milli_per_gpu;
  used.memory_mib += sign * shape.gpus * shape.memory_mib_per_gpu;
  running_[job] = sign > 0;
}

void Drf::on_arrival(const View& view, JobId job) {
  const UserId user = user_of(view, job);
  unlist(user);
  waiting_.push(user, job);
  list(view, user);
}

void Drf::on_departure(const View& view, JobId job) {
  const UserId user = user_of(view, job);
  unlist(user);
  waiting_.forget(user, job);  // a cancelled job may have been the next
  if (running_[job]) change_use(view, user, job, -1);
  list(view, user);
}

void Drf::on_requeue(const View& view, JobId job) {
  on_departure(view, job);
  on_arrival(view, job);
}

/// Of the users whose next job has room, the first by share and name; answers the shape of that
/// job.
std::optional<ShapeId> Drf::next_shape(const View& view, const Plan& plan) const {
  std::optional<ShapeId> best;
  for (const ShapeId shape : active_) {
    if (blocked_.has(shape) || !plan.has_room(view.shapes[shape])) continue;
    if (!best || orders_[shape].front().key < orders_[*best].front().key) best = shape;
  }
  return best;
}

void Drf::decide(const View& view, Plan& plan, Rng&) {
  blocked_.clear();
  while (const auto shape = next_shape(view, plan)) {
    const UserId user = orders_[*shape].front().key.user;
    const JobId job = waiting_.top(user).job;
    if (!plan.try_start(job)) {
      blocked_.add(*shape);  // all jobs of a shape are alike to the placement
      continue;
    }
    unlist(user);
    waiting_.pop(user);
    change_use(view, user, job, 1);
    list(view, user);
  }
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("weights"));
  Weights weights;
  for (const auto& [user, numbers] : list) {
    if (numbers.size() != 1 || numbers[0] < 1e-3 || numbers[0] > 1e6) {
      return params.wrong("weights", "must be USER:weight with a weight from 0.001 to 1000000");
    }
    weights.emplace_back(user, numbers[0]);
  }
  return std::make_unique<Drf>(std::move(weights));
}

}  // namespace
}  // namespace drf

PolicyEntry drf_entry() {
  return {.name = "drf",
          .summary = "the user with the smallest dominant share of GPUs, cores or memory first",
          .params = {{"weights", "",
                      "USER:weight, comma separated; a share is divided by it; others have 1"}},
          .make = drf::make};
}

}  // namespace berth
