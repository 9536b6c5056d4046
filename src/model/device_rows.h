// The device types of a cluster file: the rows under `devices`, over the built-in catalogue, and
// the pools that groups of nodes make of them.
#pragma once

#include <vector>

#include <yaml-cpp/yaml.h>

#include "base/id.h"
#include "model/catalogue.h"
#include "model/yaml_fields.h"

namespace berth {

class DeviceRows {
 public:
  /// Complaints go to `yaml`, which must outlive this.
  explicit DeviceRows(YamlFields& yaml) : yaml_(yaml) {}

  void read(const YAML::Node& rows);
  /// The pool of a group's device type, added to `pools` if it is new there.
  [[nodiscard]] PoolId pool_of(const YAML::Node& group, std::vector<DeviceType>& pools);

 private:
  void read_device(const YAML::Node& row);
  void read_kind(const YAML::Node& row, DeviceType& device);

  YamlFields& yaml_;
  std::vector<DeviceType> rows_;
};

}  // namespace berth
