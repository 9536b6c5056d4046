#include "wire/view_fields.h"

namespace berth {

std::string_view to_string(Role role) noexcept { return wire::name_of(role); }
std::optional<Role> role_from(std::string_view text) noexcept { return wire::value_of<Role>(text); }
std::string_view to_string(LiveState state) noexcept { return wire::name_of(state); }
std::optional<LiveState> live_state_from(std::string_view text) noexcept {
  return wire::value_of<LiveState>(text);
}
std::string_view to_string(WaitCode code) noexcept { return wire::name_of(code); }
std::string_view to_string(Verb verb) noexcept { return wire::name_of(verb); }

}  // namespace berth
