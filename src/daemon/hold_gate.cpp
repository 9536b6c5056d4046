#include "daemon/hold_gate.h"

namespace berth {

void HoldGate::set(const LedgerJob& job) {
  forget(job.number);
  if (job.is_held) held_.insert(job.number);
  if (job.is_frozen) frozen_.insert(job.number);
}

void HoldGate::forget(JobNumber job) {
  held_.erase(job);
  frozen_.erase(job);
  unfit_.erase(job);
}

void HoldGate::explain(JobNumber job, std::vector<ShutGate>& shut) const {
  if (held_.contains(job)) shut.push_back({.kind = GateKind::Hold, .text = "held"});
  if (frozen_.contains(job)) shut.push_back({.kind = GateKind::Suspension, .text = "suspended"});
  if (const auto unfit = unfit_.find(job); unfit != unfit_.end())
    shut.push_back({.kind = GateKind::Fit, .text = unfit->second});
}

}  // namespace berth
