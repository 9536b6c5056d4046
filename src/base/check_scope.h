// What a broken invariant does in this thread. It ends the process, unless the thread is inside
// work that can be thrown away as a whole and begun again: then it is thrown, so that one job's bad
// luck is not everybody's end.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace berth {

struct BrokenInvariant : std::logic_error {
  using std::logic_error::logic_error;
};

enum class OnBrokenInvariant : std::uint8_t { Abort, Throw };

/// For as long as it lives, in its own thread.
class CheckScope {
 public:
  explicit CheckScope(OnBrokenInvariant wanted) noexcept;
  ~CheckScope();
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;

 private:
  OnBrokenInvariant before_;
};

}  // namespace berth
