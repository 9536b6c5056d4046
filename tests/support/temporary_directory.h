// A directory of a test's own, gone with it. In memory where there is such a place: tests that open
// thousands of databases do not wear a disk.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "base/check.h"

namespace berth::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const bool has_memory = ::access("/dev/shm", W_OK | X_OK) == 0;
    path_ = has_memory ? "/dev/shm/berth-test-XXXXXX"
                       : (std::filesystem::temp_directory_path() / "berth-test-XXXXXX").string();
    BERTH_CHECK(::mkdtemp(path_.data()) != nullptr, "a temporary directory can be made");
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace berth::test
