#include "lab/reproduce/synthetic.h"

namespace berth {

ProfileSet busy_profiles(std::span<const BusyModel> models) {
  ProfileSet set;
  for (const BusyModel& model : models) {
    Profile profile;
    profile.name = model.name;
    profile.gpu_utilisation = model.utilisation;
    profile.memory = {.fixed_mib = 4000, .per_sample_mib = 0};
    static_cast<void>(set.add(profile));
  }
  return set;
}

}  // namespace berth
