// What a person asks a running scheduler to do: the program, where and with what it runs, how it
// may be treated, and what it waits for. One struct for the command line, job files, #SBATCH lines,
// the API and the journal; its JSON form (model/job_spec_json.h) is the only one that is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace berth {

/// The number people see: from 1, never used again.
using JobNumber = std::uint64_t;

/// A job of many: each has a number of its own; indices as written, "0-9:3,20%2" is {0,3,6,9,20} at
/// most 2 at once.
struct ArraySpec {
  std::vector<std::int32_t> indices;  // ascending, no doubles
  std::int32_t at_once = 0;           // 0 = no limit
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

enum class DependencyKind : std::uint8_t {
  AfterOk,     // it completed
  AfterAny,    // it is over
  AfterNotOk,  // it failed
  After,       // it has started
  Singleton,   // no other job of this name and user is before this one
  AfterCorr,   // the job of the same index in that array completed
};

/// Which job of an array a dependency means; a job that is no array has only itself.
inline constexpr std::int32_t kWholeArray = -1;

struct Dependency {
  DependencyKind kind = DependencyKind::AfterOk;
  JobNumber job = 0;                 // 0 with Singleton
  std::int32_t index = kWholeArray;  // "12_3"
  std::int32_t minutes = 0;          // of After: so long after its start, "after:12+5"
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

enum class OpenMode : std::uint8_t { Truncate, Append };

struct JobSpec {
  // What runs. Either a script (its text travels with the job) or a command.
  std::string script;
  std::vector<std::string> command;  // argv, or the arguments of the script
  std::string workdir;               // absolute
  std::map<std::string, std::string> env;
  std::string input;   // path; empty: /dev/null
  std::string output;  // pattern: %j %x %u %A %a %N %n %t %%; empty: berth-%j.out
  std::string error;   // empty: the same as output
  OpenMode open_mode = OpenMode::Truncate;
  std::string umask;      // octal, as in "0027"; empty: 022
  std::string container;  // image that it runs in; empty: none

  // Who.
  std::string name;
  std::string user;   // set by the scheduler from who asks
  std::string group;  // whose share it uses; empty: the user's own
  std::string queue;
  std::string comment;
  std::string qos;          // kept and shown, decides nothing
  std::string submit_host;  // where it was submitted

  // With what.
  std::int32_t gpus = 1;
  std::int32_t gpus_min = 0;  // elastic range; 0 = not elastic
  std::int32_t gpus_max = 0;
  std::int32_t gpu_milli = 1000;     // share of one device
  std::string gpu_type;              // "a100|v100"
  std::int32_t gpu_memory_mib = 0;   // least memory of each device; 0 = not said
  std::int32_t cpus = 0;             // for the whole job; 0 = not said
  std::int32_t memory_mib = 0;       // for the whole job; 0 = not said
  std::int32_t tasks = 1;            // processes of a gang, each with its RANK
  bool ranks = false;                // a single task is a gang of one: RANK, WORLD_SIZE, MASTER_*
  std::vector<std::string> nodes;    // only these; empty: any
  std::vector<std::string> exclude;  // not these
  bool exclusive = false;

  // How it may be treated.
  std::int64_t time_limit = 0;  // seconds; 0 = the queue's default; or kUnlimitedTime
  std::int64_t estimate = 0;    // seconds it will likely run; 0 = not said
  std::int32_t priority = 0;
  double weight = 1;
  bool preemptible = true;
  bool requeue = true;                            // runs again after a lost node or a preemption
  std::int32_t max_retries = 0;                   // after a failure of its own
  std::optional<std::int32_t> requeue_exit_code;  // this exit means: run me again
  std::int32_t warn_signal = 15;                  // before a preemption and before the limit
  std::int64_t warn_seconds = 0;                  // so long before the limit; 0 = at the limit
  bool warn_shell = false;                        // not to what its own processes have started
  std::int64_t grace_seconds = 30;                // between the warning and the kill
  std::optional<std::int64_t> deadline;           // Unix seconds
  bool soft_deadline = false;

  // What it waits for.
  bool hold = false;
  std::int64_t begin = 0;  // Unix seconds; 0 = now
  std::vector<Dependency> dependencies;
  bool any_dependency = false;  // one of them is enough
  bool keep_unmet = false;      // stays in the queue though its dependencies can never be met
  std::optional<ArraySpec> array;
  std::vector<std::string> grid;  // "lr=0.1,0.01": an array over all combinations (model/grid.h)
  bool grid_zip = false;          // the first values together, then the second ones

  // What is known of it.
  std::string model;
  std::string study;
  std::int32_t batch_size = 0;
  std::int64_t iterations = 0;
  JobKind kind = JobKind::Training;

  std::string key;  // of the client: the same key again is the same job

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

/// What a policy sees of it. Ids and words go into these names.
[[nodiscard]] JobRequest request_of(const JobSpec& spec, JobNumber number, Time submit,
                                    Names& names);
/// What the user has said of its run time: an estimate, or else the limit; zero: nothing.
[[nodiscard]] Duration said_duration(const JobSpec& spec) noexcept;

/// Limits that hold for every request, whoever makes it.
inline constexpr std::size_t kMaxScriptBytes = 4U << 20U;
inline constexpr std::size_t kMaxEnvironmentBytes = 1U << 20U;
inline constexpr std::size_t kMaxArraySize = 10'000;
inline constexpr std::size_t kMaxNameBytes = 256;

/// A time limit that asks for as long as the queue gives: its maximum, or none if it has none.
/// Longer than any limit that can be written in figures.
inline constexpr std::int64_t kUnlimitedTime = 3'200'000'000;

/// "0-9:3,20%2"; the error says which part is wrong.
[[nodiscard]] Result<ArraySpec> parse_array(std::string_view text);
/// "afterok:12:13_4,after:9+5"; a '?' instead of ',' means that one is enough.
struct Dependencies {
  std::vector<Dependency> all;
  bool any = false;
};
[[nodiscard]] Result<Dependencies> parse_dependencies(std::string_view text);
/// Slurm's ways of writing a time limit and plain ones: "30" (minutes), "1:30:00", "2-12", "90s",
/// "1.5h", "infinite" (0).
[[nodiscard]] Result<std::int64_t> parse_time_limit(std::string_view text);
/// What a person writes for the limit of a job: the same, but "unlimited", "infinite" and 0 mean
/// kUnlimitedTime.
[[nodiscard]] Result<std::int64_t> parse_job_limit(std::string_view text);

[[nodiscard]] std::string_view to_string(DependencyKind kind) noexcept;
/// "12_3", "12+5": what stands behind the kind.
[[nodiscard]] std::string to_text(const Dependency& on);
[[nodiscard]] std::string to_text(const std::vector<Dependency>& dependencies, bool any);
[[nodiscard]] std::string to_text(const ArraySpec& array);

}  // namespace berth
