// `berth slurm setup`: lets Berth decide when Slurm's jobs start, and takes that back.
#include "slurm/setup.h"

#include <array>
#include <charconv>
#include <iostream>

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "apps/complaints.h"
#include "apps/slurm.h"
#include "base/params.h"
#include "slurm/heartbeat.h"

namespace berth {

namespace {

using client::OptionSpec;
using client::Takes;

constexpr std::array kSetupOptions{
    OptionSpec{"dry-run", 0, Takes::Nothing, "", "say what would be changed, and leave", "What"},
    OptionSpec{"undo", 0, Takes::Nothing, "",
               "take everything back and release the jobs that Berth holds", "What"},
    OptionSpec{"force", 0, Takes::Nothing, "",
               "with --undo: files that were changed since are set aside as NAME.changed", "What"},
    OptionSpec{"yes", 'y', Takes::Nothing, "", "do not ask", "What"},
    OptionSpec{
        "gate", 0, Takes::Value, "GATE",
        "lua: batch jobs are held at submit; qos: no job starts in the QOS of users, srun and "
        "salloc included (default: lua)",
        "How"},
    OptionSpec{"operator", 0, Takes::Value, "USER",
               "whom Berth runs as, if neither root nor SlurmUser; may be repeated", "How"},
    OptionSpec{"free-partition", 0, Takes::Value, "NAME",
               "jobs of this partition are left to Slurm; may be repeated", "How"},
    OptionSpec{"free-user", 0, Takes::Value, "USER", "jobs of this user; may be repeated", "How"},
    OptionSpec{"free-qos", 0, Takes::Value, "NAME", "jobs of this QOS; may be repeated", "How"},
    OptionSpec{"heartbeat", 0, Takes::Value, "FILE",
               "Berth's sign of life; none: it is always taken to be there (default: "
               "/run/berth/heartbeat)",
               "How"},
    OptionSpec{"patience", 0, Takes::Value, "TIME",
               "new jobs are not held when the heartbeat is older (default: 10m)", "How"},
    OptionSpec{"keep-parameters", 0, Takes::Nothing, "",
               "do not add batch_sched_delay=0 to SchedulerParameters", "How"},
    OptionSpec{"conf", 0, Takes::Value, "FILE", "slurm.conf (default: the one slurmctld reads)",
               "Where"},
    OptionSpec{"commands", 0, Takes::Value, "DIR", "where Slurm's commands are (default: PATH)",
               "Where"},
    OptionSpec{"plugin-dir", 0, Takes::Value, "DIR",
               "where job_submit_lua.so is (default: PluginDir as slurmctld says)", "Where"},
};

Result<std::uint32_t> uid_of(const std::string& user) {
  std::uint32_t uid = 0;
  const char* end = user.data() + user.size();
  if (!user.empty() && std::from_chars(user.data(), end, uid).ptr == end) return uid;
  if (const passwd* found = ::getpwnam(user.c_str())) return found->pw_uid;
  return fail(fmt::format("no user is called '{}'", user));
}

Result<slurm::SetupWishes> setup_wishes(const client::Parsed& given) {
  Complaints complaints;
  slurm::SetupWishes wishes;
  if (given.has("gate")) {
    const auto gate = slurm::gate_from(given.value("gate"));
    if (!gate)
      complaints.add(
          Error(fmt::format("--gate: '{}' is neither lua nor qos", given.value("gate"))));
    wishes.gate = gate.value_or(slurm::Gate::Lua);
  }
  wishes.conf = given.value("conf");
  wishes.plugin_dir = given.value("plugin-dir");
  wishes.keeps_parameters = given.has("keep-parameters");
  wishes.lua.heartbeat =
      given.has("heartbeat") ? given.value("heartbeat") : slurm::kDefaultHeartbeat;
  if (wishes.lua.heartbeat == "none") wishes.lua.heartbeat.clear();
  wishes.lua.free_partitions = given.values("free-partition");
  wishes.lua.free_qos = given.values("free-qos");
  for (const std::string& user : given.values("operator"))
    wishes.lua.privileged_uids.push_back(complaints.value_or(uid_of(user), std::uint32_t{0}));
  for (const std::string& user : given.values("free-user"))
    wishes.lua.free_uids.push_back(complaints.value_or(uid_of(user), std::uint32_t{0}));
  if (given.has("patience")) {
    const auto patience = parse_duration(given.value("patience"));
    if (!patience || *patience < std::chrono::seconds(10))
      complaints.add(Error(
          fmt::format("--patience: '{}' is no time of at least 10s", given.value("patience"))));
    else
      wishes.lua.patience_seconds =
          std::chrono::duration_cast<std::chrono::seconds>(*patience).count();
  }
  if (given.has("force") && !given.has("undo")) complaints.add(Error("--force goes with --undo"));
  if (complaints.any()) return complaints.take();
  return wishes;
}

/// Whether a person says yes; nobody there: --yes is needed.
Result<bool> is_agreed(const client::Parsed& given) {
  if (given.has("yes")) return true;
  if (::isatty(STDIN_FILENO) == 0)
    return fail("nobody is there to be asked (pass --yes, or --dry-run to look only)");
  std::cerr << "Do it? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes" || answer == "Y";
}

void print_released(const slurm::Released& released) {
  print_note(
      fmt::format("{} released, required nodes taken back of {}, left held by users and admins: {}",
                  released.released, released.nodes_cleared, released.left_held));
  for (const std::string& failure : released.failures) print_note("note: " + failure);
}

Exit undo(slurm::SlurmCommands& commands, const client::Parsed& given, const std::string& conf) {
  slurm::UndoWishes wishes{.conf = conf, .is_rehearsal = true, .is_forced = given.has("force")};
  const auto rehearsed = slurm::undo_setup(commands, wishes);
  if (!rehearsed) return complain(Exit::Failure, rehearsed.error());
  std::string text = rehearsed->diff;
  for (const std::string& note : rehearsed->notes) text += note + "\n";
  for (const std::string& action : rehearsed->released.actions) text += "  " + action + "\n";
  if (const Exit written = write_stdout(text); written != Exit::Success) return written;
  if (given.has("dry-run")) return Exit::Success;
  const auto agreed = is_agreed(given);
  if (!agreed) return complain(Exit::Misuse, agreed.error());
  if (!*agreed) return complain(Exit::Failure, "nothing was changed");
  wishes.is_rehearsal = false;
  const auto undone = slurm::undo_setup(commands, wishes);
  if (!undone) return complain(Exit::Failure, undone.error());
  for (const std::string& note : undone->notes) print_note("note: " + note);
  print_released(undone->released);
  print_note("undone: Slurm decides by itself");
  return Exit::Success;
}

/// A run that was killed is undone before another begins.
Result<void> finish_earlier(slurm::SlurmCommands& commands, const std::string& conf,
                            bool is_rehearsal) {
  BERTH_TRY(const auto state, slurm::load_state(conf));
  if (!state || state->phase == slurm::SetupPhase::Active) return {};
  if (is_rehearsal)
    return fail(
        "an earlier setup or undo was interrupted: the next run, without --dry-run, takes its "
        "changes back first");
  BERTH_TRY_VOID(slurm::undo_setup(commands, {.conf = conf, .releases_jobs = false}));
  print_note("an earlier run was interrupted: what it had changed was taken back");
  return {};
}

Exit set_up(slurm::SlurmCommands& commands, const client::Parsed& given,
            const slurm::SetupWishes& wishes) {
  if (const auto done = finish_earlier(commands, wishes.conf, given.has("dry-run")); !done)
    return complain(Exit::Failure, done.error());
  const auto plan = slurm::plan_setup(commands, wishes);
  if (!plan) return complain(Exit::Failure, plan.error());
  if (const Exit written = write_stdout(plan->text()); written != Exit::Success) return written;
  if (given.has("dry-run") || plan->is_done) return Exit::Success;
  const auto agreed = is_agreed(given);
  if (!agreed) return complain(Exit::Misuse, agreed.error());
  if (!*agreed) return complain(Exit::Failure, "nothing was changed");
  const auto notes = slurm::apply_setup(commands, *plan);
  if (!notes) return complain(Exit::Failure, notes.error());
  for (const std::string& note : *notes) print_note("note: " + note);
  print_note("set up: new jobs wait for Berth while it gives a sign of life");
  return Exit::Success;
}

Exit run_setup(const client::Parsed& given) {
  auto wishes = setup_wishes(given);
  if (!wishes) return complain(Exit::Misuse, wishes.error());
  slurm::InstalledCommands commands(given.value("commands"), given.value("conf"));
  const auto conf = slurm::find_conf(commands, wishes->conf);
  if (!conf) return complain(Exit::Failure, conf.error());
  wishes->conf = *conf;
  return given.has("undo") ? undo(commands, given, *conf) : set_up(commands, given, *wishes);
}

}  // namespace

const SlurmVerb kSlurmSetup{
    .name = "setup",
    .summary = "let Berth decide when jobs start: say what that changes, do it, undo it",
    .examples =
        "berth slurm setup --dry-run\nberth slurm setup --operator berth --free-partition debug\n"
        "berth slurm setup --undo",
    .options = kSetupOptions,
    .run = run_setup,
};

}  // namespace berth
