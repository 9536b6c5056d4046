// What `scontrol -o show …` prints, read as facts. A record is one line `Key=value Key=value …`;
// values may hold spaces. The first of two equal keys counts: what people write stands behind what
// Slurm writes. Keys that are missing leave a fact at its default, keys that are not known are
// passed over, so that a newer Slurm can be read too.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "slurm/facts.h"

namespace berth::slurm {

/// One line; views into it.
[[nodiscard]] std::map<std::string_view, std::string_view> parse_record(std::string_view line);

/// `scontrol -o -d show node`
[[nodiscard]] Result<std::vector<Node>> parse_nodes(std::string_view text);
/// `scontrol -o show partition`
[[nodiscard]] Result<std::vector<Partition>> parse_partitions(std::string_view text);
/// `scontrol show topology`: switches of a tree, or blocks. Empty where Slurm has none.
[[nodiscard]] Result<std::vector<Switch>> parse_topology(std::string_view text);
/// `scontrol -o show res`, run with TZ=UTC
[[nodiscard]] Result<std::vector<Reservation>> parse_reservations(std::string_view text);
/// `scontrol show config`
[[nodiscard]] Config parse_config(std::string_view text);

/// What jobs hold of their nodes, by job, of `scontrol -o -d show job`. A name with a line break can
/// make a line that looks like another job's: jobs of which two lines tell are in `doubtful`
/// and not in `held`; ask for these one by one.
struct JobDetails {
  std::map<std::uint32_t, std::vector<HeldNode>> held{};
  std::set<std::uint32_t> doubtful{};
};
[[nodiscard]] JobDetails parse_job_details(std::string_view text);
/// The same of `scontrol -o -d show job ID`, where every line is of this job.
[[nodiscard]] std::vector<HeldNode> parse_one_job_detail(std::string_view text);

}  // namespace berth::slurm
