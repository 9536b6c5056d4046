#include "client/srun_options.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/split.h"
#include "client/draft.h"
#include "client/moment.h"
#include "client/slurm/words.h"
#include "model/job_spec.h"

namespace berth::client {

namespace {

using enum Takes;
using Text = std::string_view;
constexpr std::int64_t kMany = 4'096;

constexpr std::array kOptions{
    OptionSpec{"accel-bind", 0, Value, "FLAGS", ""},
    OptionSpec{"account", 'A', Value, "NAME", "outside a job: whose share it uses"},
    OptionSpec{"acctg-freq", 0, Value, "LIST", ""},
    OptionSpec{"bb", 0, Value, "SPEC", ""},
    OptionSpec{"bbf", 0, Value, "FILE", ""},
    OptionSpec{"bcast", 0, Maybe, "FILE", ""},
    OptionSpec{"bcast-exclude", 0, Value, "LIST", ""},
    OptionSpec{"begin", 'b', Value, "TIME", "outside a job: not before then"},
    OptionSpec{"chdir", 'D', Value, "DIR", "where the tasks run"},
    OptionSpec{"cluster-constraint", 0, Value, "LIST", ""},
    OptionSpec{"clusters", 'M', Value, "LIST", ""},
    OptionSpec{"comment", 0, Value, "TEXT", "outside a job: any text"},
    OptionSpec{"compress", 0, Maybe, "KIND", ""},
    OptionSpec{"constraint", 'C', Value, "LIST", "outside a job: features of nodes"},
    OptionSpec{"container", 0, Value, "IMAGE", "outside a job: runs in it"},
    OptionSpec{"container-id", 0, Value, "ID", ""},
    OptionSpec{"contiguous", 0, Nothing, "", ""},
    OptionSpec{"core-spec", 'S', Value, "N", ""},
    OptionSpec{"cores-per-socket", 0, Value, "N", ""},
    OptionSpec{"cpu-bind", 0, Value, "KIND", "cores follow from --cpus-per-task"},
    OptionSpec{"cpu-freq", 0, Value, "RANGE", ""},
    OptionSpec{"cpus-per-gpu", 0, Value, "N", "outside a job: cores for each GPU"},
    OptionSpec{"cpus-per-task", 'c', Value, "N", "cores for each task; implies --exact"},
    OptionSpec{"deadline", 0, Value, "TIME", ""},
    OptionSpec{"debugger-test", 0, Nothing, "", ""},
    OptionSpec{"delay-boot", 0, Value, "MINUTES", ""},
    OptionSpec{"dependency", 'd', Value, "LIST", "outside a job: as in afterok:12"},
    OptionSpec{"disable-status", 'X', Nothing, "", "one Ctrl-C is enough"},
    OptionSpec{"distribution", 'm', Value, "KIND", "one node: nothing to choose"},
    OptionSpec{"epilog", 0, Value, "PROGRAM", ""},
    OptionSpec{"error", 'e', Value, "FILE", "standard error; %t is the task, none: nowhere"},
    OptionSpec{"exact", 0, Nothing, "", "no more cores than asked for"},
    OptionSpec{"exclude", 'x', Value, "LIST", "outside a job: not these nodes"},
    OptionSpec{"exclusive", 0, Maybe, "MODE", "as --exact"},
    OptionSpec{"export", 0, Value, "LIST", "ALL, NONE, or variables"},
    OptionSpec{"export-file", 0, Value, "FILE", ""},
    OptionSpec{"external-launcher", 0, Maybe, "", ""},
    OptionSpec{"extra", 0, Value, "TEXT", ""},
    OptionSpec{"extra-node-info", 'B', Value, "S[:C[:T]]", ""},
    OptionSpec{"gid", 0, Value, "GROUP", ""},
    OptionSpec{"gpu-bind", 0, Value, "KIND", "none, single:N, per_task:N, map_gpu:LIST, closest"},
    OptionSpec{"gpu-freq", 0, Value, "RANGE", ""},
    OptionSpec{"gpus", 'G', Value, "[TYPE:]N", "GPUs of the job that the step takes"},
    OptionSpec{"gpus-per-node", 0, Value, "[TYPE:]N", "the same, on the one node"},
    OptionSpec{"gpus-per-socket", 0, Value, "N", ""},
    OptionSpec{"gpus-per-task", 0, Value, "[TYPE:]N", "so many for each task, its own"},
    OptionSpec{"gres", 0, Value, "gpu[:TYPE]:N", "GPUs that the step takes; none: none"},
    OptionSpec{"gres-flags", 0, Value, "FLAGS", ""},
    OptionSpec{"help", 'h', Nothing, "", "this text"},
    OptionSpec{"het-group", 0, Value, "N", ""},
    OptionSpec{"hint", 0, Value, "KIND", ""},
    OptionSpec{"hold", 'H', Nothing, "", "outside a job: waits until released"},
    OptionSpec{"immediate", 'I', Maybe, "SECONDS", "fail instead of waiting for resources"},
    OptionSpec{"input", 'i', Value, "FILE", "standard input; a number: that task alone; none"},
    OptionSpec{"interactive", 0, Nothing, "", ""},
    OptionSpec{"job-name", 'J', Value, "NAME", "name of the step"},
    OptionSpec{"jobid", 0, Value, "ID", "a step in this job"},
    OptionSpec{"kill-on-bad-exit", 'K', Maybe, "0|1", "the first task that fails ends the others"},
    OptionSpec{"label", 'l', Nothing, "", "each line of output begins with its task"},
    OptionSpec{"licenses", 'L', Value, "LIST", ""},
    OptionSpec{"mail-type", 0, Value, "LIST", ""},
    OptionSpec{"mail-user", 0, Value, "USER", ""},
    OptionSpec{"mcs-label", 0, Value, "LABEL", ""},
    OptionSpec{"mem", 0, Value, "SIZE", "outside a job: memory"},
    OptionSpec{"mem-bind", 0, Value, "KIND", ""},
    OptionSpec{"mem-per-cpu", 0, Value, "SIZE", "outside a job: memory for each core"},
    OptionSpec{"mem-per-gpu", 0, Value, "SIZE", "outside a job: memory for each GPU"},
    OptionSpec{"mincpus", 0, Value, "N", ""},
    OptionSpec{"mpi", 0, Value, "KIND", "none or pmi2: tasks find each other by their variables"},
    OptionSpec{"msg-timeout", 0, Value, "SECONDS", ""},
    OptionSpec{"multi-prog", 0, Nothing, "", "the operand is a file of ranks and programs"},
    OptionSpec{"network", 0, Value, "KIND", ""},
    OptionSpec{"nice", 0, Maybe, "N", ""},
    OptionSpec{"no-allocate", 'Z', Nothing, "", ""},
    OptionSpec{"no-kill", 'k', Maybe, "off", ""},
    OptionSpec{"nodefile", 'F', Value, "FILE", ""},
    OptionSpec{"nodelist", 'w', Value, "LIST", "nodes; inside a job there is one"},
    OptionSpec{"nodes", 'N', Value, "N[-M]", "nodes; inside a job there is one"},
    OptionSpec{"ntasks", 'n', Value, "N", "how many tasks"},
    OptionSpec{"ntasks-per-core", 0, Value, "N", ""},
    OptionSpec{"ntasks-per-gpu", 0, Value, "N", "tasks on each GPU"},
    OptionSpec{"ntasks-per-node", 0, Value, "N", "tasks on each node"},
    OptionSpec{"ntasks-per-socket", 0, Value, "N", ""},
    OptionSpec{"oom-kill-step", 0, Maybe, "0|1", ""},
    OptionSpec{"open-mode", 0, Value, "MODE", "append or truncate"},
    OptionSpec{"output", 'o', Value, "FILE", "standard output; %t is the task, none: nowhere"},
    OptionSpec{"overcommit", 'O', Nothing, "", "more tasks than cores"},
    OptionSpec{"overlap", 0, Nothing, "", "shares what other steps use"},
    OptionSpec{"oversubscribe", 's', Nothing, "", "as --overlap"},
    OptionSpec{"partition", 'p', Value, "NAME", "outside a job: queue"},
    OptionSpec{"power", 0, Value, "FLAGS", ""},
    OptionSpec{"prefer", 0, Value, "LIST", ""},
    OptionSpec{"preserve-env", 'E', Nothing, "", ""},
    OptionSpec{"priority", 0, Value, "N", ""},
    OptionSpec{"profile", 0, Value, "LIST", ""},
    OptionSpec{"prolog", 0, Value, "PROGRAM", ""},
    OptionSpec{"propagate", 0, Maybe, "LIMITS", ""},
    OptionSpec{"pty", 0, Maybe, "", "task 0 has the terminal"},
    OptionSpec{"qos", 'q', Value, "NAME", "outside a job: quality of service"},
    OptionSpec{"quiet", 'Q', Nothing, "", "say nothing but errors"},
    OptionSpec{"quit-on-interrupt", 0, Nothing, "", "one Ctrl-C is enough"},
    OptionSpec{"reboot", 0, Nothing, "", ""},
    OptionSpec{"relative", 'r', Value, "N", "inside a job: from its N-th node on"},
    OptionSpec{"reservation", 0, Value, "NAME", ""},
    OptionSpec{"resv-ports", 0, Maybe, "N", ""},
    OptionSpec{"segment", 0, Value, "N", ""},
    OptionSpec{"send-libs", 0, Maybe, "yes|no", ""},
    OptionSpec{"signal", 0, Value, "SIG[@SECONDS]", "outside a job: warning before the limit"},
    OptionSpec{"slurmd-debug", 0, Value, "LEVEL", ""},
    OptionSpec{"sockets-per-node", 0, Value, "N", ""},
    OptionSpec{"spread-job", 0, Nothing, "", ""},
    OptionSpec{"stepmgr", 0, Nothing, "", ""},
    OptionSpec{"switches", 0, Value, "N", ""},
    OptionSpec{"task-epilog", 0, Value, "PROGRAM", ""},
    OptionSpec{"task-prolog", 0, Value, "PROGRAM", ""},
    OptionSpec{"tasks-per-node", 0, Value, "N", "tasks on each node"},
    OptionSpec{"test-only", 0, Nothing, "", "outside a job, of sbatch"},
    OptionSpec{"thread-spec", 0, Value, "N", ""},
    OptionSpec{"threads", 'T', Value, "N", ""},
    OptionSpec{"threads-per-core", 0, Value, "N", ""},
    OptionSpec{"time", 't', Value, "LIMIT", "limit of the step"},
    OptionSpec{"time-min", 0, Value, "LIMIT", ""},
    OptionSpec{"tmp", 0, Value, "SIZE", ""},
    OptionSpec{"treewidth", 0, Value, "N", ""},
    OptionSpec{"tres-bind", 0, Value, "KIND", ""},
    OptionSpec{"tres-per-task", 0, Value, "LIST", ""},
    OptionSpec{"uid", 0, Value, "USER", ""},
    OptionSpec{"unbuffered", 'u', Nothing, "", "output as it comes (it does)"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"use-min-nodes", 0, Nothing, "", ""},
    OptionSpec{"verbose", 'v', Nothing, "", ""},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
    OptionSpec{"wait", 'W', Value, "SECONDS", "end the others so long after the first"},
    OptionSpec{"wait-for-children", 0, Nothing, "", ""},
    OptionSpec{"wckey", 0, Value, "KEY", ""},
    OptionSpec{"whole", 0, Nothing, "", ""},
    OptionSpec{"x11", 0, Maybe, "", ""},
};

/// What Slurm's srun reads of its environment, as far as it means something inside a job.
struct Variable {
  Text name, option;
};
constexpr std::array kVariables{
    Variable{"SLURM_GPUS_PER_TASK", "gpus-per-task"},
    Variable{"SLURM_NTASKS_PER_GPU", "ntasks-per-gpu"},
    Variable{"SLURM_GPU_BIND", "gpu-bind"},
    Variable{"SRUN_CPUS_PER_TASK", "cpus-per-task"},
    Variable{"SLURM_EXACT", "exact"},
    Variable{"SLURM_OVERCOMMIT", "overcommit"},
    Variable{"SLURM_OVERLAP", "overlap"},
    Variable{"SLURM_EXPORT_ENV", "export"},
    Variable{"SRUN_EXPORT_ENV", "export"},
    Variable{"SLURM_KILL_BAD_EXIT", "kill-on-bad-exit"},
    Variable{"SLURM_LABELIO", "label"},
    Variable{"SLURM_OPEN_MODE", "open-mode"},
    Variable{"SLURM_STDERRMODE", "error"},
    Variable{"SLURM_STDINMODE", "input"},
    Variable{"SLURM_STDOUTMODE", "output"},
    Variable{"SLURM_WAIT", "wait"},
};

constexpr bool is_gpu_option(Text name) {
  return name == "gpus" || name == "gpus-per-node" || name == "gres" || name == "gpus-per-task" ||
         name == "ntasks-per-gpu";
}

/// Of no effect inside a job of ours where Slurm's srun does something, or says itself that it does
/// nothing: each gets a note. The rest of what is not read below concerns the choice of nodes and
/// queues, which is over inside a job: Slurm says nothing of it either.
constexpr std::array<Text, 34> kWithoutEffect{"accel-bind",
                                              "bb",
                                              "bbf",
                                              "bcast",
                                              "begin",
                                              "clusters",
                                              "constraint",
                                              "container",
                                              "container-id",
                                              "core-spec",
                                              "cpu-freq",
                                              "debugger-test",
                                              "dependency",
                                              "epilog",
                                              "export-file",
                                              "gid",
                                              "gpu-freq",
                                              "gpus-per-socket",
                                              "het-group",
                                              "no-allocate",
                                              "nodefile",
                                              "power",
                                              "profile",
                                              "prolog",
                                              "reservation",
                                              "resv-ports",
                                              "task-epilog",
                                              "task-prolog",
                                              "thread-spec",
                                              "tres-bind",
                                              "tres-per-task",
                                              "uid",
                                              "wait-for-children",
                                              "x11"};

/// How many, and of which types: any of them will do, for a job has devices of one type.
struct GpuWish {
  std::int32_t count = 0;
  std::vector<std::string> types;
};

Result<std::int32_t> plain_count(Text text) {
  BERTH_TRY(const auto count, parse_count(text, 0, kMany));
  return static_cast<std::int32_t>(count);
}

/// "2", "a100:2", "a100:2,v100:1".
Result<GpuWish> gpu_wish(Text text) {
  GpuWish wish;
  for (Text part : split(text, ',')) {
    if (const auto colon = part.rfind(':'); colon != Text::npos) {
      wish.types.emplace_back(part.substr(0, colon));
      part = part.substr(colon + 1);
    }
    BERTH_TRY(const auto count, plain_count(part));
    wish.count += count;
  }
  return wish;
}

/// "gpu:2", "gpu:a100:2", "gpu:a100", "gpu", "none". Nothing: no word about GPUs.
Result<std::optional<GpuWish>> gres_wish(Text text) {
  if (text == "none" || text == "NONE") return std::optional<GpuWish>(GpuWish{});
  std::optional<GpuWish> wish;
  for (const Text part : split(text, ',')) {
    Text rest = part;
    if (rest.starts_with("gres/") || rest.starts_with("gres:")) rest.remove_prefix(5);
    auto pieces = split(rest, ':');
    if (pieces.front() != "gpu") continue;  // of other kinds a job has none
    if (!wish) wish.emplace();
    const Text last = pieces.back();
    const bool has_count = pieces.size() > 1 && last.find_first_not_of("0123456789") == Text::npos;
    std::int32_t count = 1;
    if (has_count) {
      BERTH_TRY(count, plain_count(last));
      pieces.pop_back();
    }
    wish->count += count;
    if (pieces.size() > 1) wish->types.emplace_back(pieces[1]);
  }
  return wish;
}

Result<void> take_binding(StepRequest& request, Text text) {
  if (text.starts_with("verbose,")) text.remove_prefix(8);
  const auto colon = text.find(':');
  const Text kind = text.substr(0, colon);
  const Text rest = colon == Text::npos ? Text{} : text.substr(colon + 1);
  if (kind == "none" || kind == "closest" || kind == "verbose") {
    request.binding = GpuBinding::All;
  } else if (kind == "single" || kind == "per_task") {
    request.binding = kind == "single" ? GpuBinding::Single : GpuBinding::PerTask;
    BERTH_TRY(const auto count, parse_count(rest.empty() ? "1" : rest, 1, kMany));
    request.binding_count = static_cast<std::int32_t>(count);
  } else if (kind == "map_gpu") {
    request.binding = GpuBinding::Map;
    for (const Text part : split(rest, ',')) {
      BERTH_TRY(const auto place, parse_count(part.substr(0, part.find('*')), 0, kMany));
      request.binding_map.push_back(static_cast<std::int32_t>(place));
    }
  } else {
    return fail(
        fmt::format("--gpu-bind={}: none, single:N, per_task:N, map_gpu:LIST or closest", text));
  }
  return {};
}

/// Counts of tasks: said outright, or by node or GPU, or the job's.
Result<std::int32_t> task_count(const Parsed& parsed, const JobWorld& world,
                                std::optional<std::int32_t> gpus) {
  const auto count = [&](Text name) -> Result<std::optional<std::int64_t>> {
    if (!parsed.has(name)) return std::nullopt;
    auto value = parse_count(parsed.value(name), 1, kMany);
    if (!value) return fail(fmt::format("--{}: {}", name, value.error().text()));
    return std::optional(*value);
  };
  BERTH_TRY(const auto tasks, count("ntasks"));
  if (tasks) return static_cast<std::int32_t>(*tasks);
  BERTH_TRY(auto each, count("ntasks-per-node"));
  if (!each) {
    BERTH_TRY(each, count("tasks-per-node"));
  }
  std::int64_t nodes = 1;
  if (parsed.has("nodes")) {
    const std::string text = parsed.value("nodes");
    auto value = parse_count(Text(text).substr(0, text.find('-')), 1, kMany);
    if (!value) return fail(fmt::format("--nodes: {}", value.error().text()));
    nodes = *value;
  }
  if (each) return static_cast<std::int32_t>(std::min(kMany, *each * nodes));
  BERTH_TRY(const auto per_gpu, count("ntasks-per-gpu"));
  const auto devices = gpus.value_or(static_cast<std::int32_t>(world.grant.devices.size()));
  if (per_gpu && devices > 0)
    return static_cast<std::int32_t>(std::min<std::int64_t>(kMany, *per_gpu * devices));
  if (parsed.has("nodes")) return static_cast<std::int32_t>(nodes);  // one on each, as Slurm
  return world.tasks;
}

Result<void> take_gpus(StepRequest& request, const Parsed& parsed) {
  for (const Given& given : parsed.options) {
    const Text name = given.option->name;
    if (name == "gpus" || name == "gpus-per-node") {
      BERTH_TRY(auto wish, gpu_wish(given.value));
      request.gpus = wish.count;
      request.gpu_types = std::move(wish.types);
    } else if (name == "gres") {
      BERTH_TRY(auto wish, gres_wish(given.value));
      if (!wish) continue;
      request.gpus = wish->count;
      request.gpu_types = std::move(wish->types);
    } else if (name == "gpus-per-task") {
      BERTH_TRY(auto wish, gpu_wish(given.value));
      request.gpus_per_task = wish.count;
      request.gpu_types = std::move(wish.types);
      request.binding = GpuBinding::PerTask;
      request.binding_count = *request.gpus_per_task;
    } else if (name == "ntasks-per-gpu") {
      BERTH_TRY(const auto count, parse_count(given.value, 1, kMany));
      request.binding = GpuBinding::Single;
      request.binding_count = static_cast<std::int32_t>(count);
    }
  }
  if (parsed.has("gpu-bind")) BERTH_TRY_VOID(take_binding(request, parsed.value("gpu-bind")));
  return {};
}

Result<void> take_nodes(StepRequest& request, const Parsed& parsed, const JobWorld& world) {
  if (parsed.has("nodelist")) {
    BERTH_TRY(request.nodes, slurm::expanded_hosts(parsed.value("nodelist")));
  }
  if (parsed.has("relative")) {
    auto first = parse_count(parsed.value("relative"), 0, kMany);
    if (!first) return fail(fmt::format("--relative: {}", first.error().text()));
    // Nodes of the job are counted from 0.
    if (*first >= static_cast<std::int64_t>(std::max<std::size_t>(1, world.grant.nodes.size())))
      request.nodes.push_back(fmt::format("a node numbered {}", *first));
  }
  return {};
}

/// "none", "all", a task, or a file.
void take_stream(const std::string& text, std::string& path, std::optional<std::int32_t>& rank) {
  if (text == "none")
    path = "/dev/null";
  else if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos)
    rank = static_cast<std::int32_t>(parse_count(text, 0, kMany).value_or(-1));
  else if (text != "all")
    path = text;
}

Result<void> take_times(SrunCall& call, const Parsed& parsed) {
  if (parsed.has("time")) {
    BERTH_TRY(call.settings.limit_seconds, parse_time_limit(parsed.value("time")));
  }
  if (parsed.has("wait")) {
    BERTH_TRY(call.settings.wait_seconds, parse_count(parsed.value("wait"), 0, 1'000'000'000));
  }
  return {};
}

}  // namespace

std::span<const OptionSpec> srun_options() { return kOptions; }

Parsed with_variables(Parsed parsed, const Environment& environment) {
  // Who says which GPUs a step has means all of them, however the job asked for its own.
  const bool names_gpus = std::ranges::any_of(
      parsed.options, [](const Given& given) { return is_gpu_option(given.option->name); });
  std::vector<Given> told;
  for (const auto& [variable, option] : kVariables) {
    const auto found = environment.find(std::string(variable));
    if (found == environment.end() || parsed.has(option)) continue;
    if (names_gpus && is_gpu_option(option)) continue;
    const auto spec = std::ranges::find(kOptions, option, &OptionSpec::name);
    const bool is_flag = spec->takes == Takes::Nothing;
    if (is_flag && (found->second.empty() || found->second == "0")) continue;
    told.push_back({&*spec, is_flag ? std::string{} : found->second, 0});
  }
  parsed.options.insert(parsed.options.begin(), told.begin(), told.end());
  return parsed;
}

Result<SrunCall> srun_call(const Parsed& parsed, const JobWorld& world) {
  SrunCall call;
  StepRequest& request = call.request;
  if (parsed.has("test-only")) return fail("--test-only: use `sbatch --test-only`");
  BERTH_TRY_VOID(take_gpus(request, parsed));
  BERTH_TRY_VOID(take_nodes(request, parsed, world));
  BERTH_TRY(request.tasks, task_count(parsed, world, request.gpus));
  if (parsed.has("cpus-per-task")) {
    BERTH_TRY(const auto cpus, parse_count(parsed.value("cpus-per-task"), 1, kMany));
    request.cpus_per_task = static_cast<std::int32_t>(cpus);
  }
  request.is_exact = parsed.has("exact") || parsed.has("exclusive");
  request.overlaps = parsed.has("overlap") || parsed.has("oversubscribe");
  request.overcommits = parsed.has("overcommit");
  if (parsed.has("export")) request.exported = parsed.value("export");
  if (parsed.operands.empty()) return fail("No command given to execute.");
  if (parsed.has("multi-prog"))
    call.multi_prog = parsed.operands.front();
  else
    request.programs = {parsed.operands};
  const std::string& program = parsed.operands.front();
  request.name =
      parsed.has("job-name") ? parsed.value("job-name") : program.substr(program.rfind('/') + 1);
  RunSettings& settings = call.settings;
  settings.workdir = parsed.value("chdir");
  settings.labels = parsed.has("label");
  settings.has_terminal = parsed.has("pty");
  settings.quits_on_interrupt = parsed.has("quit-on-interrupt") || parsed.has("disable-status");
  settings.kills_on_bad_exit =
      parsed.has("kill-on-bad-exit") && parsed.value("kill-on-bad-exit") != "0";
  settings.appends = parsed.value("open-mode").starts_with('a');
  take_stream(parsed.value("input"), call.input, settings.input_rank);
  take_stream(parsed.value("output"), call.output, settings.output_rank);
  std::optional<std::int32_t> ignored;
  take_stream(parsed.value("error"), call.error, ignored);
  BERTH_TRY_VOID(take_times(call, parsed));
  call.immediate = parsed.has("immediate");
  call.quiet = parsed.has("quiet");
  for (const Text name : kWithoutEffect)
    if (parsed.has(name))
      call.notes.push_back(fmt::format("--{} has no effect inside a job", name));
  return call;
}

}  // namespace berth::client
