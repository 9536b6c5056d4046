// Compares a text with the file of tests/golden/wire that recorded it. BERTH_WRITE_GOLDEN=1 writes
// the file instead: the difference shows what a change says over the wire.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "project_paths.h"

namespace berth::test {

inline void expect_recorded(const std::string& file, const std::string& now) {
  const std::string path = std::string(BERTH_SOURCE_DIR) + "/tests/golden/wire/" + file;
  if (std::getenv("BERTH_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << now;
    return;
  }
  std::ifstream in(path);
  const std::string then{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(now, then) << path;
}

}  // namespace berth::test
