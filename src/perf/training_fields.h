// The part of a profile file that speaks of training: how the loss falls, the gradient's noise
// scale by progress, and within which limits a scheduler may choose the batch. Private to
// perf/profile_file.h.
#pragma once

#include "model/yaml_fields.h"
#include "perf/profile.h"

namespace berth {

/// Reads `loss`, `noise` and `batch_limits` of one profile; what is wrong is told to `yaml`.
void read_training_fields(YamlFields& yaml, const YAML::Node& row, Profile& profile);

}  // namespace berth
