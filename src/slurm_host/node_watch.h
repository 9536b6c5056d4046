// Nodes that take no jobs of ours for now: Slurm has them down, drained, reserved or asleep, does
// not know them any more, or jobs that we did not place hold GPUs there. To policies they are
// drained: what runs there goes on. Told as settings of the journal ("node/n1"); one that a person
// has made stands.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster.h"
#include "slurm/facts.h"
#include "store/record.h"

namespace berth {

/// By node: jobs that hold GPUs there around us, for people.
using ForeignJobs = std::map<std::string, std::vector<std::string>>;

/// What has to be set. `setting`: as it is set now.
[[nodiscard]] std::vector<SettingRecord> node_settings(
    const Cluster& cluster, const std::vector<slurm::Node>& nodes, const ForeignJobs& foreign,
    const std::function<std::optional<std::string>(const std::string&)>& setting);

}  // namespace berth
