// Whether this is a build with a sanitizer, and how much longer its code may take: what measures
// time allows for it.
#pragma once

namespace berth::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
/// Times as long.
inline constexpr int kSanitizedSlowdown = kIsSanitized ? 20 : 1;

}  // namespace berth::test
