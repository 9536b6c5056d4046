// The catalogue of data/profiles/models.yaml as the build wrote it down (embed_profiles.cpp).
#pragma once

#include "perf/profile.h"

namespace berth {

[[nodiscard]] ProfileSet built_in_table();

}  // namespace berth
