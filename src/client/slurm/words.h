// Values as Slurm writes them: spans, moments, amounts, resources, people, lists of hosts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::client::slurm {

/// "00:04:05", "2-03:00:00".
[[nodiscard]] std::string day_clock(double seconds);
/// Of processors, with thousandths below an hour: "00:04.250"; nothing: "00:00:00".
[[nodiscard]] std::string processor_clock(double seconds);
/// "2026-11-16T15:04:05" from Unix microseconds; 0: `nothing`.
[[nodiscard]] std::string moment_or(std::int64_t micros, std::string_view nothing);
/// "Wed Nov 18 03:34:47 2026" of Unix seconds, local, with its line break.
[[nodiscard]] std::string asctime_text(std::int64_t seconds);
/// "3:0": exit code and signal.
[[nodiscard]] std::string exit_pair(std::int32_t code, std::int32_t signal);

/// Who somebody is on this machine; a name that it does not know keeps its name.
struct Account {
  std::string user, group;
  std::string uid, gid;  // in figures, or the name
};
[[nodiscard]] Account account_of(const std::string& user);

/// How amounts are written: in the largest unit that leaves them whole, in a given one with two
/// places, or as they are.
struct Units {
  char wanted = 0;  // K, M, G, T or P; 0: none in particular
  bool is_kept = false;
};
/// `value` is given in `unit` (0, K or M): "250G", "2000M", "1.95G".
[[nodiscard]] std::string amount(double value, char unit, Units units = {});

/// What a job has or asks for.
struct Resources {
  std::int32_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::int32_t nodes = 0;
  std::int32_t gpus = 0;
  std::string gpu_type{};
};
/// scontrol's order is that of its tables, sacct's that of letters.
enum class TresOrder : bool { Table, Letters };
/// "cpu=2,mem=2000M,node=1,gres/gpu=1,gres/gpu:v100=1"; nothing: empty.
[[nodiscard]] std::string tres(const Resources& resources, TresOrder order, Units units = {});
/// "gres/gpu:v100:2"; without GPUs empty.
[[nodiscard]] std::string gres_request(std::int32_t gpus, std::string_view type);

/// "0-3,7" of any order.
[[nodiscard]] std::string index_ranges(std::vector<std::int32_t> indices);
/// Of "n[1-3,07],login": every name, in this order.
[[nodiscard]] Result<std::vector<std::string>> expanded_hosts(std::string_view list);
/// "n[1-3],login": neighbours put together, in the order in which they come.
[[nodiscard]] std::string folded_hosts(const std::vector<std::string>& names);

[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] std::string upper(std::string_view text);
/// Whether it is among the parts of a list by commas; an empty list holds everything.
[[nodiscard]] bool is_listed(std::string_view list, std::string_view one);

}  // namespace berth::client::slurm
