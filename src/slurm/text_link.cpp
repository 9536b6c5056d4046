#include "slurm/text_link.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>

#include <fmt/format.h>

#include "slurm/hostlist.h"
#include "slurm/numbers.h"
#include "slurm/refusal.h"
#include "slurm/scontrol_text.h"
#include "slurm/times.h"

namespace berth::slurm {

namespace {

// Up to this many jobs are asked for one by one: it costs each a process, but not the whole queue.
constexpr std::size_t kFewJobs = 8;
// A user can make any number of jobs look doubtful; the rest of them waits for the next poll.
constexpr std::size_t kMostDoubtful = 32;

tl::unexpected<LinkError> refuse(Refusal refusal, std::string text) {
  return tl::unexpected<LinkError>(LinkError{refusal, std::move(text)});
}

template <class T>
Linked<T> linked(Result<T> result, std::string_view attempt) {
  if (result) return std::move(*result);
  return refuse(Refusal::Other, fmt::format("{}: {}", attempt, result.error().text()));
}

/// Only to be new each time, so that nobody can have put it into a name.
std::string new_mark() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::string attempt_text(const std::vector<std::string>& words) {
  std::string text = words.front().substr(words.front().rfind('/') + 1);
  for (std::size_t i = 1; i < words.size() && i < 4; ++i) text += ' ' + shortened(words[i]);
  return text;
}

LinkError not_run(const std::vector<std::string>& words, const Outcome& outcome,
                  const TextLinkSettings& settings) {
  const std::string attempt = attempt_text(words);
  switch (outcome.ending) {
    case Ending::NotStarted:
      return {Refusal::Other,
              fmt::format("{}: {} (Slurm's commands are looked for {})", words.front(),
                          std::strerror(outcome.code),
                          settings.directory.empty() ? "by PATH" : "in " + settings.directory)};
    case Ending::OutOfTime:
      return {Refusal::Unreachable,
              fmt::format("{}: no answer in {} ms", attempt, settings.deadline.count())};
    case Ending::TooMuch:
      return {Refusal::Other,
              fmt::format("{}: says more than {} bytes", attempt, settings.output_bytes)};
    case Ending::Killed:
      return {Refusal::Other, fmt::format("{}: killed by signal {}", attempt, outcome.code)};
    case Ending::Exited: break;
  }
  return refused(attempt, outcome.error);
}

/// Of everything but the mark, which is another one in every answer.
std::size_t hash_without(std::string_view text, std::string_view mark) {
  std::size_t hash = text.size();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    const std::size_t part = std::hash<std::string_view>{}(text.substr(begin, end - begin));
    hash ^= part + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
    begin = end + mark.size();
  }
  return hash;
}

std::string nodes_text(const Job& job) {
  std::string text;
  for (const HeldNode& node : job.held) text += node.node + ',';
  return text;
}

}  // namespace

bool is_job_ref(std::string_view text) noexcept {
  const std::size_t line = text.find('_');
  const auto id = parse_digits(text.substr(0, line));
  if (!id || *id == 0 || *id > UINT32_MAX) return false;
  return line == std::string_view::npos || parse_digits(text.substr(line + 1)).has_value();
}

Linked<std::string> TextLink::say(std::vector<std::string> words) {
  if (!settings_.directory.empty()) words.front() = settings_.directory + '/' + words.front();
  // What people like to see of squeue and scontrol is not what we can read.
  const Command command{.words = std::move(words),
                        .environment = {{"TZ", "UTC"},
                                        {"LC_ALL", "C"},
                                        {"SLURM_TIME_FORMAT", "standard"},
                                        {"SLURM_BITSTR_LEN", "0"}},
                        .without = {"SQUEUE_", "SCONTROL_", "SCANCEL_", "SLURM_CLUSTERS",
                                    "SLURM_JOB", "SLURM_DEBUG_FLAGS"}};
  Outcome outcome =
      run_command(command, {.time = settings_.deadline, .output_bytes = settings_.output_bytes});
  if (outcome.ending != Ending::Exited || outcome.code != 0)
    return tl::unexpected<LinkError>(not_run(command.words, outcome, settings_));
  // squeue drops a column that it does not know, complains and succeeds.
  if (outcome.error.find("Invalid job format") != std::string::npos)
    return tl::unexpected<LinkError>(refused(attempt_text(command.words), outcome.error));
  return std::move(outcome.out);
}

Linked<void> TextLink::command(std::vector<std::string> words) {
  auto said = say(std::move(words));
  if (!said) return tl::unexpected<LinkError>(std::move(said).error());
  return {};
}

Linked<void> TextLink::choose_columns() {
  if (columns_) return {};
  auto help = say({"squeue", "--helpFormat"});
  if (!help && help.error().refusal == Refusal::Unreachable)
    return tl::unexpected<LinkError>(std::move(help).error());
  columns_ = help ? columns_by_help(*help) : kOldColumns;
  return {};
}

Linked<void> TextLink::add_excluded(std::vector<Job>& jobs, const std::string& mark) {
  if (columns_->has_excluded_nodes) return {};
  auto said = say({"squeue", "-h", "-a", "-t", "all", "-o", excluded_format(mark)});
  if (!said) return tl::unexpected<LinkError>(std::move(said).error());
  auto excluded = linked(parse_excluded(*said, mark), "jobs");
  if (!excluded) return tl::unexpected<LinkError>(std::move(excluded).error());
  for (Job& job : jobs) {
    const auto found = excluded->find(job.key.job);
    if (found != excluded->end()) job.excluded_nodes = found->second;
  }
  return {};
}

Linked<Version> TextLink::version() {
  auto all = config();
  if (!all) return tl::unexpected<LinkError>(std::move(all).error());
  const std::string text = all->value("SLURM_VERSION");
  if (const auto version = parse_version(text)) return *version;
  return refuse(Refusal::Other,
                fmt::format("scontrol show config: SLURM_VERSION is '{}'", shortened(text)));
}

Linked<std::optional<std::vector<Job>>> TextLink::jobs() {
  if (auto chosen = choose_columns(); !chosen)
    return tl::unexpected<LinkError>(std::move(chosen).error());
  const SqueueForm form{.mark = new_mark(), .columns = *columns_};
  auto said = say({"squeue", "-h", "-a", "-t", "all", "-O", squeue_format(form)});
  if (!said) return tl::unexpected<LinkError>(std::move(said).error());
  const std::size_t hash = hash_without(*said, form.mark);
  if (last_jobs_ == hash) return std::nullopt;
  auto read = linked(parse_squeue(*said, form), "jobs");
  if (!read) return tl::unexpected<LinkError>(std::move(read).error());
  if (auto added = add_excluded(*read, form.mark); !added)
    return tl::unexpected<LinkError>(std::move(added).error());
  last_jobs_.reset();
  if (add_details(*read)) last_jobs_ = hash;
  return std::optional(std::move(*read));
}

bool TextLink::add_details(std::vector<Job>& jobs) {
  std::map<HeldKey, std::vector<HeldNode>> known;
  std::vector<std::pair<std::uint32_t, HeldKey>> missing;
  for (const Job& job : jobs) {
    if (job.held.empty()) continue;
    HeldKey key{job.key, job.started, nodes_text(job)};
    if (auto found = held_.extract(key)) {
      known.insert(std::move(found));
    } else {
      missing.emplace_back(job.key.job, std::move(key));
    }
  }
  held_ = std::move(known);
  read_details(missing);
  bool is_complete = true;
  for (Job& job : jobs) {
    if (job.held.empty()) continue;
    const auto found = held_.find({job.key, job.started, nodes_text(job)});
    is_complete = is_complete && found != held_.end();
    if (found == held_.end()) continue;
    for (HeldNode& node : job.held) {
      const auto detail = std::ranges::find(found->second, node.node, &HeldNode::node);
      if (detail != found->second.end()) node = *detail;
    }
  }
  return is_complete;
}

void TextLink::read_details(const std::vector<std::pair<std::uint32_t, HeldKey>>& missing) {
  // Without them a job has its nodes and lacks its devices, until the next poll: no error.
  JobDetails details;
  if (missing.size() > kFewJobs) {
    if (const auto said = say({"scontrol", "-a", "-o", "-d", "show", "job"}))
      details = parse_job_details(*said);
  } else {
    for (const auto& job : missing) details.doubtful.insert(job.first);
  }
  std::size_t asked = 0;
  for (const auto& [job, key] : missing) {
    if (const auto found = details.held.find(job); found != details.held.end()) {
      held_.insert_or_assign(key, found->second);
    } else if (details.doubtful.contains(job) && ++asked <= kMostDoubtful) {
      if (const auto said =
              say({"scontrol", "-a", "-o", "-d", "show", "job", fmt::format("{}", job)}))
        held_.insert_or_assign(key, parse_one_job_detail(*said));
    }
  }
}

Linked<std::optional<std::vector<Node>>> TextLink::nodes() {
  auto said = say({"scontrol", "-a", "-o", "-d", "show", "node"});
  if (!said) return tl::unexpected<LinkError>(std::move(said).error());
  auto read = linked(parse_nodes(*said), "nodes");
  if (!read) return tl::unexpected<LinkError>(std::move(read).error());
  // (Load and free memory change all the time and are no facts of ours.)
  if (*read == last_nodes_) return std::nullopt;
  last_nodes_ = *read;
  return std::optional(std::move(*read));
}

Linked<std::vector<Partition>> TextLink::partitions() {
  auto said = say({"scontrol", "-a", "-o", "show", "partition"});
  if (!said) return tl::unexpected<LinkError>(std::move(said).error());
  return linked(parse_partitions(*said), "partitions");
}

Linked<std::vector<Switch>> TextLink::topology() {
  auto said = say({"scontrol", "-o", "show", "topology"});
  if (said) return linked(parse_topology(*said), "topology");
  // A Slurm without topology has none to show, which is no failure of the link.
  if (said.error().refusal == Refusal::Unreachable || said.error().refusal == Refusal::NotAllowed)
    return tl::unexpected<LinkError>(std::move(said).error());
  return std::vector<Switch>{};
}

Linked<std::vector<Reservation>> TextLink::reservations() {
  auto said = say({"scontrol", "-a", "-o", "show", "res"});
  if (!said) return tl::unexpected<LinkError>(std::move(said).error());
  return linked(parse_reservations(*said), "reservations");
}

Linked<Config> TextLink::config() {
  auto said = say({"scontrol", "show", "config"});
  if (!said) return tl::unexpected<LinkError>(std::move(said).error());
  return parse_config(*said);
}

Linked<void> TextLink::command_job(std::vector<std::string> words, const JobRef& job) {
  if (!is_job_ref(job))
    return refuse(Refusal::NoSuchJob, fmt::format("'{}' is no job", shortened(job)));
  words.push_back(job);
  return command(std::move(words));
}

Linked<void> TextLink::update_job(const JobRef& job, std::vector<std::string> changes) {
  if (!is_job_ref(job))
    return refuse(Refusal::NoSuchJob, fmt::format("'{}' is no job", shortened(job)));
  std::vector<std::string> words{"scontrol", "update", "jobid=" + job};
  std::ranges::move(changes, std::back_inserter(words));
  return command(std::move(words));
}

Linked<void> TextLink::place(const JobRef& job, const Placement& placement) {
  if (placement.nodes.empty())
    return refuse(Refusal::Other, fmt::format("job {}: a placement names no nodes", job));
  const std::size_t nodes = placement.nodes.size();
  std::vector<std::string> changes{"reqnodelist=" + compress_hostlist(placement.nodes),
                                   fmt::format("numnodes={0}-{0}", nodes)};
  if (placement.tasks > 0) changes.push_back(fmt::format("numtasks={}", placement.tasks));
  if (placement.cpus > 0) changes.push_back(fmt::format("numcpus={0}-{0}", placement.cpus));
  if (placement.begin_now) changes.emplace_back("starttime=now");
  if (!placement.qos.empty()) changes.push_back("qos=" + placement.qos);
  if (auto placed = update_job(job, std::move(changes)); !placed) return placed;
  return release(job);
}

Linked<void> TextLink::hold(const JobRef& job) { return command_job({"scontrol", "hold"}, job); }

Linked<void> TextLink::release(const JobRef& job) {
  return command_job({"scontrol", "release"}, job);
}

Linked<void> TextLink::requeue_held(const JobRef& job) {
  return command_job({"scontrol", "requeuehold"}, job);
}

Linked<void> TextLink::cancel(const JobRef& job) { return command_job({"scancel"}, job); }

Linked<void> TextLink::signal(const JobRef& job, int number) {
  return command_job({"scancel", "--full", fmt::format("--signal={}", number)}, job);
}

Linked<void> TextLink::signal_script(const JobRef& job, int number) {
  return command_job({"scancel", "--batch", fmt::format("--signal={}", number)}, job);
}

Linked<void> TextLink::suspend(const JobRef& job) {
  return command_job({"scontrol", "suspend"}, job);
}

Linked<void> TextLink::resume(const JobRef& job) {
  return command_job({"scontrol", "resume"}, job);
}

Linked<void> TextLink::set_time_limit(const JobRef& job, std::int64_t seconds) {
  return update_job(job, {"timelimit=" + limit_text(seconds)});
}

Linked<void> TextLink::set_admin_comment(const JobRef& job, const std::string& text) {
  return update_job(job, {"admincomment=" + text});
}

Linked<void> TextLink::resume_node(const std::string& node) {
  return command({"scontrol", "update", "nodename=" + node, "state=resume"});
}

}  // namespace berth::slurm
