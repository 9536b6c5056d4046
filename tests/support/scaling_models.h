// Models whose speed by the number of GPUs is simple enough to reckon with in a test.
#pragma once

#include "perf/profile.h"

namespace berth::test {

/// Twice the GPUs are twice as fast: nothing has to be sent.
inline ProfileSet perfect() {
  ProfileSet profiles;
  profiles.edit(ProfileSet::fallback()).iteration = {
      .alpha = 0, .beta = 0.01, .gradient_bytes = 0, .overlap = 2};
  return profiles;
}

/// Computes long and has little to send, so that more GPUs are worth it.
inline ProfileSet scalable() {
  ProfileSet profiles;
  Profile& profile = profiles.edit(ProfileSet::fallback());
  profile.batch = 64;
  profile.iteration = {.alpha = 0.001, .beta = 0.01, .gradient_bytes = 1e6, .overlap = 2};
  return profiles;
}

}  // namespace berth::test
