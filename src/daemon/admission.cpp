#include "daemon/admission.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/split.h"
#include "model/job_spec_json.h"
#include "placements/placements.h"

namespace berth {

namespace {

constexpr std::size_t kMostShapes = 4096;
constexpr std::size_t kMostDependencies = 1'000'000;
constexpr std::size_t kMostNames = 65'536;

void add_message(Fault& fault, std::string message) {
  fault.messages.push_back(std::move(message));
}

/// It asks for another place than before: whether there is one has to be looked up.
bool needs_other_devices(const JobSpec& before, const JobSpec& spec) {
  const auto place = [](const JobSpec& s) {
    return std::tie(s.gpus, s.gpus_min, s.gpus_max, s.gpu_milli, s.gpu_type, s.gpu_memory_mib,
                    s.cpus, s.memory_mib, s.nodes, s.exclude, s.exclusive);
  };
  return place(before) != place(spec);
}

std::string names_of(const std::vector<QueueOptions>& queues) {
  std::string names;
  for (const QueueOptions& queue : queues) names += (names.empty() ? "" : ", ") + queue.name;
  return names;
}

}  // namespace

Admission::Admission(const Cluster& cluster, const std::string& placement, AdmissionOptions options,
                     std::function<std::size_t(JobNumber)> exists)
    : cluster_(cluster),
      options_(std::move(options)),
      exists_(std::move(exists)),
      placement_(*make_placement(placement)),
      empty_(cluster, placement_->mode()) {
  if (placement_->places_fractions()) empty_.track_devices();
  if (placement_->wants_topology()) empty_.track_topology();
  forget_shapes();
}

Answer<void> Admission::admit(const Caller& caller, JobSpec& spec,
                              std::vector<std::string>& notes) {
  return check(caller, nullptr, spec, notes);
}

Answer<void> Admission::admit_change(const Caller& caller, const JobSpec& before, JobSpec& spec,
                                     std::vector<std::string>& notes) {
  return check(caller, &before, spec, notes);
}

Answer<void> Admission::check(const Caller& caller, const JobSpec* before, JobSpec& spec,
                              std::vector<std::string>& notes) {
  if (before == nullptr && !options_.closed.empty())
    return tl::unexpected<Fault>(
        Fault{.kind = FaultKind::Impossible, .messages = {options_.closed}});
  Fault bad{.kind = FaultKind::BadRequest, .messages = {}};
  check_sense(caller, before, spec, bad);
  check_queue(caller, before, spec, notes, bad);
  if (!bad.messages.empty()) return tl::unexpected<Fault>(std::move(bad));
  const bool needs_other = before == nullptr || needs_other_devices(*before, spec);
  if (spec.gpu_milli < 1000 && !placement_->places_fractions())
    notes.push_back(fmt::format("share: placement {} gives out whole devices: the job takes one",
                                placement_->name()));
  if (spec.gpus == 0 && spec.cpus == 0) {
    spec.cpus = 1;
    notes.emplace_back("gpus: none, so that it takes a core: 1");
  }
  if (spec.exclusive && needs_other) {
    const std::int32_t whole = cluster_.largest_node();
    if (spec.gpus < whole) {
      notes.push_back(fmt::format("exclusive: asks for all {} devices of a node", whole));
      spec.gpus = whole;
    }
  }
  Fault impossible{.kind = FaultKind::Impossible, .messages = {}};
  if (spec.gpu_memory_mib > 0 && needs_other) choose_types(spec, notes, impossible);
  check_dependencies(before, spec, impossible);
  if (needs_other) check_cluster(spec, impossible);
  if (!impossible.messages.empty()) return tl::unexpected<Fault>(std::move(impossible));
  return {};
}

void Admission::check_sense(const Caller& caller, const JobSpec* before, const JobSpec& spec,
                            Fault& bad) const {
  bad.messages = problems(spec);
  if (spec.workdir.empty() || spec.workdir.front() != '/')
    add_message(bad, "workdir: must be an absolute path");
  const bool is_given = before != nullptr && before->priority == spec.priority;
  if (spec.priority > options_.max_user_priority && caller.role == Role::User && !is_given) {
    add_message(bad, fmt::format("priority: {} needs an operator, users may ask for {} at most",
                                 spec.priority, options_.max_user_priority));
  }
}

void Admission::check_queue(const Caller& caller, const JobSpec* before, JobSpec& spec,
                            std::vector<std::string>& notes, Fault& bad) const {
  if (spec.queue.empty()) spec.queue = options_.queues.front().name;
  const auto queue = std::ranges::find(options_.queues, spec.queue, &QueueOptions::name);
  if (queue == options_.queues.end()) {
    add_message(bad, fmt::format("there is no queue '{}' (there are: {})", spec.queue,
                                 names_of(options_.queues)));
    return;
  }
  const bool same_queue = before != nullptr && before->queue == spec.queue;
  const bool same_limit = same_queue && before->time_limit == spec.time_limit;
  const bool same_gpus = same_queue && before->gpus == spec.gpus;
  if (spec.time_limit == kUnlimitedTime) {
    // As long as the queue gives, not as long as it gives to whoever says nothing.
    spec.time_limit = queue->max_time_limit;
    notes.push_back(
        spec.time_limit > 0
            ? fmt::format("no time limit was asked for: it gets {}, the most in queue '{}'",
                          human_duration(static_cast<double>(spec.time_limit)), queue->name)
            : fmt::format("it has no time limit: queue '{}' sets none", queue->name));
  } else if (spec.time_limit == 0 && !same_limit) {
    spec.time_limit =
        queue->default_time_limit > 0 ? queue->default_time_limit : queue->max_time_limit;
  }
  const bool above = !same_limit && queue->max_time_limit > 0 &&
                     (spec.time_limit == 0 || spec.time_limit > queue->max_time_limit);
  if (above && caller.role == Role::User) {
    add_message(bad, fmt::format("queue '{}' takes jobs of at most {}", spec.queue,
                                 human_duration(static_cast<double>(queue->max_time_limit))));
  }
  if (queue->max_gpus > 0 && spec.gpus > queue->max_gpus && !same_gpus) {
    add_message(bad, fmt::format("queue '{}' takes jobs of at most {} GPUs, this one asks for {}",
                                 spec.queue, queue->max_gpus, spec.gpus));
  }
}

/// Types whose devices have the memory it asks for become the types it accepts.
void Admission::choose_types(JobSpec& spec, std::vector<std::string>& notes,
                             Fault& impossible) const {
  const auto gib = [](std::int64_t mib) {
    return fmt::format("{:.4g} GiB", static_cast<double>(mib) / 1024);
  };
  std::vector<std::string> asked;
  for (const std::string_view type : split(spec.gpu_type, '|'))
    if (!type.empty()) asked.emplace_back(type);
  std::string fitting;
  const DeviceType* largest = nullptr;
  const auto look_at = [&](const DeviceType& type) {
    if (largest == nullptr || type.memory_mib > largest->memory_mib) largest = &type;
    if (type.memory_mib < spec.gpu_memory_mib) return;
    fitting += (fitting.empty() ? "" : "|") + type.name;
  };
  if (asked.empty()) {
    for (const DeviceType& type : cluster_.pools) look_at(type);
  }
  for (const std::string& name : asked) {  // in its own order of preference
    const auto found = std::ranges::find(cluster_.pools, name, &DeviceType::name);
    if (found != cluster_.pools.end()) look_at(*found);
  }
  if (largest == nullptr) return;  // no such type: said by the check of the cluster
  if (fitting.empty())
    return add_message(
        impossible, fmt::format("asks for {} of GPU memory, the largest here ({}) "
                                "has {}",
                                gib(spec.gpu_memory_mib), largest->name, gib(largest->memory_mib)));
  const auto fitting_types = static_cast<std::size_t>(std::ranges::count(fitting, '|')) + 1;
  if (asked.empty() && fitting_types == cluster_.pools.size()) return;  // any will do
  if (fitting != spec.gpu_type) {
    notes.push_back(
        fmt::format("gpu_memory: {} or more has {}", gib(spec.gpu_memory_mib), fitting));
    spec.gpu_type = fitting;
  }
}

/// Whoever asks for ever new things must not fill our memory.
void Admission::forget_shapes() {
  names_ = Trace{};
  table_ = ShapeTable{};
  shapes_ =
      std::make_unique<ShapeMaker>(names_, empty_, *placement_, SideLimits{.cores_beside = true});
}

void Admission::check_dependencies(const JobSpec* before, const JobSpec& spec,
                                   Fault& impossible) const {
  std::size_t pairs = 0;
  for (const Dependency& dependency : spec.dependencies) {
    if (dependency.kind == DependencyKind::Singleton) continue;
    const bool is_old = before != nullptr && std::ranges::find(before->dependencies, dependency) !=
                                                 before->dependencies.end();
    const std::size_t jobs = exists_(dependency.job);
    if (!is_old && jobs == 0)
      add_message(impossible,
                  fmt::format("waits for job {}, which does not exist", dependency.job));
    const bool is_all =
        dependency.kind != DependencyKind::AfterCorr && dependency.index == kWholeArray;
    pairs += is_all ? jobs : 1;
  }
  // Each job of an array knows each job it waits for.
  pairs *= spec.array ? spec.array->indices.size() : 1;
  if (pairs > kMostDependencies)
    add_message(impossible,
                fmt::format("dependencies: {} pairs of jobs that wait and are waited for, at most "
                            "{} (aftercorr pairs equal indices)",
                            pairs, kMostDependencies));
}

void Admission::check_cluster(const JobSpec& spec, Fault& impossible) {
  for (const std::string& node : spec.nodes) {
    if (std::ranges::find(cluster_.nodes, node, &Node::name) == cluster_.nodes.end())
      add_message(impossible, fmt::format("there is no node '{}'", node));
  }
  const auto is_here = [&](const std::string& node) {
    return std::ranges::find(cluster_.nodes, node, &Node::name) != cluster_.nodes.end();
  };
  if (std::ranges::any_of(spec.exclude, is_here))
    add_message(impossible,
                "exclude: a choice of nodes is not supported: ask for a gpu_type instead");
  if (!spec.nodes.empty() && spec.nodes.size() < cluster_.nodes.size())
    add_message(impossible, "a choice of nodes is not supported: ask for a gpu_type instead");
  const std::lock_guard lock{mutex_};
  if (table_.size() > kMostShapes || names_.names.size() > kMostNames) forget_shapes();
  const JobRequest request = request_of(spec, 0, Time{}, names_.names);
  const ShapeId shape = shapes_->shape_of(request, table_);
  if (std::string never = shapes_->why_never(request, shape, table_); !never.empty())
    add_message(impossible, std::move(never));
}

}  // namespace berth
