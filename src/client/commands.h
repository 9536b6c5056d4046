// The commands of the live scheduler: their options and examples as data, from which help and
// completion are made, and the function that runs each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/console.h"
#include "client/options.h"
#include "client/scheduler.h"

namespace berth::client {

/// A command under way.
struct Call {
  Console& console;
  const Parsed& parsed;

  [[nodiscard]] bool has(std::string_view option) const { return parsed.has(option); }
  [[nodiscard]] std::string value(std::string_view option) const { return parsed.value(option); }
  [[nodiscard]] const std::vector<std::string>& operands() const { return parsed.operands; }
  /// To the scheduler that --server and the environment name.
  [[nodiscard]] Result<Scheduler> scheduler() const;
};

struct LiveCommand {
  std::string_view name, summary, examples;
  std::string_view operands;      // "ID…"; empty: none
  std::string_view operand_help;  // what they are
  std::span<const OptionSpec> options;
  OperandOrder order = OperandOrder::Mixed;
  int (*run)(const Call& call) = nullptr;
};

[[nodiscard]] std::span<const LiveCommand> live_commands();
/// Null if there is none of this name.
[[nodiscard]] const LiveCommand* find_live_command(std::string_view name);
/// Whether --help is among the words that belong to the command itself.
[[nodiscard]] bool asks_for_help(const LiveCommand& command, std::span<const std::string> words);
/// The words behind the command's name; answers the exit code.
[[nodiscard]] int run_live(const LiveCommand& command, std::span<const std::string> words,
                           Console& console);

// One per command, in the source of their kind.
[[nodiscard]] int run_submit(const Call& call);  // submit_command.cpp
[[nodiscard]] int run_queue(const Call& call);   // queue_command.cpp
[[nodiscard]] int run_history(const Call& call);
[[nodiscard]] int run_show(const Call& call);
[[nodiscard]] int run_cancel(const Call& call);  // action_commands.cpp
[[nodiscard]] int run_hold(const Call& call);
[[nodiscard]] int run_release(const Call& call);
[[nodiscard]] int run_requeue(const Call& call);
[[nodiscard]] int run_suspend(const Call& call);
[[nodiscard]] int run_resume(const Call& call);
[[nodiscard]] int run_change(const Call& call);
[[nodiscard]] int run_wait(const Call& call);  // follow_commands.cpp
[[nodiscard]] int run_logs(const Call& call);
[[nodiscard]] int run_why(const Call& call);    // why_command.cpp
[[nodiscard]] int run_nodes(const Call& call);  // cluster_commands.cpp
[[nodiscard]] int run_node(const Call& call);
[[nodiscard]] int run_policy(const Call& call);
[[nodiscard]] int run_share(const Call& call);
[[nodiscard]] int run_token(const Call& call);
[[nodiscard]] int run_top(const Call& call);  // top_command.cpp

/// The scheduler at `server` or where the environment says; one that restarts is waited for, and
/// `console`, which outlives it, hears of it.
[[nodiscard]] Result<Scheduler> patient_scheduler(std::string_view server, const Console& console);
/// The exit code of a job as a shell would have seen it; 1 if it never had one.
[[nodiscard]] int exit_code_of(const JobRow& job);
/// Until all of them are over, over restarts of the scheduler; the jobs as they ended.
[[nodiscard]] Result<std::vector<JobRow>> wait_for(Scheduler& scheduler,
                                                   const std::vector<JobNumber>& jobs,
                                                   const Console& console);
/// What became of it, for people: names the job.
[[nodiscard]] std::string result_text(const VerbResult& result);
[[nodiscard]] std::int64_t unix_now();  // seconds

}  // namespace berth::client
