#include "exec/remove_tree.h"

#include <filesystem>
#include <system_error>

namespace berth {

namespace fs = std::filesystem;

bool remove_tree(const std::string& path) noexcept {
  try {
    std::error_code error;
    fs::remove_all(path, error);
    if (!error) return true;
    // A directory that may not be written to keeps what is in it.
    const auto open_up = [](const fs::path& folder) {
      std::error_code ignored;
      fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, ignored);
    };
    if (fs::symlink_status(path, error).type() != fs::file_type::directory) return false;
    open_up(path);
    constexpr auto kOnward = fs::directory_options::skip_permission_denied;
    for (auto at = fs::recursive_directory_iterator(path, kOnward, error);
         !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      std::error_code unknown;
      if (at->symlink_status(unknown).type() == fs::file_type::directory) open_up(at->path());
    }
    fs::remove_all(path, error);
    return !error;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace berth
