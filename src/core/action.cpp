#include "core/action.h"

namespace berth {

std::string_view to_string(ActionKind kind) noexcept {
  switch (kind) {
    case ActionKind::Preempt: return "preempt";
    case ActionKind::Migrate: return "migrate";
    case ActionKind::Start: return "start";
    case ActionKind::Resume: return "resume";
    case ActionKind::Kill: return "kill";
    case ActionKind::Reject: return "reject";
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
  }
  return "?";
}

}  // namespace berth
