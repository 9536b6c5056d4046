// `berth slurm capture`: a Slurm's nodes as a cluster file, its past as a trace. Reads with the
// rights of whoever calls it and changes nothing. Everything is asked and checked before the first
// byte is written; the folder appears whole or not at all.
#include <array>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "apps/pseudonyms.h"
#include "apps/slurm.h"
#include "apps/slurm_cluster.h"
#include "apps/slurm_history.h"
#include "base/file.h"
#include "model/cluster.h"
#include "slurm/process.h"
#include "slurm/text_link.h"
#include "trace/reader.h"
#include "trace/writer.h"

namespace berth {

namespace {

using client::OptionSpec;
using client::Takes;

constexpr std::int64_t kDefaultDays = 30;
constexpr std::int64_t kMostDays = 3650;
constexpr std::chrono::minutes kSacctPatience{10};  // months of a large site take a while
constexpr std::string_view kCluster = "cluster.yaml";
constexpr std::string_view kTrace = "trace.csv";
constexpr std::string_view kWaiting = "waiting.csv";
constexpr std::string_view kReadme = "README.md";

constexpr std::array kOptions{
    OptionSpec{"days", 0, Takes::Value, "N", "how many days back (default 30)", "Input"},
    OptionSpec{"commands", 0, Takes::Value, "DIR",
               "where Slurm's commands are (default: found by PATH)", "Input"},
    OptionSpec{"out", 'o', Takes::Value, "DIR", "the folder to write (required)", "Output"},
    OptionSpec{"anonymous", 0, Takes::Nothing, "",
               "pseudonyms for users, accounts, partitions, job names and nodes", "Output"},
    OptionSpec{"force", 0, Takes::Nothing, "", "write into a folder that holds files already",
               "Output"},
};

struct Order {
  std::string out;
  std::string commands;
  std::int64_t days = kDefaultDays;
  std::int64_t now = 0;
  bool anonymous = false;
  bool force = false;
};

Result<Order> order_of(const client::Parsed& given) {
  Order order{.out = given.value("out"),
              .commands = given.value("commands"),
              .now = std::time(nullptr),
              .anonymous = given.has("anonymous"),
              .force = given.has("force")};
  Error error;
  if (order.out.empty())
    error.messages.emplace_back("slurm capture: where to? Give -o DIR, as in `-o lab`");
  if (const std::string days = given.value("days"); given.has("days")) {
    const auto [end, problem] = std::from_chars(days.data(), days.data() + days.size(), order.days);
    if (problem != std::errc{} || end != days.data() + days.size() || order.days < 1 ||
        order.days > kMostDays)
      error.messages.push_back(
          fmt::format("--days: '{}' is no whole number from 1 to {}", days, kMostDays));
  }
  std::error_code code;
  if (!order.force && std::filesystem::exists(order.out, code) &&
      !(std::filesystem::is_directory(order.out, code) &&
        std::filesystem::is_empty(order.out, code)))
    error.messages.push_back(fmt::format(
        "{}: is there already (name a new folder, or --force to write into this one)", order.out));
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return order;
}

template <class T>
Result<T> asked(std::string_view what, slurm::Linked<T> answer) {
  if (answer) return std::move(*answer);
  const std::string_view remedy =
      answer.error().refusal == slurm::Refusal::NotAllowed
          ? " (PrivateData in slurm.conf hides them: ask an administrator to run this)"
          : " (is this a machine with Slurm's commands? --commands DIR names their folder)";
  return fail(fmt::format("{}: {}{}", what, answer.error().text, remedy));
}

/// Letters that nobody can have written into a name before.
std::string fresh_mark() {
  std::random_device device;
  std::string mark = "<";
  for (int i = 0; i < 4; ++i) mark += fmt::format("{:08x}", device());
  return mark + ">";
}

/// What Slurm told, before anything is made of it.
struct Facts {
  slurm::Version version;
  slurm::Config config;
  std::vector<slurm::Node> nodes;
  std::vector<slurm::Partition> partitions;
  std::vector<slurm::Switch> switches;
  std::vector<slurm::Job> jobs;
  std::vector<std::string> notes;  // what was refused, and could be done without
};

Result<Facts> facts_of(const Order& order) {
  slurm::TextLink link({.directory = order.commands});
  Facts facts;
  BERTH_TRY(facts.version, asked("slurm", link.version()));
  BERTH_TRY(facts.config, asked("scontrol show config", link.config()));
  BERTH_TRY(auto nodes, asked("scontrol show node", link.nodes()));
  facts.nodes = std::move(nodes).value_or(std::vector<slurm::Node>{});
  BERTH_TRY(facts.partitions, asked("scontrol show partition", link.partitions()));
  if (auto switches = link.topology())
    facts.switches = std::move(*switches);
  else
    facts.notes.push_back("scontrol show topology: " + switches.error().text);
  if (auto jobs = link.jobs())
    facts.jobs = std::move(*jobs).value_or(std::vector<slurm::Job>{});
  else
    facts.notes.push_back("squeue: " + jobs.error().text +
                          ": jobs that run or wait now are not in the capture");
  if (const std::string hidden = facts.config.value("PrivateData");
      hidden.find("jobs") != std::string::npos)
    facts.notes.emplace_back(
        "PrivateData hides the jobs of others: a capture by an administrator would have them");
  return facts;
}

Result<std::string> ask_sacct(const Order& order, const std::string& mark) {
  slurm::Command command{.words = sacct_words(mark, order.days),
                         .environment = {{"SLURM_TIME_FORMAT", "%s"}, {"LC_ALL", "C"}},
                         .without = {"SACCT_"}};
  if (!order.commands.empty()) command.words.front() = order.commands + "/sacct";
  const slurm::Outcome outcome = slurm::run_command(command, {.time = kSacctPatience});
  if (outcome.ending == slurm::Ending::Exited && outcome.code == 0) return outcome.out;
  if (outcome.ending == slurm::Ending::OutOfTime)
    return fail("sacct: no answer within ten minutes (try fewer --days)");
  if (outcome.ending == slurm::Ending::NotStarted) return fail("sacct: there is no such command");
  std::string text = outcome.error.substr(0, outcome.error.find('\n'));
  return fail(fmt::format("sacct: {}", text.empty() ? "failed without a word" : text));
}

bool keeps_accounts(const slurm::Config& config) {
  const std::string type = config.value("AccountingStorageType");
  return type.find("slurmdbd") != std::string::npos || type.find("mysql") != std::string::npos;
}

/// The past as far as somebody has kept it, and who that was.
struct Past {
  SlurmHistory history;
  std::string source;
};

/// Where no accounting is kept, the file of jobcomp is the only memory.
Result<Past> past_by_jobcomp(const Order& order, const Facts& facts) {
  const std::string type = facts.config.value("JobCompType");
  const std::string file = facts.config.value("JobCompLoc");
  constexpr std::string_view kRemedy =
      "this Slurm keeps no accounting (AccountingStorageType in slurm.conf), so its past can only "
      "come from the text file of jobcomp";
  if (type.find("filetxt") == std::string::npos || file.empty())
    return fail(
        fmt::format("{}, and JobCompType is {}: there is nothing to capture (set up "
                    "slurmdbd, or JobCompType=jobcomp/filetxt)",
                    kRemedy, type.empty() ? "not set" : type));
  const auto text = read_file(file);
  if (!text)
    return fail(
        fmt::format("{}: {} (ask an administrator to run this)", kRemedy, text.error().text()));
  Past past{.history = {}, .source = "jobcomp and squeue"};
  BERTH_TRY(past.history, history_of_jobcomp(*text, facts.jobs, order.now));
  past.history.notes.emplace_back(
      "the file of jobcomp has local times: they are read as UTC, and jobs that run now may seem "
      "to "
      "have been submitted some hours off");
  return past;
}

Result<Past> past_of(const Order& order, const Facts& facts, const SlurmCluster& cluster) {
  if (!keeps_accounts(facts.config)) return past_by_jobcomp(order, facts);
  const std::string mark = fresh_mark();
  BERTH_TRY(const std::string text, ask_sacct(order, mark));
  Past past{.history = {}, .source = "sacct"};
  BERTH_TRY(past.history, history_of_sacct(text, mark, cluster));
  return past;
}

struct Captured {
  std::string cluster;
  std::string trace{}, waiting{};  // may be empty
  std::size_t nodes = 0, groups = 0, jobs = 0, of_cpus = 0, running = 0, restarted = 0, waits = 0;
  std::int64_t gpus = 0;
  std::string source;
  slurm::Version version;
  std::vector<std::string> notes{};
};

void add(std::vector<std::string>& notes, const std::vector<std::string>& more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

void count_jobs(Captured& captured, const Trace& trace) {
  captured.jobs = trace.jobs.size();
  for (const TraceJob& job : trace.jobs) {
    captured.of_cpus += job.gpu_milli == 0 ? 1U : 0U;
    captured.running += job.recorded && job.recorded->is_cut ? 1U : 0U;
    captured.restarted += job.recorded && job.recorded->restarts > 0 ? 1U : 0U;
  }
}

Result<Captured> capture(const Order& order) {
  std::optional<Pseudonyms> pseudonyms;
  if (order.anonymous) {
    BERTH_TRY(std::string key, pseudonym_key());
    pseudonyms.emplace(std::move(key));
  }
  const Naming naming = [&pseudonyms](std::string_view kind, std::string_view name) {
    return pseudonyms ? pseudonyms->of(kind, name) : std::string(name);
  };
  BERTH_TRY(const Facts facts, facts_of(order));
  const std::string name = facts.config.value("ClusterName");
  BERTH_TRY(const SlurmCluster cluster,
            slurm_cluster(order.anonymous || name.empty() ? "slurm" : name, facts.nodes,
                          facts.switches, naming));
  BERTH_TRY(Past past, past_of(order, facts, cluster));
  keep_since(past.history, order.now - order.days * 86'400);
  SlurmHistory waiting = waiting_jobs(facts.jobs, facts.partitions, cluster);

  Captured captured{.cluster = cluster.yaml,
                    .nodes = cluster.nodes.size(),
                    .groups = cluster.groups,
                    .waits = waiting.trace.jobs.size(),
                    .gpus = cluster.gpus,
                    .source = past.source,
                    .version = facts.version};
  count_jobs(captured, past.history.trace);
  rename(past.history.trace, naming);
  rename(waiting.trace, naming);
  if (captured.jobs > 0) captured.trace = trace_to_csv(past.history.trace);
  if (captured.waits > 0) captured.waiting = trace_to_csv(waiting.trace);
  add(captured.notes, facts.notes);
  add(captured.notes, cluster.notes);
  add(captured.notes, past.history.notes);
  add(captured.notes, waiting.notes);
  return captured;
}

std::string commands_to_try(const Order& order, const Captured& captured) {
  const std::string& dir = order.out;
  std::string text = fmt::format("berth topology {0}/{1}\n", dir, kCluster);
  if (captured.jobs > 0)
    text += fmt::format(
        "berth check {0}/{1} {0}/{2}\n"
        "berth compare --trace {0}/{2} --cluster {0}/{1} --policies fifo,easy,las\n"
        "berth compare --trace {0}/{2} --cluster {0}/{1} --policies easy,tiresias-l --out "
        "{0}-report\n",
        dir, kCluster, kTrace);
  if (captured.waits > 0)
    text += fmt::format("berth simulate --trace {0}/{2} --cluster {0}/{1} --policy easy\n", dir,
                        kCluster, kWaiting);
  return text;
}

std::string readme(const Order& order, const Captured& captured) {
  const auto hour = [](std::int64_t seconds) {
    return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
  };
  std::string text = fmt::format(
      "# A Slurm as `berth slurm capture` found it\n\n"
      "Slurm {}, {}, the {} days from {} on.{}\n\n"
      "- `{}`: {} nodes with {} GPUs, in {} groups of like nodes.\n",
      slurm::to_string(captured.version), hour(order.now), order.days,
      hour(order.now - order.days * 86'400),
      order.anonymous ? " Users, accounts, partitions, job names and nodes have pseudonyms." : "",
      kCluster, captured.nodes, captured.gpus, captured.groups);
  if (captured.jobs > 0)
    text += fmt::format(
        "- `{}`: {} jobs that ran, from {}, with the times at which they really started and ended. "
        "{} of CPUs alone, {} put back into the queue after a run, {} not over: those end with the "
        "run time they had (column `cut`).\n",
        kTrace, captured.jobs, captured.source, captured.of_cpus, captured.restarted,
        captured.running);
  else
    text += fmt::format("- No job ran in these days, so there is no `{}`.\n", kTrace);
  if (captured.waits > 0)
    text += fmt::format(
        "- `{}`: {} jobs that waited, with their time limit as run time. They are no part of the "
        "past, so they have a file of their own.\n",
        kWaiting, captured.waits);
  text += "\n## To try next\n\n";
  const std::string commands = commands_to_try(order, captured);
  for (std::size_t begin = 0; begin < commands.size();) {
    const std::size_t end = commands.find('\n', begin);
    text += "    " + commands.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  text +=
      "\n`compare` shows the row *as recorded* beside the policies: what Slurm did. The other rows "
      "are simulations of the same jobs on `cluster.yaml`, which know nothing of reservations, "
      "limits of accounts, holds, dependencies, nodes that were down, and the seconds that Slurm "
      "takes to start a job.\n"
      "\n## What could not be known\n\n";
  for (const std::string& note : captured.notes) text += "- " + note + "\n";
  return text;
}

/// What is written must be readable: whoever finds out otherwise has lost their trust.
Result<void> check_readable(const Captured& captured) {
  const auto cluster = parse_cluster_yaml(captured.cluster, std::string(kCluster));
  if (!cluster) return tl::unexpected<Error>(cluster.error());
  for (const std::string* csv : {&captured.trace, &captured.waiting}) {
    if (csv->empty()) continue;
    const auto trace = parse_trace(*csv, std::string(kTrace), {.format = "native"});
    if (!trace) return tl::unexpected<Error>(trace.error());
  }
  return {};
}

std::vector<std::pair<std::string_view, std::string>> files_of(const Order& order,
                                                               const Captured& captured) {
  return {{kCluster, captured.cluster},
          {kTrace, captured.trace},
          {kWaiting, captured.waiting},
          {kReadme, readme(order, captured)}};
}

/// A new folder is made beside and renamed, so that it appears whole. In one that is there already
/// (--force) each file is replaced whole, and what this capture does not have goes: an old trace
/// beside a new cluster would be taken for one thing.
Result<void> write(const Order& order, const Captured& captured) {
  namespace fs = std::filesystem;
  std::error_code code;
  fs::path target = fs::absolute(order.out, code).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "dir/" is "dir"
  const bool is_there = fs::is_directory(target, code);
  const fs::path folder =
      is_there ? target : fs::path(fmt::format("{}.tmp-{}", target.string(), ::getpid()));
  if (!is_there && !fs::create_directories(folder, code))
    return fail(fmt::format("{}: cannot be made: {}", folder.string(), code.message()));
  for (const auto& [name, content] : files_of(order, captured)) {
    const fs::path file = folder / name;
    auto written = content.empty() ? Result<void>{} : write_file(file.string(), content);
    if (content.empty()) fs::remove(file, code);
    if (written) continue;
    if (!is_there) fs::remove_all(folder, code);
    return written;
  }
  if (is_there) return {};
  fs::rename(folder, target, code);
  if (!code) return {};
  const std::string reason = code.message();
  fs::remove_all(folder, code);
  return fail(fmt::format("{}: cannot be put in place: {}", target.string(), reason));
}

Exit run(const client::Parsed& given) {
  const auto order = order_of(given);
  if (!order) return complain(Exit::Misuse, order.error());
  const auto captured = capture(*order);
  if (!captured) return complain(Exit::Failure, captured.error());
  if (const auto readable = check_readable(*captured); !readable)
    return complain(Exit::Failure, readable.error());
  if (const auto written = write(*order, *captured); !written)
    return complain(Exit::Failure, written.error());
  for (const std::string& note : captured->notes) print_note("note: " + note);
  print_note(fmt::format("wrote {}: {} nodes with {} GPUs, {} jobs that ran, {} that wait",
                         order->out, captured->nodes, captured->gpus, captured->jobs,
                         captured->waits));
  print_note("to try next:\n" + commands_to_try(*order, *captured));
  return Exit::Success;
}

}  // namespace

const SlurmVerb kSlurmCapture{
    .name = "capture",
    .summary = "write a Slurm's nodes as a cluster file and its past as a trace",
    .examples =
        "berth slurm capture -o lab\n"
        "berth slurm capture -o lab --days 90 --anonymous\n"
        "berth compare --trace lab/trace.csv --cluster lab/cluster.yaml --policies "
        "fifo,easy,las",
    .options = kOptions,
    .run = run,
};

}  // namespace berth
