#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace berth::detail {

void check_failed(const char* rule, const char* expression, const char* file, int line) {
  std::fprintf(stderr, "berth: broken invariant: %s (%s at %s:%d)\n", rule, expression, file, line);
  std::abort();
}

}  // namespace berth::detail
