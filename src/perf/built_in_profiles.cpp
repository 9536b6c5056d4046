#include "base/file.h"
#include "perf/built_in_table.h"
#include "perf/profile_file.h"

namespace berth {

const ProfileSet& built_in_profiles() {
  static const ProfileSet kProfiles = built_in_table();
  return kProfiles;
}

Result<ProfileSet> load_profiles(const std::string& path) {
  BERTH_TRY(const std::string text, read_file(path));
  return parse_profiles(text, path, built_in_profiles());
}

}  // namespace berth
