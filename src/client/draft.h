// A job while it is being put together from a script's lines, the environment and the command line:
// later words win. What is said of nodes, tasks and cores the Slurm way is kept as said and becomes
// totals of a JobSpec only in settle(), when everything is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/options.h"
#include "model/job_spec.h"

namespace berth::client {

/// Where and when the request is made.
struct SubmitContext {
  std::string directory;  // absolute
  std::map<std::string, std::string> environment;
  std::int64_t now = 0;  // Unix seconds
  std::string host;      // this machine
  std::string umask;     // octal

  [[nodiscard]] bool is_in_a_job() const { return environment.contains("BERTH_JOB_ID"); }
};

struct Draft {
  JobSpec spec;

  // As Slurm says it; absent: not said.
  std::int64_t nodes = 1;
  std::optional<std::int64_t> tasks, tasks_per_node, tasks_per_gpu, cpus_per_task, cpus_per_gpu;
  std::optional<std::int64_t> gpus, gpus_per_node, gpus_per_task;
  std::optional<std::int64_t> memory_mib, memory_per_cpu, memory_per_gpu;
  bool is_slurm = false;  // a job without a word of GPUs has none

  std::string exported = "ALL";  // ALL, NONE, or names and NAME=VALUE
  std::map<std::string, std::string> extra_env;
  std::map<std::string, std::string> asked;  // what Slurm tells a job of its own request
  bool has_grid = false;                     // by the command line or a script, not by a job file
  std::optional<std::string> wrap;
  std::string cluster;  // named with --clusters

  // What the command does with it.
  bool wait = false, dry_run = false, test_only = false, parsable = false, quiet = false,
       json = false, help = false;
  std::string server;

  std::vector<std::string> notes;  // what could not be honoured, for people
  SubmitContext context;

  void note(std::string text) { notes.push_back(std::move(text)); }
};

/// Options with what each does to a draft.
class OptionTable {
 public:
  using Take = Result<void> (*)(Draft& draft, std::string_view value);
  struct Row {
    OptionSpec spec;
    Take take = nullptr;         // null: cannot be honoured, see `instead`
    std::string_view instead{};  // why not, and what to do
  };
  explicit OptionTable(std::vector<Row> rows);

  [[nodiscard]] std::span<const OptionSpec> specs() const noexcept { return specs_; }
  /// Everything that was given, in order; what is wrong comes back with its word.
  [[nodiscard]] std::vector<OptionFault> apply(Draft& draft, const Parsed& parsed) const;

 private:
  std::vector<Row> rows_;
  std::vector<OptionSpec> specs_;  // of rows_, side by side for the parser
};

/// The rows of sbatch_options(), for commands that share them.
[[nodiscard]] std::vector<OptionTable::Row> sbatch_rows();
/// sbatch's options, as on its command line and on #SBATCH lines.
[[nodiscard]] const OptionTable& sbatch_options();
/// The rows of the table in docs/sbatch.md: every option and what happens to it, in order of name.
[[nodiscard]] std::string sbatch_option_rows();
/// Those of `berth submit` and of #BERTH lines, and their rows.
[[nodiscard]] const OptionTable& own_options();
[[nodiscard]] std::vector<OptionTable::Row> own_rows();

/// Totals from parts, the environment, the name, the program's own defaults. Afterwards the spec is
/// complete; `problems()` of model/job_spec_json.h may still find something wrong with it.
[[nodiscard]] Result<void> settle(Draft& draft);

/// "4" within [low, high].
[[nodiscard]] Result<std::int64_t> parse_count(std::string_view text, std::int64_t low,
                                               std::int64_t high);
/// "USR1@120", "B:TERM@60": the warning before the limit.
[[nodiscard]] Result<void> take_warning(Draft& draft, std::string_view text);

}  // namespace berth::client
