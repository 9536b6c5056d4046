#include <algorithm>
#include <array>
#include <utility>

#include "daemon/service.h"

namespace berth {

namespace {

constexpr std::array kRoles{std::pair{Role::User, std::string_view{"user"}},
                            std::pair{Role::Operator, std::string_view{"operator"}},
                            std::pair{Role::Admin, std::string_view{"admin"}}};

constexpr std::array kStates{std::pair{LiveState::Held, std::string_view{"held"}},
                             std::pair{LiveState::Blocked, std::string_view{"blocked"}},
                             std::pair{LiveState::Pending, std::string_view{"pending"}},
                             std::pair{LiveState::Starting, std::string_view{"starting"}},
                             std::pair{LiveState::Running, std::string_view{"running"}},
                             std::pair{LiveState::Suspended, std::string_view{"suspended"}},
                             std::pair{LiveState::Stopping, std::string_view{"stopping"}},
                             std::pair{LiveState::Completed, std::string_view{"completed"}},
                             std::pair{LiveState::Failed, std::string_view{"failed"}},
                             std::pair{LiveState::Cancelled, std::string_view{"cancelled"}},
                             std::pair{LiveState::TimedOut, std::string_view{"timed-out"}},
                             std::pair{LiveState::Preempted, std::string_view{"preempted"}},
                             std::pair{LiveState::NodeFailed, std::string_view{"node-failed"}},
                             std::pair{LiveState::Rejected, std::string_view{"rejected"}}};

constexpr std::array kCodes{std::pair{WaitCode::None, std::string_view{""}},
                            std::pair{WaitCode::HeldByUser, std::string_view{"held-by-user"}},
                            std::pair{WaitCode::HeldByAdmin, std::string_view{"held-by-admin"}},
                            std::pair{WaitCode::BeginTime, std::string_view{"begin-time"}},
                            std::pair{WaitCode::Retry, std::string_view{"retry"}},
                            std::pair{WaitCode::Dependency, std::string_view{"dependency"}},
                            std::pair{WaitCode::ArrayLimit, std::string_view{"array-limit"}},
                            std::pair{WaitCode::UserGpus, std::string_view{"user-gpus"}},
                            std::pair{WaitCode::UserJobs, std::string_view{"user-jobs"}},
                            std::pair{WaitCode::GroupGpus, std::string_view{"group-gpus"}},
                            std::pair{WaitCode::GroupJobs, std::string_view{"group-jobs"}},
                            std::pair{WaitCode::GpuTime, std::string_view{"gpu-time"}},
                            std::pair{WaitCode::TooSmall, std::string_view{"cluster-too-small"}},
                            std::pair{WaitCode::Resources, std::string_view{"resources"}},
                            std::pair{WaitCode::Priority, std::string_view{"priority"}}};

template <class Table, class Value>
std::string_view name_of(const Table& table, Value value) noexcept {
  const auto found = std::ranges::find(table, value, [](const auto& row) { return row.first; });
  return found == table.end() ? std::string_view{"unknown"} : found->second;
}

template <class Value, class Table>
std::optional<Value> value_of(const Table& table, std::string_view text) noexcept {
  const auto found = std::ranges::find(table, text, [](const auto& row) { return row.second; });
  if (found == table.end()) return std::nullopt;
  return found->first;
}

}  // namespace

std::string_view to_string(Role role) noexcept { return name_of(kRoles, role); }
std::optional<Role> role_from(std::string_view text) noexcept {
  return value_of<Role>(kRoles, text);
}
std::string_view to_string(LiveState state) noexcept { return name_of(kStates, state); }
std::optional<LiveState> live_state_from(std::string_view text) noexcept {
  return value_of<LiveState>(kStates, text);
}
std::string_view to_string(WaitCode code) noexcept { return name_of(kCodes, code); }

}  // namespace berth
