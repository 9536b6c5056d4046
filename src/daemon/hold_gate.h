// Jobs that are kept out by name: held, suspended by a person, or too large for the cluster as it
// is described now. Owns these three marks and nothing else; whether a marked job has to leave the
// engine is for Gates to say.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/ledger.h"
#include "why/shut_gate.h"

namespace berth {

class HoldGate {
 public:
  /// The marks as they are on record. Whether the job fits is not: a job that was changed may ask
  /// for less now, so that it is let in again to see.
  void set(const LedgerJob& job);
  void forget(JobNumber job);

  void hold(JobNumber job) { held_.insert(job); }
  void release(JobNumber job) { held_.erase(job); }
  void freeze(JobNumber job) { frozen_.insert(job); }
  void thaw(JobNumber job) { frozen_.erase(job); }
  void refuse(JobNumber job, std::string why) { unfit_[job] = std::move(why); }

  [[nodiscard]] bool is_open(JobNumber job) const { return !is_kept(job) && !unfit_.contains(job); }
  /// Held or suspended.
  [[nodiscard]] bool is_kept(JobNumber job) const {
    return held_.contains(job) || frozen_.contains(job);
  }
  [[nodiscard]] bool is_frozen(JobNumber job) const { return frozen_.contains(job); }
  void explain(JobNumber job, std::vector<ShutGate>& shut) const;

 private:
  std::set<JobNumber> held_, frozen_;
  std::map<JobNumber, std::string> unfit_;  // why no state of the cluster could hold it
};

}  // namespace berth
