// Models by the cores they want on one GPU (the CPU poster's table), as profiles: 320 samples a
// second on the GPU, and a curve ln C + 0.2 C that feeds exactly that at the sweet point.
#pragma once

#include <string>

#include "base/portable_math.h"
#include "perf/profile.h"

namespace berth::test {

[[nodiscard]] inline Profile cpu_model(std::string name, std::int32_t theta,
                                       double truth_over_belief = 1) {
  Profile profile;
  profile.name = std::move(name);
  profile.batch = 32;
  profile.iteration = {.alpha = 0, .beta = 0.1 / 32, .gradient_bytes = 0, .overlap = 1};
  const double gain = 320 / (portable_log(theta) + 0.2 * theta) * truth_over_belief;
  profile.cpu = {.log_gain = gain, .linear_gain = 0.2 * gain, .plateau = 320, .theta = theta};
  return profile;
}

[[nodiscard]] inline ProfileSet cpu_poster_models() {
  ProfileSet profiles;
  profiles.add(cpu_model("LeNet", 20));
  profiles.add(cpu_model("AlexNet", 19));
  profiles.add(cpu_model("OverFeat", 22));
  profiles.add(cpu_model("GoogLeNet", 11));
  profiles.add(cpu_model("LanguageModel", 1));
  profiles.add(cpu_model("Bi-Att-Flow", 8));
  profiles.add(cpu_model("DeepSpeech", 3));
  profiles.add(cpu_model("WaveNet", 3));
  return profiles;
}

}  // namespace berth::test
