// Broken invariants end the process: BERTH_CHECK always, BERTH_DCHECK in debug builds. The text
// names the violated rule. No user input can reach one; bad input is a Result (base/result.h).
#pragma once

namespace berth::detail {
[[noreturn]] void check_failed(const char* rule, const char* expression, const char* file,
                               int line);
}

#define BERTH_CHECK(condition, rule) \
  (static_cast<bool>(condition)      \
       ? static_cast<void>(0)        \
       : ::berth::detail::check_failed((rule), #condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define BERTH_DCHECK(condition, rule) static_cast<void>(0)
#else
#define BERTH_DCHECK(condition, rule) BERTH_CHECK(condition, rule)
#endif
