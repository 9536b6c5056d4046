// Every command of the live scheduler with its options: help, completion and parsing read this.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "client/commands.h"
#include "client/draft.h"
#include "client/interactive/interactive.h"

namespace berth::client {

namespace {

using enum Takes;

constexpr OptionSpec kServer{
    "server", 0, Value, "ADDRESS", "socket path or URL (default: BERTH_URL, BERTH_SOCKET)",
    "Output"};
constexpr OptionSpec kHelp{"help", 'h', Nothing, "", "this text", "Output"};
constexpr OptionSpec kJson{"json", 0, Nothing, "", "as JSON (default: for people)", "Output"};
constexpr OptionSpec kUser{
    "user", 'u', Value, "USER", "only this user's (default: everybody's)", "Which jobs"};
constexpr OptionSpec kMe{"me", 0, Nothing, "", "only your own", "Which jobs"};
constexpr OptionSpec kGroup{"group", 0, Value, "GROUP", "only this group's", "Which jobs"};
constexpr OptionSpec kQueue{"queue", 'q', Value, "QUEUE", "only of this queue", "Which jobs"};
constexpr OptionSpec kName{"name", 'n', Value, "NAME", "only of this name", "Which jobs"};
constexpr OptionSpec kStudy{"study", 0, Value, "NAME", "only trials of this study", "Which jobs"};
constexpr OptionSpec kState{
    "state",     's', Value, "STATES", "pending, running, held, failed …, joined by commas, or all",
    "Which jobs"};
constexpr OptionSpec kWhy{"why", 0, Value, "TEXT", "for the job's history", "Output"};

constexpr std::array kQueueOptions{
    kUser,
    kMe,
    kGroup,
    kQueue,
    kName,
    kState,
    OptionSpec{"limit", 0, Value, "N", "at most so many (default: all)", "Which jobs"},
    OptionSpec{"watch", 'w', Maybe, "SECONDS", "repeat every so often (default: every 2)",
               "Output"},
    kJson,
    kServer,
    kHelp};
constexpr std::array kActionOptions{kUser,  kMe,  kGroup, kQueue,  kName, kStudy,
                                    kState, kWhy, kJson,  kServer, kHelp};
constexpr std::array kCancelOptions{
    kUser,   kMe,
    kGroup,  kQueue,
    kName,   kStudy,
    kState,  OptionSpec{"signal", 0, Value, "SIG", "send this signal instead of ending it", "How"},
    kWhy,    kJson,
    kServer, kHelp};
constexpr std::array kPlainOptions{kJson, kServer, kHelp};
constexpr std::array kWaitOptions{OptionSpec{"quiet", 0, Nothing, "", "say nothing", "Output"},
                                  kServer, kHelp};
constexpr std::array kLogsOptions{
    OptionSpec{"follow", 'f', Nothing, "", "as it grows, until the job is over", "Output"},
    OptionSpec{"err", 'e', Nothing, "", "standard error (default: standard output)", "Output"},
    OptionSpec{"lines", 'n', Value, "N", "only the last N lines (default: all)", "Output"}, kServer,
    kHelp};
constexpr std::array kHistoryOptions{
    kUser,
    kMe,
    kGroup,
    kQueue,
    kName,
    OptionSpec{"outcome", 'o', Value, "OUTCOMES", "completed, failed, timed-out …, by commas",
               "Which jobs"},
    OptionSpec{"since", 0, Value, "TIME", "ended since: 2h, 3d, yesterday, 2026-11-20",
               "Which jobs"},
    OptionSpec{"until", 0, Value, "TIME", "ended before", "Which jobs"},
    OptionSpec{"limit", 0, Value, "N", "at most so many, 0 is all (default 100)", "Which jobs"},
    OptionSpec{"energy", 0, Nothing, "",
               "add energy by user, by node and by what the node was doing", "Output"},
    kJson,
    kServer,
    kHelp};
constexpr std::array kNodeOptions{
    OptionSpec{"reason", 'r', Value, "TEXT", "why, for others to read", "How"}, kJson, kServer,
    kHelp};
constexpr std::array kPolicyOptions{
    OptionSpec{"set", 0, Value, "KEY=VALUE", "a parameter of the policy, repeatable", "How"}, kJson,
    kServer, kHelp};
constexpr std::array kShareOptions{
    OptionSpec{"group", 0, Nothing, "", "NAME is a group (default: a user)", "How"},
    OptionSpec{"shares", 0, Value, "X", "weight against others", "How"},
    OptionSpec{"gpu-limit", 0, Value, "N", "GPUs at once; 0 is no limit", "How"},
    OptionSpec{"job-limit", 0, Value, "N", "jobs at once; 0 is no limit", "How"},
    OptionSpec{"gpu-hours", 0, Value, "X",
               "GPU hours within the memory of fair share; 0 is no limit", "How"},
    OptionSpec{"members", 0, Value, "A,B", "who may use the group, all of them; '' is nobody",
               "How"},
    kJson,
    kServer,
    kHelp};
constexpr std::array kTokenOptions{
    OptionSpec{"user", 'u', Value, "USER", "whom it stands for (default: you)", "How"},
    OptionSpec{"role", 0, Value, "ROLE", "user, operator or admin (default user)", "How"},
    OptionSpec{"expires", 0, Value, "TIME",
               "good until: now+30days, 2027-01-01 (default: for ever)", "How"},
    kJson,
    kServer,
    kHelp};
constexpr std::array kTopOptions{
    OptionSpec{"once", '1', Nothing, "", "print once and leave", "Output"}, kUser, kMe, kServer,
    kHelp};

const std::vector<LiveCommand>& table() {
  static const std::vector<LiveCommand> commands{
      {"submit", "submit a job: a command, a script or a job file",
       "berth submit --gpus 2 --time 2h -- python3 train.py --lr 0.1\n"
       "berth submit job.sh            # its #SBATCH and #BERTH lines are read\n"
       "berth submit sweep.yaml        # one job or several\n"
       "berth submit --array 0-9%2 --wait -- ./trial",
       "[SCRIPT|FILE.yaml] [ARGS…]",
       "a batch script with its arguments, a job file, or -- COMMAND ARGS…", own_options().specs(),
       OperandOrder::Leading, run_submit},
      {"queue", "list waiting and running jobs",
       "berth queue\nberth queue --me --watch\nberth queue --state failed,timed-out --json",
       "[ID…]", "only these jobs, whatever their state", kQueueOptions, OperandOrder::Mixed,
       run_queue},
      {"cancel", "cancel jobs, or send them a signal",
       "berth cancel 12\nberth cancel --me --state pending\nberth cancel 12_[0-4]", "[ID…]",
       "job numbers; 12_3 is of an array", kCancelOptions, OperandOrder::Mixed, run_cancel},
      {"hold", "keep waiting jobs from starting", "berth hold 12 13", "[ID…]",
       "job numbers; 12_3 is of an array", kActionOptions, OperandOrder::Mixed, run_hold},
      {"release", "let held jobs start", "berth release 12", "[ID…]",
       "job numbers; 12_3 is of an array", kActionOptions, OperandOrder::Mixed, run_release},
      {"requeue", "stop running jobs and run them again", "berth requeue 12", "[ID…]",
       "job numbers; 12_3 is of an array", kActionOptions, OperandOrder::Mixed, run_requeue},
      {"suspend", "freeze running jobs in place", "berth suspend 12", "[ID…]",
       "job numbers; 12_3 is of an array", kActionOptions, OperandOrder::Mixed, run_suspend},
      {"resume", "let suspended jobs go on", "berth resume 12", "[ID…]",
       "job numbers; 12_3 is of an array", kActionOptions, OperandOrder::Mixed, run_resume},
      {"wait", "wait until jobs end; exit with their code", "berth wait 12 && echo done", "ID…",
       "job numbers; 12_3 is of an array", kWaitOptions, OperandOrder::Mixed, run_wait},
      {"logs", "print what a job has written",
       "berth logs 12\nberth logs -f 12\nberth logs --err -n 20 12", "ID", "the job", kLogsOptions,
       OperandOrder::Mixed, run_logs},
      {"show", "show everything about a job", "berth show 12", "ID…", "job numbers", kPlainOptions,
       OperandOrder::Mixed, run_show},
      {"change", "change a waiting job", "berth change 12 priority=5 time_limit=2h",
       "ID KEY=VALUE…", "the job, and keys of docs/formats/job.md", kPlainOptions,
       OperandOrder::Mixed, run_change},
      {"why", "explain why a job waits and what would let it start", "berth why 12", "ID",
       "the job", kPlainOptions, OperandOrder::Mixed, run_why},
      {"history", "list jobs that have ended",
       "berth history --me --since 1d\nberth history --outcome failed --limit 20", "", "",
       kHistoryOptions, OperandOrder::Mixed, run_history},
      {"notebook", "start Jupyter in a job and print the link to it",
       "berth notebook --gpus 1 --time 4h\nberth notebook --links\nberth notebook --stop", "[ID…]",
       "with --stop: job numbers", notebook_options().specs(), OperandOrder::Mixed, run_notebook},
      {"nodes", "list the nodes and the jobs on each device", "berth nodes", "", "", kPlainOptions,
       OperandOrder::Mixed, run_nodes},
      {"node", "drain a node or bring it back",
       "berth node drain n3 --reason 'new fan'\nberth node resume n3", "drain|resume|down NAME…",
       "what to do, and with which nodes", kNodeOptions, OperandOrder::Mixed, run_node},
      {"policy", "show or change the policy", "berth policy\nberth policy set las --set quantum=60",
       "[set NAME]", "the new policy; see `berth policies`", kPolicyOptions, OperandOrder::Mixed,
       run_policy},
      {"share", "show or set fair shares and limits of users and groups",
       "berth share list\nberth share set ann --gpu-limit 8\nberth share set vision --group "
       "--shares 3 --members ann,bob",
       "[list|set NAME]", "what to do, and with whom", kShareOptions, OperandOrder::Mixed,
       run_share},
      {"token", "make, list or revoke tokens for access over the network",
       "berth token make laptop --expires now+30days\nberth token list\nberth token revoke laptop",
       "make NAME|list|revoke NAME", "what to do, and with which", kTokenOptions,
       OperandOrder::Mixed, run_token},
      {"top", "show the cluster on one screen, live", "berth top\nberth top --me", "", "",
       kTopOptions, OperandOrder::Mixed, run_top},
  };
  return commands;
}

}  // namespace

std::span<const LiveCommand> live_commands() { return table(); }

const LiveCommand* find_live_command(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &LiveCommand::name);
  return found == table().end() ? nullptr : &*found;
}

bool asks_for_help(const LiveCommand& command, std::span<const std::string> words) {
  return parse_options(command.options, words, command.order).has("help");
}

int run_live(const LiveCommand& command, std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(command.options, words, command.order);
  Error error;
  for (const OptionFault& fault : parsed.faults)
    error.messages.push_back(fmt::format("{}: {}", command.name, fault.text));
  if (command.operands.empty() && !parsed.operands.empty())
    error.messages.push_back(
        fmt::format("{}: what is '{}'? (see --help)", command.name, parsed.operands.front()));
  if (!error.messages.empty()) return console.complain(kMisuse, error);
  return command.run(Call{console, parsed});
}

}  // namespace berth::client
