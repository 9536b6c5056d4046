#include "policies/drf/drf.h"

#include <algorithm>
#include <cmath>

namespace berth {

namespace {
constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kScale = std::int64_t{1} << 60;
}  // namespace

void Drf::begin(const View& view) {
  for (const Node& node : view.cluster.cluster().nodes) {
    capacity_.gpus += node.gpus;
    capacity_.cpus_milli += node.cpus_milli;
    capacity_.memory_mib += node.memory_mib;
  }
  running_.resize(view.jobs.size());
}

Drf::UserIndex Drf::user_of(const View& view, JobId job) {
  const NameId name = view.request(job).user;
  const auto [entry, is_new] = index_.try_emplace(name, static_cast<UserIndex>(users_.size()));
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

void Drf::unlist(UserIndex at) {
  User& user = users_[at];
  if (!user.listed) return;
  auto& order = orders_[user.listed->value];
  order.erase({user.share, user.name, at});
  if (order.empty()) std::erase(active_, *user.listed);
  user.listed.reset();
}

/// Puts the user where its share and its next job say; a user without a waiting job stands nowhere.
void Drf::list(const View& view, UserIndex at) {
  User& user = users_[at];
  user.share = share_of(user);
  user.waiting.drop_over(view.jobs);
  if (user.waiting.empty()) return;
  user.listed = view.jobs.shape[user.waiting.top()];
  if (orders_.size() < view.shapes.size()) orders_.resize(view.shapes.size());  // new ones arrive
  auto& order = orders_[user.listed->value];
  if (order.empty()) active_.push_back(*user.listed);
  order.insert({user.share, user.name, at}, 0);
}

/// By what the cluster books for the gang, which rounds cores and memory up per device.
void Drf::change_use(const View& view, UserIndex at, JobId job, std::int64_t sign) {
  const Shape& shape = view.shape(job);
  Amounts& used = users_[at].used;
  used.gpus += sign * shape.gpus;
  used.cpus_milli += sign * shape.gpus * shape.cpus_milli_per_gpu;
  used.memory_mib += sign * shape.gpus * shape.memory_mib_per_gpu;
  running_[job.value] = sign > 0;
}

void Drf::on_arrival(const View& view, JobId job) {
  const UserIndex at = user_of(view, job);
  unlist(at);
  users_[at].waiting.push(job);
  list(view, at);
}

void Drf::on_departure(const View& view, JobId job) {
  const UserIndex at = user_of(view, job);
  unlist(at);
  if (running_[job.value]) change_use(view, at, job, -1);
  list(view, at);  // a cancelled job may have been the next
}

void Drf::on_requeue(const View& view, JobId job) {
  on_departure(view, job);
  on_arrival(view, job);
}

/// Of the users whose next job has room, the first by share and name; told by the shape of that
/// job.
std::optional<ShapeId> Drf::next_shape(const View& view, const Plan& plan) const {
  std::optional<ShapeId> best;
  for (const ShapeId shape : active_) {
    if (blocked_[shape.value] || !plan.has_room(view.shapes[shape])) continue;
    if (!best || orders_[shape.value].front().key < orders_[best->value].front().key) best = shape;
  }
  return best;
}

void Drf::decide(const View& view, Plan& plan, Rng&) {
  blocked_.assign(view.shapes.size(), false);
  while (const auto shape = next_shape(view, plan)) {
    const UserIndex at = orders_[shape->value].front().key.user;
    const JobId job = users_[at].waiting.top();
    if (!plan.try_start(job)) {
      blocked_[shape->value] = true;  // all jobs of a shape are alike to the placement
      continue;
    }
    unlist(at);
    users_[at].waiting.pop(view.jobs);
    change_use(view, at, job, 1);
    list(view, at);
  }
}

}  // namespace berth

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("weights"));
  Drf::Weights weights;
  for (const auto& [user, numbers] : list) {
    if (numbers.size() != 1 || numbers[0] < 1e-3 || numbers[0] > 1e6) {
      return params.wrong("weights", "must be USER:weight with a weight from 0.001 to 1000000");
    }
    weights.emplace_back(user, numbers[0]);
  }
  return std::make_unique<Drf>(std::move(weights));
}

}  // namespace

PolicyEntry drf_entry() {
  return {.name = "drf",
          .summary = "the user with the smallest dominant share of GPUs, cores or memory first",
          .params = {{"weights", "",
                      "USER:weight, comma separated; a share is divided by it; others have 1"}},
          .make = make};
}

}  // namespace berth
