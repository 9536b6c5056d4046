// The primal-dual batch step.
#include <algorithm>
#include <limits>
#include <tuple>

#include "base/portable_math.h"
#include "policies/aonline/batch.h"

namespace berth::aonline {

namespace {

std::int64_t amount_of(const Configuration& way, std::size_t resource, const Room& room) {
  if (resource == room.helper_resource()) return way.helpers;
  return resource == way.type ? way.gpus : 0;
}

/// Prices of every resource and slot of a window, as sums up to a slot.
class WindowPrices {
 public:
  WindowPrices(const Room& room, const std::vector<BatchJob>& jobs) : capacity_(room) {
    for (std::size_t r = 0; r < room.resources(); ++r) rows_.push_back(row_for(r, jobs));
    for (std::size_t r = 0; r < rows_.size(); ++r) refresh(r, room);
  }
  /// Of the whole stretch.
  [[nodiscard]] double cost(const Configuration& way, std::int64_t start) const {
    const auto sum = [&](std::size_t resource) {
      const auto& upto = rows_[resource].upto;
      return upto[static_cast<std::size_t>(start + way.slots)] -
             upto[static_cast<std::size_t>(start)];
    };
    return static_cast<double>(way.gpus) * sum(way.type) +
           static_cast<double>(way.helpers) * sum(rows_.size() - 1);
  }
  void refresh(const Configuration& way, const Room& room) {
    refresh(way.type, room);
    if (way.helpers > 0) refresh(rows_.size() - 1, room);
  }

 private:
  struct Row {
    double low = 0;
    double growth = 0;         // ln(U / L)
    std::vector<double> upto;  // sum of the prices of the slots before
  };

  [[nodiscard]] Row row_for(std::size_t resource, const std::vector<BatchJob>& jobs) const {
    double high = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const BatchJob& job : jobs) {
      std::int64_t smallest = 0;  // resource-time of its smallest configuration here
      for (const Configuration& way : job.ways) {
        const std::int64_t taken = amount_of(way, resource, capacity_) * way.slots;
        if (taken > 0 && way.slots <= capacity_.slots())
          smallest = smallest == 0 ? taken : std::min(smallest, taken);
      }
      if (smallest == 0) continue;
      high = std::max(high, job.weight / static_cast<double>(smallest));
      least = std::min(least, job.weight);
    }
    double total = 0;
    for (std::int64_t slot = 0; slot < capacity_.slots(); ++slot)
      total += static_cast<double>(std::max<std::int64_t>(0, capacity_.free(resource, slot)));
    Row row;
    if (high <= 0 || total <= 0) return row;
    row.low = least / (2 * total);
    row.growth = high > row.low ? portable_log(high / row.low) : 0;
    return row;
  }
  void refresh(std::size_t resource, const Room& room) {
    Row& row = rows_[resource];
    row.upto.assign(1, 0.0);
    for (std::int64_t slot = 0; slot < room.slots(); ++slot) {
      const std::int64_t had = capacity_.free(resource, slot);
      const std::int64_t taken = had - room.free(resource, slot);
      const double share = had > 0 ? static_cast<double>(taken) / static_cast<double>(had) : 1.0;
      row.upto.push_back(row.upto.back() + row.low * portable_exp(row.growth * share));
    }
  }

  Room capacity_;  // of the window before anything is taken
  std::vector<Row> rows_;
};

struct Place {
  Choice choice;
  double cost = 0;
  std::int64_t finish = 0;
  std::int64_t gpus = 0;
  [[nodiscard]] auto key() const noexcept { return std::tuple(cost, finish, gpus, choice.way); }
};

/// The cheapest start of every configuration that fits; ties to the earlier finish, then to fewer
/// GPUs.
std::optional<Place> cheapest_place(const BatchJob& job, const Room& room,
                                    const WindowPrices& prices) {
  std::optional<Place> best;
  for (std::size_t w = 0; w < job.ways.size(); ++w) {
    const Configuration& way = job.ways[w];
    room.for_each_start(way, [&](std::int64_t start) {
      const Place place{{w, start}, prices.cost(way, start), start + way.slots, way.gpus};
      if (!best || place.key() < best->key()) best = place;
    });
  }
  return best;
}

/// Where it is done first; ties to fewer GPUs.
std::optional<Choice> earliest_place(const BatchJob& job, const Room& room) {
  std::optional<Place> best;
  for (std::size_t w = 0; w < job.ways.size(); ++w) {
    const auto start = room.earliest(job.ways[w], 0);
    if (!start) continue;
    const Place place{{w, *start}, 0, *start + job.ways[w].slots, job.ways[w].gpus};
    if (!best || place.key() < best->key()) best = place;
  }
  if (!best) return std::nullopt;
  return best->choice;
}

/// Jobs that some configuration of fits the window at all, by weight per GPU-slot.
std::vector<std::size_t> by_density(const std::vector<BatchJob>& jobs, std::int64_t window) {
  std::vector<std::size_t> order;
  std::vector<double> density(jobs.size(), 0.0);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const Configuration& way : jobs[i].ways) {
      if (way.slots > window) continue;
      density[i] = std::max(density[i], jobs[i].weight / static_cast<double>(way.gpu_slots()));
    }
    if (density[i] > 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(-density[i], i); });
  return order;
}

/// Shifts starts left while anything moves: a completion time never grows.
void compact(BatchPlan& plan, const std::vector<BatchJob>& jobs, Room& room) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (plan.choices[i]) order.push_back(i);
  }
  for (bool moved = true; moved;) {
    moved = false;
    std::ranges::sort(order, {},
                      [&](std::size_t i) { return std::tuple(plan.choices[i]->start, i); });
    for (const std::size_t i : order) {
      Choice& choice = *plan.choices[i];
      const Configuration& way = jobs[i].ways[choice.way];
      room.give(way, choice.start);
      const std::int64_t start = room.earliest(way, 0).value_or(choice.start);
      moved = moved || start < choice.start;
      choice.start = std::min(choice.start, start);
      room.take(way, choice.start);
    }
  }
}

/// Whoever still fits, as early as it goes. True if anybody did.
bool fill(BatchPlan& plan, const std::vector<BatchJob>& jobs, const std::vector<std::size_t>& order,
          Room& room) {
  bool any = false;
  for (const std::size_t i : order) {
    if (plan.choices[i]) continue;
    plan.choices[i] = earliest_place(jobs[i], room);
    if (!plan.choices[i]) continue;
    room.take(jobs[i].ways[plan.choices[i]->way], plan.choices[i]->start);
    any = true;
  }
  return any;
}

void add_up(BatchPlan& plan, const std::vector<BatchJob>& jobs) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!plan.choices[i]) continue;
    plan.weight += jobs[i].weight;
    plan.completions += plan.choices[i]->start + jobs[i].ways[plan.choices[i]->way].slots;
  }
}

}  // namespace

BatchPlan plan_by_prices(Room room, const std::vector<BatchJob>& jobs) {
  BatchPlan plan;
  plan.choices.resize(jobs.size());
  WindowPrices prices{room, jobs};
  const std::vector<std::size_t> order = by_density(jobs, room.slots());
  for (const std::size_t i : order) {
    const auto place = cheapest_place(jobs[i], room, prices);
    if (!place || jobs[i].weight <= place->cost) continue;
    plan.choices[i] = place->choice;
    const Configuration& way = jobs[i].ways[place->choice.way];
    room.take(way, place->choice.start);
    prices.refresh(way, room);
  }
  // Moving left may open room again, so that the last pass finds nobody left out who would fit.
  do {
    compact(plan, jobs, room);
  } while (fill(plan, jobs, order, room));
  add_up(plan, jobs);
  return plan;
}

BatchPlan plan_batch(const Room& room, const std::vector<BatchJob>& jobs,
                     const BatchOptions& options) {
  BatchPlan plan = plan_by_prices(room, jobs);
  if (jobs.size() > options.exact_jobs) return plan;
  return plan_exactly(room, jobs, std::move(plan), options.steps);
}

}  // namespace berth::aonline
