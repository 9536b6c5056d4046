// How many jobs of an array may compete at once (`--array=0-99%4`). Owns who of each array is in
// and who waits for its turn.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "store/ledger.h"
#include "why/shut_gate.h"

namespace berth {

/// A job's place in an array, as far as this gate is concerned.
struct ArrayMember {
  JobNumber array = 0;       // number of its first job; 0: it belongs to none
  std::int32_t at_once = 0;  // 0: as many as there are
};
[[nodiscard]] ArrayMember array_member(JobNumber array, const JobSpec& spec);

class ArrayGate {
 public:
  void enter(JobNumber job, const ArrayMember& member);
  /// Adds those who wait for a turn to `recheck`: the next one may come, and if something else
  /// keeps it out, the one after it.
  void leave(const ArrayMember& member, std::set<JobNumber>& recheck);
  /// It found no room, and is asked again when somebody leaves.
  void wait(JobNumber job, const ArrayMember& member);
  void forget(JobNumber job, const ArrayMember& member);

  [[nodiscard]] bool is_open(const ArrayMember& member) const;
  void explain(const ArrayMember& member, std::vector<ShutGate>& shut) const;

 private:
  std::unordered_map<JobNumber, std::int32_t> in_;
  std::unordered_map<JobNumber, std::set<JobNumber>> waiting_;
};

}  // namespace berth
