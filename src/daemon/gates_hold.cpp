// What is kept out by name: held jobs, those that people have suspended, and those for which the
// cluster has become too small.
#include "daemon/gates.h"

namespace berth {

bool Gates::is_kept(JobNumber job) const {
  const auto found = rows_.find(job);
  return found != rows_.end() && (found->second.is_held || found->second.is_frozen);
}

void Gates::hold(JobNumber job, bool runs) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  found->second.is_held = true;
  keep_out(job, found->second, runs);
}

void Gates::freeze(JobNumber job, bool runs) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  found->second.is_frozen = true;
  keep_out(job, found->second, runs);
}

void Gates::thaw(JobNumber job) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  found->second.is_frozen = false;
  look_at(job);
}

void Gates::keep_out(JobNumber job, Row& row, bool runs) {
  if (!row.is_in || runs) return;
  leave(job, row);
  withdrawn_.push_back(job);
}

void Gates::release(JobNumber job) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  found->second.is_held = false;
  look_at(job);
}

void Gates::refuse(JobNumber job, std::string why, bool runs) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  Row& row = found->second;
  row.unfit = std::move(why);
  if (row.is_in && !runs) leave(job, row);
  look_at(job);
}

bool Gates::is_frozen(JobNumber job) const {
  const auto found = rows_.find(job);
  return found != rows_.end() && found->second.is_frozen;
}

}  // namespace berth
