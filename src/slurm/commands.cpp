#include "slurm/commands.h"

#include <thread>

#include <fmt/format.h>

#include "slurm/process.h"

namespace berth::slurm {

namespace {

std::string as_typed(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

std::string Said::complaint() const {
  std::string line;
  for (const char c : error.empty() ? out : error) {
    if (c != '\n' && c != '\r')
      line += c;
    else if (!line.empty() && !line.ends_with("; "))
      line += "; ";
  }
  while (line.ends_with("; ") || line.ends_with(' ')) line.pop_back();
  if (line.ends_with(';')) line.pop_back();
  return line.empty() ? fmt::format("it ended with exit code {}", exit) : line;
}

Result<Said> InstalledCommands::run(const std::vector<std::string>& words) {
  Command command{words};
  if (!folder_.empty()) command.words.front() = folder_ + "/" + words.front();
  // What a person set for their own eyes would change what we read.
  command.without = {"SQUEUE_", "SBATCH_", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "SLURM_JSON"};
  command.environment = {{"SLURM_BITSTR_LEN", "0"}, {"LC_ALL", "C"}};
  if (!conf_.empty()) command.environment.emplace_back("SLURM_CONF", conf_);
  const Outcome outcome = run_command(command, {});
  switch (outcome.ending) {
    case Ending::Exited: return Said{outcome.code, outcome.out, outcome.error};
    case Ending::NotStarted:
      return fail(fmt::format("{}: cannot be run (are Slurm's commands installed? see --commands)",
                              command.words.front()));
    case Ending::OutOfTime: return fail(fmt::format("`{}` did not end in time", as_typed(words)));
    case Ending::TooMuch:
    case Ending::Killed: break;
  }
  return fail(fmt::format("`{}` was killed", as_typed(words)));
}

void InstalledCommands::pause(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

Result<std::string> output_of(SlurmCommands& commands, const std::vector<std::string>& words) {
  BERTH_TRY(Said said, commands.run(words));
  if (said.exit != 0) return fail(fmt::format("`{}`: {}", as_typed(words), said.complaint()));
  return std::move(said.out);
}

}  // namespace berth::slurm
