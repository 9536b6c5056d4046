// What Slurm says of its jobs, nodes and settings, as plain data: the same for every version of
// Slurm and for both ways of asking (slurm/link.h). Times are Unix seconds, 0: not yet or not
// known. What users write freely (names, comments) may hold any byte; it is data, never structure.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::slurm {

/// One run of one job. A killed slurmctld hands out ids again and a requeue makes a new run, so
/// only all three name it. An array whose tasks still wait is one record under its first id.
struct RunKey {
  std::uint32_t job = 0;
  std::uint32_t restarts = 0;
  std::int64_t submitted = 0;  // reset by every requeue
  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};

enum class JobPhase : std::uint8_t {
  Pending,
  Running,
  Suspended,
  Completed,
  Cancelled,
  Failed,
  TimedOut,
  NodeFailed,
  Preempted,
  BootFailed,
  Deadline,
  OutOfMemory,
  Unknown,  // of a newer Slurm
};
[[nodiscard]] std::string_view to_string(JobPhase phase) noexcept;  // Slurm's word: "PENDING"
/// Whether its run has ended for good.
[[nodiscard]] constexpr bool is_over(JobPhase phase) noexcept {
  return phase >= JobPhase::Completed && phase != JobPhase::Unknown;
}

/// What a job asks of one kind of device, or holds of it.
struct GresCount {
  std::string name;  // "gpu", "shard"
  std::string type;  // "a100"; empty: any
  std::int64_t count = 0;
  std::vector<std::int32_t> indices{};  // of devices that are held, where Slurm tells them
  friend bool operator==(const GresCount&, const GresCount&) = default;
};

/// What a job holds of one node.
struct HeldNode {
  std::string node;
  std::vector<GresCount> gres{};
  std::int32_t cpus = 0;        // 0: not told
  std::int64_t memory_mib = 0;  // 0: not told
};

struct Job {
  RunKey key;
  std::uint32_t array = 0;    // id of its array's first job; 0: no array
  std::string array_tasks{};  // "3" of one task, "2-4%2" of those that still wait together
  std::uint32_t uid = 0;
  std::string user{}, account{}, partition{}, qos{}, name{};
  JobPhase phase = JobPhase::Unknown;
  bool completing = false;     // its processes are being ended; as text then always Running
  bool configuring = false;    // its nodes boot
  std::string reason{};        // why it waits, in Slurm's word: "Resources", "JobHeldUser"
  std::uint32_t priority = 0;  // 0: held
  bool is_batch = true;
  bool may_requeue = true;
  std::int64_t eligible = 0, started = 0, ended = 0;  // started: expected while it waits
  std::int64_t time_limit = 0;                        // seconds; 0: none
  std::int32_t min_nodes = 1, max_nodes = 0;          // max 0: no more than min
  std::int32_t tasks = 0, cpus = 0;                   // asked for, in all
  std::int64_t memory_mib = 0;                        // asked for, in all; 0: not said
  /// Asked for, as the request puts it; a job may ask in several of these ways.
  std::vector<GresCount> per_job{}, per_node{}, per_task{}, per_socket{};
  std::string tres_requested{}, tres_held{};  // "cpu=16,mem=16000M,node=2,gres/gpu=16"
  std::vector<HeldNode> held{};               // empty: it holds none
  std::vector<std::string> required_nodes{}, excluded_nodes{};
  std::string features{}, dependency{}, reservation{};
  bool exclusive = false;
  std::string comment{}, admin_comment{};
  std::int32_t exit_code = 0, signal = 0;

  /// GPUs in all that it holds, or asks for while it holds none; shards are not counted.
  [[nodiscard]] std::int32_t gpus() const noexcept;
  /// The type of GPU that it asks for or holds; empty: any.
  [[nodiscard]] std::string gpu_type() const;
  /// Parts of a GPU that it asks for or holds.
  [[nodiscard]] std::int32_t shards() const noexcept;
};

struct Node {
  std::string name;
  std::string state{};  // Slurm's words, upper case: "IDLE", "MIXED", "DOWN+DRAIN"
  std::string reason{};
  std::vector<std::string> partitions{}, features{};
  std::int32_t cpus = 0, cpus_held = 0;
  std::int32_t sockets = 1;
  std::int64_t memory_mib = 0, memory_held_mib = 0;
  std::vector<GresCount> gres{}, gres_held{};
  /// Takes new jobs, as far as its state tells: neither down, drained, reserved nor asleep.
  [[nodiscard]] bool is_usable() const noexcept;
  friend bool operator==(const Node&, const Node&) = default;
};

struct Partition {
  std::string name;
  bool is_up = true;
  bool is_default = false;
  std::vector<std::string> nodes{};
  std::int64_t max_time = 0, default_time = 0;  // seconds; 0: none
  std::int32_t priority_tier = 1;
  bool shares_nodes = false;                 // OverSubscribe=FORCE or YES
  std::map<std::string, std::string> all{};  // every key as `scontrol show partition` has it
};

/// A switch (topology/tree) or a block (topology/block).
struct Switch {
  std::string name;
  std::int32_t level = 0;
  std::vector<std::string> nodes{};     // below it, however deep
  std::vector<std::string> switches{};  // directly below it
};

struct Reservation {
  std::string name;
  std::int64_t begins = 0, ends = 0;
  std::vector<std::string> nodes{}, users{}, accounts{};
  bool is_active = false;
  std::string flags{};
};

/// `scontrol show config`: every key; and what Berth asks of it.
struct Config {
  std::map<std::string, std::string> all{};
  [[nodiscard]] std::string value(std::string_view key) const;  // empty: not there
};

/// 24.11.5 is {24, 11, 5}. Unknown ones are compared by what they say.
struct Version {
  std::int32_t year = 0, month = 0, micro = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
[[nodiscard]] std::string to_string(Version version);
/// Of "24.11.5", "slurm-wlm 22.05.8"; nothing of what is no version.
[[nodiscard]] std::optional<Version> parse_version(std::string_view text);

/// Everything that one round of asking tells of the present.
struct Snapshot {
  std::int64_t at = 0;  // when it was taken, by our clock
  std::vector<Job> jobs{};
  std::vector<Node> nodes{};
};

}  // namespace berth::slurm
