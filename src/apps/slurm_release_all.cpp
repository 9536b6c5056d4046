// `berth slurm release-all`: gives the queue back to Slurm, without a Berth that runs.
#include <array>
#include <ctime>

#include <fmt/format.h>

#include "apps/slurm.h"
#include "slurm/heartbeat.h"
#include "slurm/setup.h"

namespace berth {

namespace {

using client::OptionSpec;
using client::Takes;

constexpr std::array kReleaseOptions{
    OptionSpec{"dry-run", 0, Takes::Nothing, "", "say what would be done, and leave", "What"},
    OptionSpec{"conf", 0, Takes::Value, "FILE", "slurm.conf (default: the one slurmctld reads)",
               "Where"},
    OptionSpec{"commands", 0, Takes::Value, "DIR", "where Slurm's commands are (default: PATH)",
               "Where"},
};

/// Jobs that Berth would hold again at once.
void warn_if_alive(const slurm::SetupState& state) {
  const auto beat = slurm::last_beat(state.heartbeat);
  if (beat && std::abs(std::time(nullptr) - *beat) <= 60)
    print_note("note: Berth runs and will hold these jobs again (stop it first)");
}

Exit run_release_all(const client::Parsed& given) {
  slurm::InstalledCommands commands(given.value("commands"), given.value("conf"));
  const bool is_rehearsal = given.has("dry-run");
  // Also where it was never set up, or its files are out of reach, marked jobs are released.
  if (const auto conf = slurm::find_conf(commands, given.value("conf"))) {
    if (auto state = slurm::load_state(*conf); state && *state) {
      warn_if_alive(**state);
      if (!is_rehearsal) {
        if (const auto opened = slurm::set_qos_gate(commands, **state, false); !opened)
          print_note("note: " + opened.error().text());
      }
    }
  }
  const auto released = slurm::release_all(commands, {.is_rehearsal = is_rehearsal});
  if (!released) return complain(Exit::Failure, released.error());
  std::string text;
  for (const std::string& action : released->actions) text += action + "\n";
  text += fmt::format("{} {}, required nodes taken back of {}, left held by users and admins: {}\n",
                      is_rehearsal ? "to release:" : "released:", released->released,
                      released->nodes_cleared, released->left_held);
  for (const std::string& failure : released->failures) print_note("note: " + failure);
  if (const Exit written = write_stdout(text); written != Exit::Success) return written;
  return released->failures.empty() ? Exit::Success : Exit::Failure;
}

}  // namespace

const SlurmVerb kSlurmReleaseAll{
    .name = "release-all",
    .summary = "release every job that Berth holds, and take back the nodes it required",
    .examples = "berth slurm release-all --dry-run\nberth slurm release-all",
    .options = kReleaseOptions,
    .run = run_release_all,
};

}  // namespace berth
