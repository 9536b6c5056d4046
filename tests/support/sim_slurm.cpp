#include "support/sim_slurm.h"

#include <algorithm>
#include <charconv>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/job_spec.h"

namespace berth::test {

using slurm::JobPhase;
using slurm::Refusal;

namespace {

constexpr std::int64_t kKillWait = 30;
constexpr std::uint32_t kPriority = 100;

tl::unexpected<slurm::LinkError> refused(Refusal refusal, std::string text) {
  return tl::unexpected(slurm::LinkError{refusal, std::move(text)});
}

std::string node_name(std::size_t index) { return fmt::format("n{}", index); }

bool holds_devices(const slurm::Job& job) {
  return job.completing || job.phase == JobPhase::Running || job.phase == JobPhase::Suspended;
}

}  // namespace

SimSlurm::SimSlurm(Options options)
    : options_(std::move(options)), faults_(options_.faults), rng_(options_.seed) {}

bool SimSlurm::strikes(double often, const char* what) {
  if (often <= 0 || rng_.uniform() >= often) return false;
  ++counts_[what];
  return true;
}

std::uint32_t SimSlurm::submit(const Request& request) {
  Row row;
  row.request = request;
  slurm::Job& job = row.job;
  job.key = {.job = state_.next_id++, .restarts = 0, .submitted = now_};
  job.user = request.user;
  job.name = request.name;
  job.partition = "main";
  job.phase = JobPhase::Pending;
  job.priority = request.is_held ? 0 : kPriority;
  job.reason = request.is_held ? "JobHeldUser" : "Priority";
  job.is_batch = request.is_batch;
  job.may_requeue = request.may_requeue;
  job.time_limit = request.time_limit;
  job.tasks = job.cpus = 1;
  job.dependency = request.dependency;
  if (request.gpus > 0) job.per_node = {{.name = "gpu", .type = {}, .count = request.gpus}};
  if (!request.tasks.empty()) {
    job.array = job.key.job;
    job.array_tasks = request.tasks;
  }
  const std::uint32_t id = job.key.job;
  state_.rows[id] = std::move(row);
  return id;
}

// --- people and the world

SimSlurm::Row* SimSlurm::row_of(const slurm::JobRef& ref) {
  const std::size_t bar = ref.find('_');
  std::uint32_t id = 0;
  std::from_chars(ref.data(), ref.data() + std::min(bar, ref.size()), id);
  const auto found = state_.rows.find(id);
  if (bar == std::string::npos || ref[bar + 1] == '[')
    return found == state_.rows.end() ? nullptr : &found->second;
  std::int32_t task = 0;
  std::from_chars(ref.data() + bar + 1, ref.data() + ref.size(), task);
  for (auto& [other, row] : state_.rows) {
    if (row.job.array == id && row.job.array_tasks == fmt::format("{}", task)) return &row;
  }
  if (found == state_.rows.end()) return nullptr;
  const auto tasks = parse_array(found->second.job.array_tasks);
  if (!tasks || std::ranges::find(tasks->indices, task) == tasks->indices.end()) return nullptr;
  return &split_off(found->second, task);
}

/// A task that anything is done to gets an id of its own; the rest stays one record.
SimSlurm::Row& SimSlurm::split_off(Row& array, std::int32_t task) {
  auto tasks = *parse_array(array.job.array_tasks);
  if (tasks.indices.size() == 1) {  // the last one keeps the record
    array.job.array_tasks = fmt::format("{}", task);
    return array;
  }
  std::erase(tasks.indices, task);
  Row own = array;
  own.job.array_tasks = fmt::format("{}", task);
  own.job.key.job = state_.next_id++;
  array.job.array_tasks = to_text(tasks);
  return state_.rows[own.job.key.job] = std::move(own);
}

void SimSlurm::user_cancels(std::uint32_t job) {
  const auto found = state_.rows.find(job);
  if (found == state_.rows.end() || is_over(found->second.job.phase)) return;
  Row& row = found->second;
  if (row.job.phase == JobPhase::Pending && !row.job.completing) {
    row.job.phase = JobPhase::Cancelled;
    row.job.ended = now_;
  } else {
    end_run(row, JobPhase::Cancelled, After::Over);
  }
}

void SimSlurm::user_holds(std::uint32_t job) {
  const auto found = state_.rows.find(job);
  if (found == state_.rows.end() || !found->second.job.is_batch) return;  // nobody would let it go
  if (found->second.job.phase == JobPhase::Pending) found->second.job.priority = 0;
}

void SimSlurm::admin_requeues(std::uint32_t job) {
  const auto found = state_.rows.find(job);
  if (found == state_.rows.end() || found->second.job.phase != JobPhase::Running) return;
  if (found->second.job.may_requeue) end_run(found->second, JobPhase::Pending, After::Unheld);
}

void SimSlurm::admin_releases(std::uint32_t job) {
  const auto found = state_.rows.find(job);
  if (found != state_.rows.end() && found->second.job.phase == JobPhase::Pending)
    found->second.job.priority = kPriority;
}

void SimSlurm::set_limit(std::uint32_t job, std::int64_t seconds) {
  const auto found = state_.rows.find(job);
  if (found != state_.rows.end()) found->second.job.time_limit = seconds;
}

void SimSlurm::clear_dependency(std::uint32_t job) {
  const auto found = state_.rows.find(job);
  if (found != state_.rows.end()) found->second.job.dependency.clear();
}

/// Requeued unheld, with the nodes it was placed on.
void SimSlurm::lose_node(std::size_t node) {
  lost_nodes_.insert(node);
  for (auto& [id, row] : state_.rows) {
    const bool here = std::ranges::any_of(
        row.job.held, [&](const slurm::HeldNode& held) { return held.node == node_name(node); });
    if (!here) continue;
    if (row.job.completing) {
      row.gone_at = now_;
    } else if (row.job.may_requeue) {
      end_run(row, JobPhase::Pending, After::Unheld);
      row.gone_at = now_;
    } else {
      end_run(row, JobPhase::NodeFailed, After::Over);
      row.gone_at = now_;
    }
  }
}

void SimSlurm::bring_back(std::size_t node) { lost_nodes_.erase(node); }

/// Jobs that it does not know to run are ended by the nodes when they report.
void SimSlurm::kill_controller(std::int64_t forgets, std::int64_t away) {
  auto back = saved_.upper_bound(now_ - forgets);
  if (back != saved_.begin()) --back;
  if (back == saved_.end()) return;
  ++counts_["controller-killed"];
  std::map<std::uint32_t, int> starts;
  for (const auto& [id, row] : state_.rows) starts[id] = row.starts;
  const State now = std::exchange(state_, back->second);
  saved_.erase(std::next(back), saved_.end());
  for (auto& [id, row] : state_.rows) {
    const auto then = now.rows.find(id);
    if (then == now.rows.end()) continue;
    row.starts = then->second.starts;
    // What has ended meanwhile is gone: nodes tell that when they are asked.
    const bool ran_on = holds_devices(row.job) && holds_devices(then->second.job) &&
                        row.job.key == then->second.job.key;
    if (holds_devices(row.job) && !ran_on) {
      row.job.completing = false;
      row.job.phase = JobPhase::Running;
      end_run(
          row,
          then->second.job.phase == JobPhase::Completed ? JobPhase::Completed : JobPhase::Failed,
          After::Over);
    }
  }
  away_until_ = now_ + away;
}

// --- time

void SimSlurm::set_now(std::int64_t seconds) {
  if (now_ == 0) now_ = seconds;  // the world begins
  while (now_ < seconds) {
    ++now_;
    tick();
  }
}

void SimSlurm::tick() {
  for (auto& [id, row] : state_.rows) {
    slurm::Job& job = row.job;
    if (job.completing && row.gone_at <= now_) finish(row);
    if (job.phase != JobPhase::Running || job.completing) continue;
    ++row.done;
    if (row.done >= row.request.seconds)
      end_run(row, row.request.exit_code == 0 ? JobPhase::Completed : JobPhase::Failed,
              After::Over);
    else if (job.time_limit > 0 && now_ - job.started >= job.time_limit)
      end_run(row, JobPhase::TimedOut, After::Over);
  }
  std::erase_if(state_.rows, [&](const auto& entry) {
    const slurm::Job& job = entry.second.job;
    return is_over(job.phase) && !job.completing && job.ended + options_.min_job_age < now_;
  });
  if (now_ >= away_until_) start_what_fits();
  if (now_ % 5 == 0) saved_[now_] = state_;
  while (saved_.size() > 8) saved_.erase(saved_.begin());
}

std::int32_t SimSlurm::used_on(const std::string& node) const {
  std::int64_t used = 0;
  for (const auto& [id, row] : state_.rows) {
    for (const slurm::HeldNode& held : row.job.held)
      if (held.node == node)
        for (const slurm::GresCount& gres : held.gres) used += gres.count;
  }
  return static_cast<std::int32_t>(used);
}

bool SimSlurm::fits(const Row& row) const {
  if (row.required.empty()) return false;
  return std::ranges::all_of(row.required, [&](const std::string& node) {
    for (std::size_t i = 0; i < options_.gpus.size(); ++i) {
      if (node_name(i) == node)
        return !lost_nodes_.contains(i) && used_on(node) + row.request.gpus <= options_.gpus[i];
    }
    return false;
  });
}

void SimSlurm::start_what_fits() {
  for (auto& [id, row] : state_.rows) {
    const slurm::Job& job = row.job;
    const bool waits = job.phase == JobPhase::Pending && !job.completing && job.priority > 0 &&
                       job.dependency.empty() && row.begin <= now_;
    if (!waits) continue;
    if (row.required.empty()) {  // nobody has said where: Slurm looks for itself
      for (std::size_t i = 0; i < options_.gpus.size() && row.required.empty(); ++i) {
        row.required = {node_name(i)};
        if (!fits(row)) row.required.clear();
      }
    }
    if (fits(row)) start(row);
  }
}

void SimSlurm::start(Row& row) {
  slurm::Job& job = row.job;
  job.phase = JobPhase::Running;
  job.started = now_;
  job.held.clear();
  for (const std::string& node : row.required) {
    slurm::HeldNode held{.node = node};
    if (row.request.gpus > 0) held.gres = {{.name = "gpu", .type = {}, .count = row.request.gpus}};
    job.held.push_back(std::move(held));
  }
  ++row.starts;
}

/// Its processes are told to end, and are gone a little later.
void SimSlurm::end_run(Row& row, JobPhase phase, After after) {
  slurm::Job& job = row.job;
  const bool by_itself = phase == JobPhase::Completed || phase == JobPhase::Failed;
  row.phase_after = phase;
  row.after = after;
  row.gone_at = now_;
  if (!by_itself && row.request.is_stubborn) row.gone_at = now_ + kKillWait;
  if (strikes(faults_.slow_end, "slow-end"))
    row.gone_at += static_cast<std::int64_t>(rng_.below(60));
  job.phase = after == After::Over ? phase : JobPhase::Pending;
  job.completing = true;
  job.ended = now_;
  if (phase == JobPhase::Failed) job.exit_code = row.request.exit_code;
  if (after == After::Held) job.priority = 0;
  if (row.gone_at <= now_) finish(row);
}

void SimSlurm::finish(Row& row) {
  slurm::Job& job = row.job;
  job.completing = false;
  job.held.clear();
  if (row.after == After::Over) {
    job.phase = row.phase_after;
    job.ended = now_;
    return;
  }
  requeue(row, row.after);
}

void SimSlurm::requeue(Row& row, After after) {
  slurm::Job& job = row.job;
  job.phase = JobPhase::Pending;
  job.priority = after == After::Held ? 0 : kPriority;
  job.exit_code = 0;
  ++job.key.restarts;
  job.key.submitted = now_;
  job.eligible = row.begin = now_ + options_.requeue_pause;
  job.started = job.ended = 0;
}

// --- what is seen from outside

const slurm::Job* SimSlurm::find(std::uint32_t job) const {
  const auto found = state_.rows.find(job);
  return found == state_.rows.end() ? nullptr : &found->second.job;
}

std::vector<slurm::Job> SimSlurm::all() const {
  std::vector<slurm::Job> jobs;
  for (const auto& [id, row] : state_.rows) {
    if (row.job.array != 0 && row.job.array_tasks.empty()) continue;  // all its tasks are split off
    jobs.push_back(row.job);
  }
  return jobs;
}

bool SimSlurm::is_quiet() const {
  return std::ranges::all_of(
      all(), [](const slurm::Job& job) { return is_over(job.phase) && !job.completing; });
}

int SimSlurm::starts_of(std::uint32_t job) const {
  const auto found = state_.rows.find(job);
  return found == state_.rows.end() ? 0 : found->second.starts;
}

// --- the link

slurm::Linked<std::optional<std::vector<slurm::Job>>> SimSlurm::jobs() {
  if (now_ < away_until_ || strikes(faults_.unread, "unread"))
    return refused(Refusal::Unreachable, "Unable to contact slurm controller");
  if (!last_reading_.empty() && strikes(faults_.stale, "stale"))
    return std::optional{last_reading_};
  last_reading_ = all();
  return std::optional{last_reading_};
}

slurm::Linked<std::optional<std::vector<slurm::Node>>> SimSlurm::nodes() {
  if (now_ < away_until_) return refused(Refusal::Unreachable, "Unable to contact controller");
  std::vector<slurm::Node> nodes;
  for (std::size_t i = 0; i < options_.gpus.size(); ++i) {
    slurm::Node node{.name = node_name(i)};
    node.state = lost_nodes_.contains(i) ? "DOWN" : "IDLE";
    node.partitions = {"main"};
    node.cpus = 64;
    node.memory_mib = 1 << 20;
    node.gres = {{.name = "gpu", .type = "v100", .count = options_.gpus[i]}};
    nodes.push_back(std::move(node));
  }
  return std::optional{std::move(nodes)};
}

slurm::Linked<std::vector<slurm::Partition>> SimSlurm::partitions() {
  slurm::Partition all{.name = "main"};
  for (std::size_t i = 0; i < options_.gpus.size(); ++i) all.nodes.push_back(node_name(i));
  return std::vector{std::move(all)};
}

template <class Do>
slurm::Linked<void> SimSlurm::carry_out(const slurm::JobRef& ref, Do act) {
  if (now_ < away_until_ || strikes(faults_.unsent, "unsent"))
    return refused(Refusal::Unreachable, "Connection timed out");
  const bool is_silent = strikes(faults_.undone_answer, "undone-answer");
  Row* row = row_of(ref);
  if (row == nullptr) return refused(Refusal::NoSuchJob, "Invalid job id specified");
  const slurm::Linked<void> answer = act(*row);
  if (is_silent) return refused(Refusal::Unreachable, "Connection timed out");
  return answer;
}

/// On each node no more than it has, by everybody who was placed there and runs or is to. What is
/// started around us may come between a reading and an order.
void SimSlurm::check_plan(const slurm::Job& job, const slurm::Placement& placement) {
  for (const std::string& node : placement.nodes) {
    std::int64_t wanted = 0;
    for (const auto& [id, row] : state_.rows) {
      const bool is_here =
          row.placed_run == row.job.key.restarts &&
          std::ranges::find(row.required, node) != row.required.end() &&
          (holds_devices(row.job) || (row.job.phase == JobPhase::Pending && row.job.priority > 0));
      if (is_here && row.job.key.job != job.key.job) wanted += row.request.gpus;
    }
    std::size_t index = 0;
    std::from_chars(node.data() + 1, node.data() + node.size(), index);
    const auto own = state_.rows.find(job.key.job);
    if (wanted + own->second.request.gpus > options_.gpus[index])
      violations_.push_back(fmt::format("S2: job {} is placed on {} beside {} GPUs of {}",
                                        job.key.job, node, wanted, options_.gpus[index]));
  }
}

slurm::Linked<void> SimSlurm::place(const slurm::JobRef& job, const slurm::Placement& placement) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    if (row.job.phase != JobPhase::Pending || row.job.completing)
      return refused(Refusal::WrongState, "Job is no longer pending execution");
    if (check_) {
      if (std::string wrong = check_(row.job, placement); !wrong.empty())
        violations_.push_back(std::move(wrong));
    }
    check_plan(row.job, placement);
    ++counts_["place"];
    row.required = placement.nodes;
    row.placed_run = row.job.key.restarts;
    row.job.required_nodes = placement.nodes;
    row.job.min_nodes = row.job.max_nodes = static_cast<std::int32_t>(placement.nodes.size());
    row.job.priority = kPriority;
    if (placement.begin_now) row.begin = row.job.eligible = now_;
    return {};
  });
}

slurm::Linked<void> SimSlurm::hold(const slurm::JobRef& job) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    if (row.job.phase != JobPhase::Pending)
      return refused(Refusal::WrongState, "Job is no longer pending execution");
    ++counts_["hold"];
    row.job.priority = 0;
    return {};
  });
}

slurm::Linked<void> SimSlurm::release(const slurm::JobRef& job) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    violations_.push_back(fmt::format("S1: job {} is released without a place", row.job.key.job));
    row.job.priority = kPriority;
    return {};
  });
}

slurm::Linked<void> SimSlurm::requeue_held(const slurm::JobRef& job) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    if (!row.job.may_requeue) return refused(Refusal::NotAllowed, "Requested operation disabled");
    if (row.job.completing) return refused(Refusal::WrongState, "Job is completing");
    if (row.job.phase == JobPhase::Pending)
      return refused(Refusal::WrongState, "Job is pending execution");
    ++counts_["requeue"];
    if (is_over(row.job.phase))
      requeue(row, After::Held);
    else
      end_run(row, JobPhase::Pending, After::Held);
    return {};
  });
}

slurm::Linked<void> SimSlurm::cancel(const slurm::JobRef& job) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    if (is_over(row.job.phase)) return refused(Refusal::WrongState, "Job already completed");
    ++counts_["cancel"];
    user_cancels(row.job.key.job);
    return {};
  });
}

slurm::Linked<void> SimSlurm::signal(const slurm::JobRef& job, int number) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    if (row.job.phase != JobPhase::Running) return refused(Refusal::WrongState, "not running");
    ++counts_["signal"];
    if (number != SIGCONT && row.request.fails_on_warning && !row.job.completing) {
      row.request.exit_code = 1;
      end_run(row, JobPhase::Failed, After::Over);
      row.request.exit_code = 0;
    }
    return {};
  });
}

slurm::Linked<void> SimSlurm::suspend(const slurm::JobRef& job) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    if (row.job.phase != JobPhase::Running) return refused(Refusal::WrongState, "not running");
    row.job.phase = JobPhase::Suspended;
    return {};
  });
}

slurm::Linked<void> SimSlurm::resume(const slurm::JobRef& job) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    if (row.job.phase != JobPhase::Suspended) return refused(Refusal::WrongState, "not suspended");
    row.job.phase = JobPhase::Running;
    return {};
  });
}

slurm::Linked<void> SimSlurm::set_time_limit(const slurm::JobRef& job, std::int64_t seconds) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    row.job.time_limit = seconds;
    return {};
  });
}

slurm::Linked<void> SimSlurm::set_admin_comment(const slurm::JobRef& job, const std::string& text) {
  return carry_out(job, [&](Row& row) -> slurm::Linked<void> {
    row.job.admin_comment = text;
    return {};
  });
}

slurm::Linked<void> SimSlurm::resume_node(const std::string&) { return {}; }

}  // namespace berth::test
