// The part `power:` of the configuration, with the names of Slurm's power saving.
#pragma once

#include <string>

#include <yaml-cpp/yaml.h>

#include "daemon/node_power.h"
#include "model/yaml_fields.h"

namespace berth {

/// `manager` is who decides, as --power takes it. Undefined: nothing changes. What is wrong is kept
/// in `fields`.
void read_power(YamlFields& fields, const YAML::Node& power, std::string& manager,
                PowerOptions& options);

}  // namespace berth
