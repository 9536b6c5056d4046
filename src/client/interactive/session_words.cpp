#include "client/interactive/session_words.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "client/submit_command.h"

namespace berth::client {

namespace {

struct Variable {
  std::string_view name, option;
};
constexpr std::array<Variable, 15> kVariables{{
    {"ACCOUNT", "account"},
    {"CONSTRAINT", "constraint"},
    {"CPUS_PER_GPU", "cpus-per-gpu"},
    {"EXCLUSIVE", "exclusive"},
    {"GPUS", "gpus"},
    {"GPUS_PER_NODE", "gpus-per-node"},
    {"GPUS_PER_TASK", "gpus-per-task"},
    {"GRES", "gres"},
    {"MEM_PER_CPU", "mem-per-cpu"},
    {"MEM_PER_GPU", "mem-per-gpu"},
    {"MEM_PER_NODE", "mem"},
    {"PARTITION", "partition"},
    {"QOS", "qos"},
    {"RESERVATION", "reservation"},
    {"TIMELIMIT", "time"},
}};

Error collected(const std::vector<OptionFault>& faults, const std::string& before) {
  Error error;
  for (const OptionFault& fault : faults) error.messages.push_back(before + fault.text);
  return error;
}

}  // namespace

Result<Draft> session_draft(const SessionManner& manner, const OptionTable& table,
                            const Parsed& parsed) {
  Draft draft;
  draft.is_slurm = true;
  BERTH_TRY(draft.context, process_context());
  for (const auto& [name, option] : kVariables) {
    const std::string variable = fmt::format("{}{}", manner.prefix, name);
    const auto found = draft.context.environment.find(variable);
    if (found == draft.context.environment.end()) continue;
    const auto spec = std::ranges::find(table.specs(), option, &OptionSpec::name);
    if (spec == table.specs().end()) continue;
    Parsed given;
    given.options.push_back({&*spec, found->second, 0});
    if (const auto faults = table.apply(draft, given); !faults.empty())
      return tl::unexpected<Error>(collected(faults, variable + ": "));
  }
  if (const auto faults = table.apply(draft, parsed); !faults.empty())
    return tl::unexpected<Error>(collected(faults, ""));
  if (draft.dry_run) return fail("--test-only: use `sbatch --test-only`");
  draft.server = parsed.value("server");
  return draft;
}

std::string last_part(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace berth::client
