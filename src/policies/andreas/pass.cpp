// A pass: the problem of the moment is written down, solved, and its solution becomes the seats.
#include <algorithm>
#include <tuple>

#include "policies/andreas/andreas.h"

namespace berth {

namespace {
constexpr double kSecondsPerHour = 3600;
}  // namespace

void Andreas::reschedule(const View& view, Plan& plan, Rng& rng) {
  last_pass_ = view.now;
  has_changed_ = false;
  const std::uint64_t seed = rng.next();
  if (waiting_.empty() && seated_.empty()) return;
  list_nodes(view);
  list_jobs(view);
  take_over(view, plan, solve(seed));
}

/// By type; nodes that are up before those that are not, idle ones before others.
void Andreas::list_nodes(const View& view) {
  const ClusterState& state = view.cluster;
  const double boot = to_seconds(options_.boot) / kSecondsPerHour;
  const auto ready = [&](NodeId node) {
    if (state.power(node) == PowerState::On) return 0.0;
    if (state.power(node) == PowerState::Off) return boot;
    return std::max(0.0, to_seconds(booted_[node.value] - view.now) / kSecondsPerHour);
  };
  nodes_.clear();
  for (const NodeId node : fleet_.nodes()) {
    node_at_[node.value] = andreas::kNone;
    if (!state.has_failed(node)) nodes_.push_back(node);
  }
  std::ranges::sort(nodes_, {}, [&](NodeId node) {
    return std::tuple(fleet_.type_of(node), ready(node), users_[node.value] > 0, node);
  });
  instance_.nodes.clear();
  for (const NodeId node : nodes_) {
    node_at_[node.value] = static_cast<std::uint32_t>(instance_.nodes.size());
    instance_.nodes.push_back({fleet_.type_of(node), ready(node)});
  }
}

void Andreas::list_jobs(const View& view) {
  instance_.jobs.clear();
  for (const JobId job : seated_) add_job(view, job);
  std::size_t room = options_.window;
  for (auto rank = waiting_.begin(); rank != waiting_.end() && room > 0; ++rank, --room)
    add_job(view, rank->job);
  instance_.types = fleet_.types();
  instance_.rho = options_.rho;
  instance_.aging = options_.aging;
  instance_.period = to_seconds(options_.period) / kSecondsPerHour;
  instance_.restart = to_seconds(options_.restart) / kSecondsPerHour;
  instance_.boot = to_seconds(options_.boot) / kSecondsPerHour;
  instance_.prepare();
}

void Andreas::add_job(const View& view, JobId id) {
  const auto due = view.deadline(id);
  andreas::Job job{.id = id.value,
                   .choices = &fleet_.choices(view, id),
                   .work = hours_left(view, id),
                   .due = due ? to_seconds(*due - view.now) / kSecondsPerHour : andreas::kNoDueDate,
                   .weight = weight_of(view, id),
                   .submitted = to_seconds(view.jobs.submitted[id] - view.now) / kSecondsPerHour};
  if (has_seat(id)) {
    const Seat& own = seat(id);
    const auto is_lost = [&](const andreas::Share& share) {
      return node_at_[share.node] == andreas::kNone;
    };
    if (std::ranges::none_of(own.shares, is_lost)) {
      job.kept = own.choice;
      for (const andreas::Share& share : own.shares)
        job.home.push_back({node_at_[share.node], share.gpus});
    }
  }
  instance_.jobs.push_back(std::move(job));
}

/// The seats by job of the instance; those who wait have none.
std::vector<Andreas::Seat> Andreas::solve(std::uint64_t seed) const {
  const auto jobs = static_cast<std::int64_t>(instance_.jobs.size());
  andreas::Layout layout{instance_};
  const andreas::Solution solution = andreas::search(
      layout,
      {.iterations = std::clamp<std::int64_t>(options_.effort / jobs, 2, options_.iterations),
       .local = {.sweeps = options_.sweeps,
                 .budget = options_.effort,
                 .may_postpone = options_.wait_cheaper},
       .seed = seed,
       .best_share = options_.best_share});
  std::vector<Seat> seats(instance_.jobs.size());
  const auto named = [&](const andreas::Share& share) {
    return andreas::Share{nodes_[share.node].value, share.gpus};
  };
  for (const auto& [job, shares] : solution.gangs) {
    for (const andreas::Share& share : shares) seats[job].shares.push_back(named(share));
  }
  for (std::size_t job = 0; job < seats.size(); ++job) {
    const andreas::Spot& spot = solution.spots[job];
    seats[job].choice = spot.choice;
    if (spot.choice == andreas::kNone || !seats[job].shares.empty()) continue;
    const andreas::Choice& choice = (*instance_.jobs[job].choices)[spot.choice];
    seats[job].shares.push_back(named({spot.node, choice.gpus}));
  }
  return seats;
}

void Andreas::take_over(const View& view, Plan& plan, std::vector<Seat> seats) {
  left_.clear();
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const JobId job{instance_.jobs[i].id};
    const bool had_seat = has_seat(job);
    if (had_seat && seat(job) == seats[i]) continue;
    if (had_seat) release(plan, job);
    if (seats[i].choice != andreas::kNone) {
      if (!had_seat) waiting_.erase(*rank_[job.value]);
      set_seat(job, std::move(seats[i]));
    } else if (had_seat) {
      enqueue(view, job);
    }
  }
  std::ranges::sort(pending_);
}

void Andreas::release(Plan& plan, JobId job) {
  if (plan.holds(job)) {
    const auto slices = plan.slices(job);
    left_[job].assign(slices.begin(), slices.end());
    plan.preempt(job, Reason::Power);
  }
  leave_seat(job);
}

}  // namespace berth
