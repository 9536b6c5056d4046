// What a generated job is called: outcome, queue, user, model, deadline. Queue, user and model
// belong to the burst, because people submit bursts; outcome and deadline to the job.

#include "trace/generator_labels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>

#include <fmt/format.h>

#include "base/portable_math.h"

namespace berth {

namespace {

void label_states(const LabelRequest& request) {
  const StateLaw& law = request.source.states;
  if (!law.is_known) return;
  double mean = 0;
  for (const DraftJob& draft : request.jobs)
    mean += draft.job.gpus * to_seconds(draft.job.duration);
  mean /= static_cast<double>(request.jobs.size());
  Rng rng = request.root.fork("states");
  for (DraftJob& draft : request.jobs) {
    // Long jobs end otherwise than short ones: the odds depend on GPU time relative to the mean.
    const double relative = portable_log(draft.job.gpus * to_seconds(draft.job.duration) / mean);
    const std::array odds{1.0, portable_exp(law.killed_offset + law.killed_slope * relative),
                          portable_exp(law.failed_offset + law.failed_slope * relative)};
    constexpr std::array kStates{TraceStatus::Completed, TraceStatus::Killed, TraceStatus::Failed};
    draft.job.status = kStates[rng.weighted(odds)];
  }
}

// Queue numbers of the runs: the source's virtual clusters, or drawn where it does not tell.
std::vector<int> queues_of_runs(const LabelRequest& request) {
  std::vector<int> queues(request.cluster_of_run.begin(), request.cluster_of_run.end());
  if (request.source.queue_shares.empty()) return queues;
  Rng rng = request.root.fork("queues");
  for (int& queue : queues) queue = static_cast<int>(rng.weighted(request.source.queue_shares));
  return queues;
}

void label_queues(Trace& trace, const LabelRequest& request, std::span<const int> queues) {
  const auto [least, most] = std::ranges::minmax(queues);
  if (request.source.queue_shares.empty() && least == most) return;  // one queue is none
  std::vector<NameId> names;
  for (int queue = 0; queue <= most; ++queue)
    names.push_back(trace.names.intern(fmt::format("vc{}", queue + 1)));
  for (DraftJob& draft : request.jobs)
    draft.job.queue = names[static_cast<std::size_t>(queues[draft.run])];
}

// How many users each queue has: in proportion to its jobs, at least one, at most as many as it has
// bursts (a burst has one user), and all together as many as were asked for. With fewer users than
// queues in use each such queue still counts one: queues then share them.
std::vector<int> users_per_queue(const LabelRequest& request, std::span<const int> queues,
                                 std::size_t queue_count) {
  std::vector<double> jobs(queue_count);
  std::vector<int> runs(queue_count);
  for (const DraftJob& draft : request.jobs) ++jobs[static_cast<std::size_t>(queues[draft.run])];
  for (const int queue : queues) ++runs[static_cast<std::size_t>(queue)];
  std::vector<double> ideal(queue_count);
  std::vector<int> counts(queue_count);
  int sum = 0;
  for (std::size_t queue = 0; queue < queue_count; ++queue) {
    ideal[queue] = jobs[queue] / static_cast<double>(request.jobs.size()) * request.options.users;
    counts[queue] = std::clamp(static_cast<int>(std::round(ideal[queue])), std::min(1, runs[queue]),
                               runs[queue]);
    sum += counts[queue];
  }
  // Rounding and the bounds leave a difference. Each missing or extra user goes to the queue that
  // is then nearest to its share.
  for (const int step : {1, -1}) {
    while ((request.options.users - sum) * step > 0) {
      std::size_t best = queue_count;
      for (std::size_t queue = 0; queue < queue_count; ++queue) {
        const int next = counts[queue] + step;
        if (next < 1 || next > runs[queue]) continue;
        const auto lack = [&](std::size_t q) { return (ideal[q] - counts[q]) * step; };
        if (best == queue_count || lack(queue) > lack(best)) best = queue;
      }
      if (best == queue_count) break;
      counts[best] += step;
      sum += step;
    }
  }
  return counts;
}

// A queue's users, some of whom submit much more than others (weights 1, 1/2, 1/3 …).
struct QueueUsers {
  std::vector<NameId> names;
  std::vector<double> sums;
};

std::vector<QueueUsers> make_users(Trace& trace, const LabelRequest& request,
                                   std::span<const int> queues) {
  std::vector<QueueUsers> users(static_cast<std::size_t>(std::ranges::max(queues)) + 1);
  const std::vector<int> counts = users_per_queue(request, queues, users.size());
  int number = 0;
  for (std::size_t queue = 0; queue < users.size(); ++queue) {
    double sum = 0;
    for (int rank = 1; rank <= counts[queue]; ++rank) {
      // Numbers go on from queue to queue and start again when users run out: then queues share
      // them.
      const int user = number++ % request.options.users + 1;
      users[queue].names.push_back(trace.names.intern(fmt::format("u{}", user)));
      users[queue].sums.push_back(sum += 1.0 / rank);
    }
  }
  return users;
}

// Chance may leave a user without a burst; the user with most bursts of the queue gives one up.
void give_everybody_a_run(std::span<const int> queues, std::span<const QueueUsers> users,
                          std::span<std::size_t> place_of_run) {
  std::vector<std::vector<std::size_t>> runs_of_queue(users.size());
  for (std::size_t run = 0; run < queues.size(); ++run)
    runs_of_queue[static_cast<std::size_t>(queues[run])].push_back(run);
  for (std::size_t queue = 0; queue < users.size(); ++queue) {
    std::vector<std::vector<std::size_t>> runs(users[queue].names.size());
    for (const std::size_t run : runs_of_queue[queue]) runs[place_of_run[run]].push_back(run);
    std::priority_queue<std::pair<std::size_t, std::size_t>> richest;  // runs, place
    for (std::size_t place = 0; place < runs.size(); ++place)
      richest.emplace(runs[place].size(), place);
    for (std::size_t place = 0; place < runs.size(); ++place) {
      if (!runs[place].empty()) continue;
      const std::size_t giver = richest.top().second;
      richest.pop();
      place_of_run[runs[giver].back()] = place;
      runs[giver].pop_back();
      richest.emplace(runs[giver].size(), giver);
    }
  }
}

void label_users(Trace& trace, const LabelRequest& request, std::span<const int> queues) {
  if (request.options.users == 0) return;
  const std::vector<QueueUsers> users = make_users(trace, request, queues);
  Rng rng = request.root.fork("users");
  std::vector<std::size_t> place_of_run;
  place_of_run.reserve(queues.size());
  for (const int queue : queues) {
    const QueueUsers& candidates = users[static_cast<std::size_t>(queue)];
    const double draw = rng.uniform() * candidates.sums.back();
    const auto place = std::ranges::upper_bound(candidates.sums, draw) - candidates.sums.begin();
    place_of_run.push_back(std::min(static_cast<std::size_t>(place), candidates.names.size() - 1));
  }
  give_everybody_a_run(queues, users, place_of_run);
  for (DraftJob& draft : request.jobs) {
    const QueueUsers& candidates = users[static_cast<std::size_t>(queues[draft.run])];
    draft.job.user = candidates.names[place_of_run[draft.run]];
  }
}

void label_models(Trace& trace, const LabelRequest& request) {
  if (!request.options.models) return;
  constexpr std::array<std::string_view, 12> kModels{
      "resnet18", "resnet50", "vgg16",       "inception3", "transformer", "lstm",
      "ncf",      "yolov3",   "deepspeech2", "bert",       "gpt2",        "vit"};
  constexpr std::array<std::string_view, 4> kLargeModels{"resnet50", "bert", "gpt2",
                                                         "vit"};  // above 8 GPUs
  Rng rng = request.root.fork("models");
  std::vector<NameId> model_of_run(request.cluster_of_run.size());
  for (DraftJob& draft : request.jobs) {
    NameId& model = model_of_run[draft.run];
    if (model == NameId{}) {
      // The same number of draws for every job keeps the models of small jobs when large ones
      // change.
      const std::uint64_t draw = rng.next() >> 1U;  // one draw whatever the size
      model = trace.names.intern(draft.job.gpus > 8 ? kLargeModels[draw % kLargeModels.size()]
                                                    : kModels[draw % kModels.size()]);
    }
    draft.job.model = model;
  }
}

void label_deadlines(const LabelRequest& request) {
  if (request.options.deadlines <= 0) return;
  Rng rng = request.root.fork("deadlines");
  for (DraftJob& draft : request.jobs) {
    const bool has_deadline = rng.uniform() < request.options.deadlines;
    // Drawn also for jobs without a deadline, so that another share of deadlines does not move the
    // draws of the jobs behind.
    const double slack = 1.05 + 1.95 * rng.uniform();
    if (!has_deadline) continue;
    draft.job.deadline =
        draft.job.submit + seconds_to_duration(std::ceil(slack * to_seconds(draft.job.duration)));
  }
}

}  // namespace

void label_jobs(Trace& trace, const LabelRequest& request) {
  const std::vector<int> queues = queues_of_runs(request);
  label_states(request);
  label_queues(trace, request, queues);
  label_users(trace, request, queues);
  label_models(trace, request);
  label_deadlines(request);
}

}  // namespace berth
