#include "apps/slurm_history.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "model/job_spec.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "trace/reader.h"

namespace berth {

namespace {

// The last one is a number: it ends where the line does, whatever a name before it holds.
enum Column : std::size_t {
  kJobId,
  kUser,
  kAccount,
  kPartition,
  kState,
  kSubmit,
  kStart,
  kEnd,
  kElapsed,
  kTimeLimit,
  kAsked,
  kGiven,
  kNodes,
  kCpus,
  kConstraints,
  kName,
  kNodeCount,
  kColumns,
};
constexpr std::array<std::string_view, kColumns> kNames{
    "JobID",    "User",  "Account",     "Partition",    "State",   "Submit",
    "Start",    "End",   "ElapsedRaw",  "TimelimitRaw", "ReqTRES", "AllocTRES",
    "NodeList", "NCPUS", "Constraints", "JobName",      "NNodes"};

using Row = std::array<std::string_view, kColumns>;

/// Every field ends with the mark, every row with a line break behind the last one.
Result<std::vector<Row>> rows_of(std::string_view text, const std::string& mark) {
  std::vector<Row> rows;
  while (!text.empty() && text != "\n") {
    Row row;
    for (std::string_view& field : row) {
      const std::size_t end = text.find(mark);
      if (end == std::string_view::npos)
        return fail("sacct: its answer is not whole (try again, or fewer --days)");
      field = text.substr(0, end);
      text.remove_prefix(end + mark.size());
    }
    if (text.starts_with('\n')) text.remove_prefix(1);
    rows.push_back(row);
  }
  return rows;
}

/// As the reader of sacct's text takes it: one line, no separator in it.
std::string plain(std::string_view field) {
  std::string text(field);
  for (char& c : text) {
    if (c == '|' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

/// "a100", "[a100|v100]": types in order of preference, if all of them are types of GPUs here.
std::string types_of_constraint(std::string_view constraint, const std::set<std::string>& known) {
  std::string types;
  std::string word;
  for (const char c : std::string(constraint) + "|") {
    if (c == '[' || c == ']' || c == '(' || c == ')') continue;
    if (c != '|') {
      word += c;
      continue;
    }
    if (!known.contains(word)) return {};
    types += (types.empty() ? "" : "|") + word;
    word.clear();
  }
  return types;
}

/// What the reader does not look at, by job id.
struct Extra {
  std::int64_t shards = 0;
  std::string types;
};

std::int64_t count_in(std::string_view tres, std::string_view name) {
  return slurm::tres_count(tres, name).value_or(0);
}

/// Slurm's share of a GPU in thousandths.
std::int32_t share_of(std::int64_t shards, std::int64_t per_gpu) {
  if (shards <= 0 || per_gpu <= 0) return 1000;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(std::min(shards, per_gpu) * 1000 / per_gpu, 1, 1000));
}

void add_note(std::vector<std::string>& notes, std::size_t count, std::string_view text) {
  if (count > 0) notes.push_back(fmt::format("{} {}", count, text));
}

class SacctRows {
 public:
  explicit SacctRows(const SlurmCluster& cluster) : cluster_(cluster) {
    text_ = fmt::format("{}\n", fmt::join(kNames, "|"));
  }

  void add(const Row& row) {
    const bool has_gpu = count_in(row[kGiven], "gres/gpu") > 0;
    if (!is_here(row[kNodes])) {
      ++elsewhere_;
      return;
    }
    const bool has_run = row[kElapsed] != "0";
    if (!has_gpu && has_run && row[kNodeCount] != "1" && row[kNodeCount] != "0") ++wide_;
    Extra extra{.shards = has_gpu ? 0 : count_in(row[kGiven], "gres/shard"),
                .types = types_of_constraint(row[kConstraints], cluster_.types)};
    if (extra.shards > 0 || !extra.types.empty())
      extras_[std::string(row[kJobId])] = std::move(extra);
    for (std::size_t i = 0; i < row.size(); ++i)
      text_ += plain(row[i]) + (i + 1 < row.size() ? '|' : '\n');
    ++rows_;
  }

  [[nodiscard]] Result<SlurmHistory> finish() && {
    SlurmHistory history;
    add_note(history.notes, elsewhere_,
             "runs on nodes that are not in cluster.yaml were left out (nodes without GPUs, or "
             "nodes that Slurm does not know any more)");
    add_note(history.notes, wide_,
             "runs of CPUs alone used several nodes: a simulation has them on one node, or rejects "
             "them if none is large enough");
    if (rows_ == 0) return history;
    auto trace = parse_trace(text_, "sacct", {.format = "sacct", .skip_invalid = true});
    if (!trace) {  // nothing of it has run
      history.notes.push_back(trace.error().text());
      return history;
    }
    history.trace = std::move(*trace);
    for (TraceJob& job : history.trace.jobs) complete(history.trace, job);
    // What is so of every log says nothing of this one; jobs that are cut are counted by the caller.
    for (const std::string& note : history.trace.notes) {
      if (!note.starts_with("jobs still running")) history.notes.push_back(note);
    }
    return history;
  }

 private:
  /// Those that have no nodes yet are decided by their later runs.
  bool is_here(std::string_view nodes) {
    if (nodes.empty() || nodes == "None assigned") return true;
    const auto [known, is_new] = here_.try_emplace(std::string(nodes), false);
    if (is_new) {
      const auto names = slurm::expand_hostlist(nodes);
      known->second = names && std::ranges::any_of(*names, [this](const std::string& name) {
                        return cluster_.nodes.contains(name);
                      });
    }
    return known->second;
  }

  void complete(Trace& trace, TraceJob& job) const {
    const std::string id(trace.text(job.id));
    const auto found = extras_.find(id.substr(0, id.find('#')));
    if (found == extras_.end()) return;
    if (job.gpus == 1 && found->second.shards > 0)
      job.gpu_milli = share_of(found->second.shards, cluster_.shards_per_gpu);
    if (job.gpu_type == NameId{} && job.gpu_milli > 0)
      job.gpu_type = trace.names.intern(found->second.types);
  }

  const SlurmCluster& cluster_;
  std::string text_;
  std::map<std::string, bool> here_;  // by list of nodes
  std::map<std::string, Extra> extras_;
  std::size_t rows_ = 0, elsewhere_ = 0, wide_ = 0;
};

std::int32_t capped(std::int64_t amount, std::int64_t most) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(amount, 0, most));
}

/// What a job asks for or holds, under its number; its array and its times are the caller's.
TraceJob request_of(const slurm::Job& job, Names& names, std::int64_t shards_per_gpu) {
  TraceJob result;
  const bool has_gpus = job.gpus() > 0;
  result.gpus = has_gpus ? capped(job.gpus(), 1'000'000) : 1;
  if (!has_gpus) result.gpu_milli = job.shards() > 0 ? share_of(job.shards(), shards_per_gpu) : 0;
  result.cpus_milli = capped(job.cpus, 2'000'000) * 1000;
  result.memory_mib = capped(job.memory_mib, 2'000'000'000);
  result.submit = Time{std::chrono::seconds(job.key.submitted)};
  result.estimate = std::chrono::seconds(job.time_limit);
  result.user = names.intern(job.user);
  result.group = names.intern(job.account);
  result.queue = names.intern(job.partition);
  result.name = names.intern(plain(job.name));
  result.gpu_type = names.intern(job.gpu_type());
  return result;
}

/// "7", "7_2", and of tasks that wait together one for each.
std::vector<std::string> ids_of(const slurm::Job& job) {
  if (job.array == 0) return {fmt::to_string(job.key.job)};
  const auto tasks = parse_array(job.array_tasks);
  if (!tasks) return {fmt::format("{}_[{}]", job.array, job.array_tasks)};
  std::vector<std::string> ids;
  for (const std::int32_t index : tasks->indices)
    ids.push_back(fmt::format("{}_{}", job.array, index));
  return ids;
}

std::vector<std::string_view> split_names(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    names.push_back(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(names.back().size() + 1, list.size()));
  }
  return names;
}

}  // namespace

std::vector<std::string> sacct_words(const std::string& mark, std::int64_t days) {
  return {"sacct",
          "--allusers",
          "--allocations",
          "--duplicates",
          "--noheader",
          "--parsable",
          "--delimiter=" + mark,
          fmt::format("--starttime=now-{}days", days),
          fmt::format("--format={}", fmt::join(kNames, ","))};
}

Result<SlurmHistory> history_of_sacct(std::string_view text, const std::string& mark,
                                      const SlurmCluster& cluster) {
  BERTH_TRY(const std::vector<Row> all, rows_of(text, mark));
  SacctRows rows(cluster);
  for (const Row& row : all) rows.add(row);
  return std::move(rows).finish();
}

Result<SlurmHistory> history_of_jobcomp(std::string_view text, std::span<const slurm::Job> jobs,
                                        std::int64_t now) {
  SlurmHistory history;
  if (!text.empty()) {
    BERTH_TRY(history.trace,
              parse_trace(text, "jobcomp", {.format = "sacct", .skip_invalid = true}));
    history.notes = history.trace.notes;
  }
  Trace& trace = history.trace;
  const Duration zero = seconds_to_duration(trace.zero_seconds);
  for (const slurm::Job& job : jobs) {
    const bool runs =
        job.phase == slurm::JobPhase::Running || job.phase == slurm::JobPhase::Suspended;
    if (!runs || job.started <= 0 || job.started >= now || job.key.submitted > job.started)
      continue;
    for (const std::string& id : ids_of(job)) {
      TraceJob running = request_of(job, trace.names, 0);
      running.id = trace.names.intern(id);
      running.duration = std::chrono::seconds(now - job.started);
      running.submit -= zero;
      running.recorded = RecordedRun{.start = Time{std::chrono::seconds(job.started)} - zero,
                                     .end = Time{std::chrono::seconds(now)} - zero,
                                     .held = running.duration,
                                     .restarts = static_cast<std::int32_t>(
                                         std::min<std::uint32_t>(job.key.restarts, 1'000'000)),
                                     .is_cut = true};
      trace.jobs.push_back(running);
    }
  }
  trace.normalise();
  return history;
}

void keep_since(SlurmHistory& history, std::int64_t since) {
  Trace& trace = history.trace;
  const auto first = Time{std::chrono::seconds(since)} - seconds_to_duration(trace.zero_seconds);
  const auto early =
      std::erase_if(trace.jobs, [&](const TraceJob& job) { return job.submit < first; });
  add_note(history.notes, early,
           "jobs were submitted before the first day and are left out, though some of them ran on "
           "into it: at first a simulated cluster is emptier than the real one was");
  trace.normalise();
}

SlurmHistory waiting_jobs(std::span<const slurm::Job> jobs,
                          std::span<const slurm::Partition> partitions,
                          const SlurmCluster& cluster) {
  SlurmHistory history;
  std::map<std::string, const slurm::Partition*, std::less<>> by_name;
  for (const slurm::Partition& partition : partitions) by_name[partition.name] = &partition;
  std::size_t elsewhere = 0;
  std::size_t endless = 0;
  std::size_t held = 0;
  for (const slurm::Job& job : jobs) {
    if (job.phase != slurm::JobPhase::Pending) continue;
    std::int64_t limit = job.time_limit;
    bool is_here = false;
    for (const std::string_view name : split_names(job.partition)) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) continue;
      is_here = is_here || std::ranges::any_of(found->second->nodes, [&](const std::string& node) {
                  return cluster.nodes.contains(node);
                });
      if (limit == 0) limit = found->second->max_time;
    }
    if (!is_here) {
      ++elsewhere;
      continue;
    }
    if (limit <= 0) {
      ++endless;
      continue;
    }
    held += job.priority == 0 || !job.dependency.empty() ? 1U : 0U;
    for (const std::string& id : ids_of(job)) {
      TraceJob waiting = request_of(job, history.trace.names, cluster.shards_per_gpu);
      waiting.id = history.trace.names.intern(id);
      waiting.duration = waiting.estimate = std::chrono::seconds(limit);
      history.trace.jobs.push_back(waiting);
    }
  }
  add_note(history.notes, elsewhere,
           "waiting jobs are for partitions without a node of cluster.yaml: left out");
  add_note(history.notes, endless,
           "waiting jobs have no time limit, nor has their partition: left out");
  add_note(history.notes, held,
           "waiting jobs are held or wait for another job: a simulation starts them as others");
  history.trace.normalise();
  return history;
}

void rename(Trace& trace, const Naming& naming) {
  const auto change = [&](NameId& name, std::string_view kind) {
    if (name == NameId{}) return;
    const std::string text(trace.text(name));  // the names may move
    name = trace.names.intern(naming(kind, text));
  };
  for (TraceJob& job : trace.jobs) {
    change(job.user, "user");
    change(job.group, "group");
    change(job.queue, "queue");
    change(job.name, "name");
  }
}

}  // namespace berth
