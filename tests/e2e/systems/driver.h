// A driver of devices that a test plays.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/cli/program.h"

namespace berth::test {

/// A driver of our own: what its devices use and how busy they are is in a file.
class Driver {
 public:
  explicit Driver(int gpus) {
    ::setenv("FAKE_NVML_COUNT", std::to_string(gpus).c_str(), 1);
    ::setenv("FAKE_NVML_GPUS", (folder_ / "gpus").c_str(), 1);
  }
  ~Driver() {
    ::unsetenv("FAKE_NVML_COUNT");
    ::unsetenv("FAKE_NVML_GPUS");
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  /// Whole or not at all for whoever reads.
  void say(const std::string& text) const {
    static_cast<void>(folder_.file("gpus.new", text));
    ASSERT_EQ(std::rename((folder_ / "gpus.new").c_str(), (folder_ / "gpus").c_str()), 0);
  }
  [[nodiscard]] const TempFolder& folder() const noexcept { return folder_; }
  [[nodiscard]] static std::string lines() {
    return fmt::format("power:\n  nvml_library: {}\n", BERTH_FAKE_NVML);
  }

 private:
  TempFolder folder_;
};

}  // namespace berth::test
