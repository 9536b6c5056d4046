#include "base/digest.h"

#include <fmt/format.h>

namespace berth {

std::string Digest::hex() const { return fmt::format("{:016x}", value()); }

}  // namespace berth
