// Removes a directory with everything in it, also what its owner has made read-only; follows no
// link. Whoever calls has the rights for it, or some of it stays.
#pragma once

#include <string>

namespace berth {

/// False: something of it is left.
bool remove_tree(const std::string& path) noexcept;

}  // namespace berth
