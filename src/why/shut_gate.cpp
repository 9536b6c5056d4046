#include "why/shut_gate.h"

namespace berth {

std::string_view to_string(GateKind kind) noexcept {
  switch (kind) {
    case GateKind::Hold: return "hold";
    case GateKind::Suspension: return "suspension";
    case GateKind::Begin: return "begin";
    case GateKind::Dependency: return "dependency";
    case GateKind::Array: return "array";
    case GateKind::Quota: return "quota";
    case GateKind::RetryDelay: return "pace";
    case GateKind::Fit: return "fit";
  }
  return "?";
}

}  // namespace berth
