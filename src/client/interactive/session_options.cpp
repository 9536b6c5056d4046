#include "client/interactive/session_options.h"

#include <algorithm>
#include <array>

namespace berth::client {

namespace {

using enum Takes;
using Row = OptionTable::Row;

/// Read elsewhere: by srun inside the job, or by the command itself.
Result<void> leave_alone(Draft&, std::string_view) { return {}; }

Row own(char letter, std::string_view name, Takes takes, std::string_view value,
        std::string_view help) {
  return {{name, letter, takes, value, help}, leave_alone, {}};
}

/// Of sbatch alone: what concerns files, scripts and waiting.
constexpr std::array<std::string_view, 13> kOfSbatch{
    "array",     "wrap",    "wait",       "parsable", "output",      "error",     "input",
    "open-mode", "requeue", "no-requeue", "batch",    "export-file", "ignore-pbs"};

std::vector<Row> both() {
  return {
      own(0, "bell", Nothing, "", "ring the terminal's bell when the job starts"),
      own(0, "no-bell", Nothing, "", "do not (default)"),
      own('I', "immediate", Maybe, "SECONDS", "give up if it cannot start at once (or by then)"),
      own(0, "server", Value, "SOCKET", "the scheduler's socket (default: BERTH_SOCKET)"),
      own(0, "help", Nothing, "", "this text"),
      own(0, "usage", Nothing, "", "the options in short"),
      own('V', "version", Nothing, "", "the version"),
      {{"x11", 0, Maybe, "", ""}, nullptr, "programs find the display in the environment"},
  };
}

std::vector<Row> of_salloc() {
  return {
      own(0, "no-shell", Nothing, "", "hold the resources and leave; srun --jobid uses them"),
      {{"kill-command", 'K', Maybe, "", ""},
       nullptr,
       "what runs in an allocation ends with it, here always"},
  };
}

std::vector<Row> of_srun() {
  std::vector<Row> rows{
      own(0, "pty", Maybe, "", "on a terminal of its own"),
      own(0, "jobid", Value, "N", "step into this running job"),
      own(0, "overlap", Nothing, "", "share what other steps of the job use"),
      own(0, "exact", Nothing, "", "only the cores and devices it asks for"),
      own('l', "label", Nothing, "", "the task's number before each line"),
      own('K', "kill-on-bad-exit", Maybe, "0|1", "one task that fails ends the others"),
      own('u', "unbuffered", Nothing, "", "pass on output at once"),
      own('i', "input", Value, "FILE", "standard input of the tasks"),
      own('o', "output", Value, "FILE", "standard output of the tasks"),
      own('e', "error", Value, "FILE", "standard error of the tasks"),
      own(0, "open-mode", Value, "MODE", "append or truncate"),
      own('W', "wait", Value, "SECONDS", "for the others after the first task ended"),
      own(0, "quit-on-interrupt", Nothing, "", "the first Ctrl-C ends it"),
      own('X', "disable-status", Nothing, "", "the first Ctrl-C ends it"),
      own(0, "cpu-bind", Value, "", ""),
      own(0, "mpi", Value, "", ""),
      own('T', "threads", Value, "", ""),
      own('r', "relative", Value, "", ""),
      own('E', "preserve-env", Nothing, "", ""),
      own(0, "multi-prog", Nothing, "", ""),
      own(0, "ntasks-per-core", Value, "", ""),
      own(0, "slurmd-debug", Value, "", ""),
      own(0, "epilog", Value, "", ""),
      own(0, "prolog", Value, "", ""),
      own(0, "task-epilog", Value, "", ""),
      own(0, "task-prolog", Value, "", ""),
      own(0, "tres-bind", Value, "", ""),
      own(0, "bcast", Maybe, "", ""),
      own(0, "accel-bind", Value, "", ""),
      own(0, "compress", Maybe, "", ""),
      own(0, "interactive", Nothing, "", ""),
      own(0, "whole", Nothing, "", ""),
      own(0, "het-group", Value, "", ""),
      own(0, "resv-ports", Maybe, "", ""),
      own(0, "msg-timeout", Value, "", ""),
      own(0, "bcast-exclude", Value, "", ""),
      own(0, "send-libs", Maybe, "", ""),
      own(0, "debugger-test", Nothing, "", ""),
      own(0, "external-launcher", Maybe, "", ""),
      own(0, "treewidth", Value, "", ""),
      own(0, "wait-for-children", Nothing, "", ""),
      {{"export-file", 0, Value, "", ""}, nullptr, "use --export"},
      own('Z', "no-allocate", Nothing, "", ""),
  };
  return rows;
}

/// sbatch's where nothing of our own has the name; a letter goes to our own.
OptionTable table_of(std::vector<Row> rows) {
  for (Row& row : both()) rows.push_back(row);
  const auto is_ours = [&](const Row& other) {
    return std::ranges::any_of(rows,
                               [&](const Row& row) { return row.spec.name == other.spec.name; });
  };
  const auto has_letter = [&](char letter) {
    return letter != 0 &&
           std::ranges::any_of(rows, [&](const Row& row) { return row.spec.letter == letter; });
  };
  std::vector<Row> rest;
  for (Row& row : sbatch_rows()) {
    if (is_ours(row) || std::ranges::find(kOfSbatch, row.spec.name) != kOfSbatch.end()) continue;
    if (has_letter(row.spec.letter)) row.spec.letter = 0;
    rest.push_back(row);
  }
  rest.insert(rest.begin(), rows.begin(), rows.end());
  return OptionTable(std::move(rest));
}

}  // namespace

const OptionTable& srun_outside_options() {
  static const OptionTable table = table_of(of_srun());
  return table;
}

const OptionTable& salloc_options() {
  static const OptionTable table = table_of(of_salloc());
  return table;
}

}  // namespace berth::client
