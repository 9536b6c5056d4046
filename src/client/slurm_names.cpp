#include "client/slurm_names.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "client/commands.h"
#include "client/draft.h"
#include "client/interactive/interactive.h"
#include "client/sbatch_script.h"
#include "client/script_variable.h"
#include "client/submit_command.h"

namespace berth::client {

namespace {

std::string_view base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// What sbatch takes from the environment, below the command line and above the script.
struct EnvironmentOption {
  const char* variable;
  const char* option;
};
constexpr std::array<EnvironmentOption, 55> kEnvironment{{
    {"SBATCH_ACCOUNT", "account"},
    {"SBATCH_ARRAY_INX", "array"},
    {"SBATCH_CONSTRAINT", "constraint"},
    {"SBATCH_CPUS_PER_GPU", "cpus-per-gpu"},
    {"SBATCH_EXCLUSIVE", "exclusive"},
    {"SBATCH_EXPORT", "export"},
    {"SBATCH_GPUS", "gpus"},
    {"SBATCH_GPUS_PER_NODE", "gpus-per-node"},
    {"SBATCH_GPUS_PER_TASK", "gpus-per-task"},
    {"SBATCH_GRES", "gres"},
    {"SBATCH_INPUT", "input"},
    {"SBATCH_JOB_NAME", "job-name"},
    {"SBATCH_MEM_PER_CPU", "mem-per-cpu"},
    {"SBATCH_MEM_PER_GPU", "mem-per-gpu"},
    {"SBATCH_MEM_PER_NODE", "mem"},
    {"SBATCH_NO_REQUEUE", "no-requeue"},
    {"SBATCH_OPEN_MODE", "open-mode"},
    {"SBATCH_OUTPUT", "output"},
    {"SBATCH_ERROR", "error"},
    {"SBATCH_PARTITION", "partition"},
    {"SBATCH_QOS", "qos"},
    {"SBATCH_REQUEUE", "requeue"},
    {"SBATCH_RESERVATION", "reservation"},
    {"SBATCH_SIGNAL", "signal"},
    {"SBATCH_TIMELIMIT", "time"},
    {"SBATCH_WAIT", "wait"},
    {"SBATCH_ACCTG_FREQ", "acctg-freq"},
    {"SBATCH_BATCH", "batch"},
    {"SBATCH_CLUSTERS", "clusters"},
    {"SBATCH_CONTAINER", "container"},
    {"SBATCH_CONTAINER_ID", "container-id"},
    {"SBATCH_CORE_SPEC", "core-spec"},
    {"SLURM_CPU_FREQ_REQ", "cpu-freq"},
    {"SBATCH_DELAY_BOOT", "delay-boot"},
    {"SBATCH_DISTRIBUTION", "distribution"},
    {"SBATCH_EXPORT_FILE", "export-file"},
    {"SBATCH_GET_USER_ENV", "get-user-env"},
    {"SBATCH_GPU_BIND", "gpu-bind"},
    {"SBATCH_GPU_FREQ", "gpu-freq"},
    {"SBATCH_GRES_FLAGS", "gres-flags"},
    {"SBATCH_HINT", "hint"},
    {"SBATCH_IGNORE_PBS", "ignore-pbs"},
    {"SBATCH_MEM_BIND", "mem-bind"},
    {"SBATCH_NETWORK", "network"},
    {"SBATCH_NO_KILL", "no-kill"},
    {"SBATCH_OVERCOMMIT", "overcommit"},
    {"SBATCH_POWER", "power"},
    {"SBATCH_PROFILE", "profile"},
    {"SBATCH_REQ_SWITCH", "switches"},
    {"SBATCH_SPREAD_JOB", "spread-job"},
    {"SBATCH_THREAD_SPEC", "thread-spec"},
    {"SBATCH_THREADS_PER_CORE", "threads-per-core"},
    {"SBATCH_USE_MIN_NODES", "use-min-nodes"},
    {"SBATCH_WAIT_ALL_NODES", "wait-all-nodes"},
    {"SBATCH_WCKEY", "wckey"},
}};

Result<void> apply_environment(Draft& draft) {
  const OptionTable& table = sbatch_options();
  Error error;
  for (const auto& [variable, option] : kEnvironment) {
    const auto found = draft.context.environment.find(variable);
    if (found == draft.context.environment.end()) continue;
    const auto spec = std::ranges::find(table.specs(), std::string_view(option), &OptionSpec::name);
    Parsed given;
    given.options.push_back({&*spec, found->second, 0});
    for (const OptionFault& fault : table.apply(draft, given))
      error.messages.push_back(fmt::format("{}: {}", variable, fault.text));
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return {};
}

Result<void> take_program(Draft& draft, const Parsed& parsed) {
  draft.spec.command.clear();
  if (parsed.has("wrap")) {
    if (!parsed.operands.empty()) return fail("either --wrap or a script");
    return {};
  }
  const std::string path = parsed.operands.empty() ? "-" : parsed.operands.front();
  if (path == ":")
    return fail("jobs of several kinds in one (' : ') are not supported: submit one for each");
  BERTH_TRY(std::string text, read_script(path));
  if (text.empty()) return fail("the script is empty");
  BERTH_TRY_VOID(apply_script(draft, std::move(text), path == "-" ? "standard input" : path));
  std::error_code error;
  if (const auto whole = std::filesystem::canonical(path, error); path != "-" && !error)
    draft.spec.env[kScriptVariable] = whole.string();
  if (parsed.operands.size() > 1)
    draft.spec.command.assign(parsed.operands.begin() + 1, parsed.operands.end());
  if (draft.spec.name.empty())
    draft.spec.name = path == "-" ? "sbatch" : std::string(base_name(path));
  return {};
}

}  // namespace

std::optional<int> complaint(const Parsed& parsed, const Console& console) {
  if (parsed.faults.empty()) return std::nullopt;
  for (const OptionFault& fault : parsed.faults) console.note(fault.text);
  return kMisuse;
}

std::string slurm_help(std::string_view usage, std::span<const OptionSpec> options) {
  std::string text = fmt::format("Usage: {}\n\n", usage);
  for (const OptionSpec& option : options) {
    if (option.help.empty()) continue;
    std::string left = option.letter != 0 ? fmt::format("-{}", option.letter) : "  ";
    if (!option.name.empty())
      left += fmt::format("{} --{}", option.letter != 0 ? "," : " ", option.name);
    if (!option.value.empty()) left += fmt::format("={}", option.value);
    text += fmt::format("  {:<32} {}\n", left, option.help);
  }
  return text + "\nThis is Berth; its own commands are told by `berth --help`.\n";
}

std::string slurm_usage(std::string_view program, std::string_view operands,
                        std::span<const OptionSpec> options) {
  std::string text = fmt::format("Usage: {}", program);
  std::size_t column = text.size();
  const auto add = [&](const std::string& word) {
    if (column + 1 + word.size() > 79) {
      text += "\n      ";
      column = 6;
    }
    text += " " + word;
    column += 1 + word.size();
  };
  for (const OptionSpec& option : options) {
    if (option.help.empty()) continue;
    const std::string value = option.value.empty() ? "" : fmt::format("={}", option.value);
    add(option.name.empty() ? fmt::format("[-{}]", option.letter)
                            : fmt::format("[--{}{}]", option.name, value));
  }
  add(std::string(operands));
  return text + "\n";
}

int run_sbatch(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(sbatch_options().specs(), words, OperandOrder::Leading);
  if (parsed.has("help")) {
    console.put(slurm_help("sbatch [OPTIONS] [SCRIPT [ARGS…]]", sbatch_options().specs()));
    return console.done();
  }
  if (parsed.has("usage")) {
    console.put(slurm_usage("sbatch", "[SCRIPT [ARGS…]]", sbatch_options().specs()));
    return console.done();
  }
  if (parsed.has("version")) {
    console.put("berth " BERTH_VERSION "\n");
    return console.done();
  }
  auto context = process_context();
  if (!context) return console.complain(kFailure, context.error());
  if (const auto code = complaint(parsed, console)) return *code;
  Draft draft;
  draft.is_slurm = true;
  draft.context = *std::move(context);
  if (const auto taken = take_program(draft, parsed); !taken)
    return console.complain(kMisuse, taken.error());
  if (const auto applied = apply_environment(draft); !applied)
    return console.complain(kMisuse, applied.error());
  Error error;
  for (const OptionFault& fault : sbatch_options().apply(draft, parsed))
    error.messages.push_back(fault.text);
  if (!error.messages.empty()) return console.complain(kMisuse, error);
  std::vector<Draft> drafts;
  drafts.push_back(std::move(draft));
  return submit_drafts(std::move(drafts), Manner::Slurm, console);
}

namespace {

struct SlurmName {
  std::string_view name;
  int (*run)(std::span<const std::string> words, Console& console);
};
constexpr std::array kSlurmNames{
    SlurmName{"sacct", run_sacct},     SlurmName{"salloc", run_salloc},
    SlurmName{"sattach", run_sattach}, SlurmName{"sbatch", run_sbatch},
    SlurmName{"scancel", run_scancel}, SlurmName{"scontrol", run_scontrol},
    SlurmName{"seff", run_seff},       SlurmName{"sinfo", run_sinfo},
    SlurmName{"sprio", run_sprio},     SlurmName{"squeue", run_squeue},
    SlurmName{"srun", run_srun},       SlurmName{"sshare", run_sshare},
    SlurmName{"sstat", run_sstat},
};

const SlurmName* find_slurm_name(std::string_view program) {
  const auto found = std::ranges::find(kSlurmNames, base_name(program), &SlurmName::name);
  return found == kSlurmNames.end() ? nullptr : &*found;
}

}  // namespace

bool is_slurm_name(std::string_view program) { return find_slurm_name(program) != nullptr; }

int run_slurm_name(std::string_view program, std::span<const std::string> words) {
  const SlurmName* const command = find_slurm_name(program);
  if (command == nullptr) return kMisuse;
  Console console{std::string(command->name)};
  return command->run(words, console);
}

}  // namespace berth::client
