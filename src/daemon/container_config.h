// `containers:` of the configuration: which runtime is used, and how each is called.
#pragma once

#include <yaml-cpp/yaml.h>

#include "exec/container.h"
#include "model/yaml_fields.h"

namespace berth {

void read_containers(YamlFields& fields, const YAML::Node& node, ContainerOptions& containers);

}  // namespace berth
