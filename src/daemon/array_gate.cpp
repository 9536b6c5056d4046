#include "daemon/array_gate.h"

#include <fmt/format.h>

namespace berth {

ArrayMember array_member(JobNumber array, const JobSpec& spec) {
  return {.array = array, .at_once = spec.array ? spec.array->at_once : 0};
}

void ArrayGate::enter(JobNumber job, const ArrayMember& member) {
  if (member.array == 0) return;
  ++in_[member.array];
  forget(job, member);
}

void ArrayGate::leave(const ArrayMember& member, std::set<JobNumber>& recheck) {
  if (member.array == 0) return;
  if (--in_[member.array] == 0) in_.erase(member.array);
  if (const auto waiting = waiting_.find(member.array); waiting != waiting_.end())
    recheck.insert(waiting->second.begin(), waiting->second.end());
}

void ArrayGate::wait(JobNumber job, const ArrayMember& member) {
  waiting_[member.array].insert(job);
}

void ArrayGate::forget(JobNumber job, const ArrayMember& member) {
  const auto waiting = waiting_.find(member.array);
  if (waiting == waiting_.end()) return;
  waiting->second.erase(job);
  if (waiting->second.empty()) waiting_.erase(waiting);
}

bool ArrayGate::is_open(const ArrayMember& member) const {
  if (member.array == 0 || member.at_once == 0) return true;
  const auto in = in_.find(member.array);
  return in == in_.end() || in->second < member.at_once;
}

void ArrayGate::explain(const ArrayMember& member, std::vector<ShutGate>& shut) const {
  if (is_open(member)) return;
  const std::int32_t in = in_.at(member.array);
  shut.push_back({.kind = GateKind::Array,
                  .text = fmt::format("{} of its array run or are in line, at most {} at once", in,
                                      member.at_once),
                  .numbers = {{"running", in}, {"at_once", member.at_once}}});
}

}  // namespace berth
