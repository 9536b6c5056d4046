#include "trace/generator_labels.h"

#include <algorithm>
#include <array>
#include <cmath>

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

// A queue's users, some of whom submit much more than others (weights 1, 1/2, 1/3 …).
struct QueueUsers {
  std::vector<NameId> names;
  std::vector<double> sums;
};

std::vector<QueueUsers> make_users(Trace& trace, const LabelRequest& request,
                                   std::span<const int> queues) {
  std::vector<QueueUsers> users(static_cast<std::size_t>(std::ranges::max(queues)) + 1);
  std::vector<double> jobs(users.size());
  for (const DraftJob& draft : request.jobs) ++jobs[static_cast<std::size_t>(queues[draft.run])];
  int number = 0;
  for (std::size_t queue = 0; queue < users.size(); ++queue) {
    const double part = jobs[queue] / static_cast<double>(request.jobs.size());
    const int count = std::max(1, static_cast<int>(std::round(part * request.options.users)));
    double sum = 0;
    for (int rank = 1; rank <= count; ++rank) {
      users[queue].names.push_back(trace.names.intern(fmt::format("u{}", ++number)));
      users[queue].sums.push_back(sum += 1.0 / rank);
    }
  }
  return users;
}

void label_users(Trace& trace, const LabelRequest& request, std::span<const int> queues) {
  if (request.options.users == 0) return;
  const std::vector<QueueUsers> users = make_users(trace, request, queues);
  Rng rng = request.root.fork("users");
  std::vector<NameId> user_of_run;
  user_of_run.reserve(queues.size());
  for (const int queue : queues) {
    const QueueUsers& candidates = users[static_cast<std::size_t>(queue)];
    const double draw = rng.uniform() * candidates.sums.back();
    const auto place = std::ranges::upper_bound(candidates.sums, draw) - candidates.sums.begin();
    user_of_run.push_back(
        candidates.names[std::min(static_cast<std::size_t>(place), candidates.names.size() - 1)]);
  }
  for (DraftJob& draft : request.jobs) draft.job.user = user_of_run[draft.run];
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
