// Mistakes that can be switched on in copies of the sources (tests/mutants/table.cmake). A harness
// that does not notice them proves nothing.
#pragma once

namespace berth::test {

/// Number of the mistake that is on, from 1; 0: none.
inline int active_mutant = 0;

struct Mutant {
  const char* name;
  const char* rule;
  const char* survives;  // why nothing catches it; empty: something has to
};

}  // namespace berth::test
