#include "core/action.h"

#include "core/capabilities.h"

namespace berth {

std::string_view to_string(ActionKind kind) noexcept {
  switch (kind) {
    case ActionKind::Preempt: return "preempt";
    case ActionKind::Migrate: return "migrate";
    case ActionKind::Start: return "start";
    case ActionKind::Resume: return "resume";
    case ActionKind::Kill: return "kill";
    case ActionKind::Reject: return "reject";
    case ActionKind::Suspend: return "suspend";
    case ActionKind::Share: return "share";
    case ActionKind::Resize: return "resize";
    case ActionKind::SetSubBatch: return "set sub-batch";
    case ActionKind::SetCores: return "set cores";
    case ActionKind::SetShare: return "set share";
    case ActionKind::SetMemory: return "set memory";
    case ActionKind::SetBatch: return "set batch";
    case ActionKind::PowerOn: return "power on";
    case ActionKind::PowerOff: return "power off";
  }
  return "?";
}

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::None: return "";
    case Reason::Order: return "order";
    case Reason::Backfill: return "backfill";
    case Reason::Reservation: return "reservation";
    case Reason::Priority: return "priority";
    case Reason::Guarantee: return "guarantee";
    case Reason::Demotion: return "demotion";
    case Reason::NodeLost: return "node lost";
    case Reason::TimeLimit: return "time limit";
    case Reason::Quota: return "quota";
    case Reason::NeverFits: return "never fits";
    case Reason::TimeSlice: return "time slice";
    case Reason::Packing: return "packing";
    case Reason::Locality: return "locality";
    case Reason::Interference: return "interference";
    case Reason::Defragment: return "defragment";
    case Reason::Growth: return "growth";
    case Reason::Eviction: return "eviction";
    case Reason::Lease: return "lease";
    case Reason::Balance: return "balance";
    case Reason::Profiling: return "profiling";
    case Reason::Deadline: return "deadline";
    case Reason::Price: return "price";
    case Reason::Fairness: return "fairness";
    case Reason::Round: return "round";
    case Reason::Power: return "power";
    case Reason::EarlyStop: return "early stop";
    case Reason::Retry: return "retry";
  }
  return "?";
}

std::string_view to_string(Ability ability) noexcept {
  switch (ability) {
    case Ability::Suspend: return "suspend";
    case Ability::Share: return "share devices";
    case Ability::SubBatch: return "sub-batch";
    case Ability::Batch: return "batch";
    case Ability::Cores: return "cores";
    case Ability::Throttle: return "throttle";
    case Ability::DeviceMemory: return "device memory";
    case Ability::HostMemory: return "host memory";
    case Ability::Power: return "power";
  }
  return "?";
}

}  // namespace berth
