#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/check_scope.h"

namespace berth {

namespace {
// Per thread: a scope on one thread does not change what a broken invariant does on another.
thread_local OnBrokenInvariant on_broken = OnBrokenInvariant::Abort;
}  // namespace

CheckScope::CheckScope(OnBrokenInvariant wanted) noexcept : before_(on_broken) {
  on_broken = wanted;
}
CheckScope::~CheckScope() { on_broken = before_; }

namespace detail {

void check_failed(const char* rule, const char* expression, const char* file, int line) {
  if (on_broken == OnBrokenInvariant::Throw) {
    throw BrokenInvariant{std::string{"broken invariant: "} + rule + " (" + expression + " at " +
                          file + ":" + std::to_string(line) + ")"};
  }
  // The logger may hold a lock or be what is broken, so this writes to stderr directly.
  std::fprintf(stderr, "berth: broken invariant: %s (%s at %s:%d)\n", rule, expression, file, line);
  std::abort();
}

}  // namespace detail
}  // namespace berth
