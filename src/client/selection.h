// Which jobs a command is about, from the options that several commands share.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "client/commands.h"

namespace berth::client {

struct Selection {
  std::string user, group, queue, name;
  std::vector<LiveState> states;
  bool any_state = false;
};
[[nodiscard]] Result<Selection> selection_of(const Call& call);

/// "pending,R,all": states; `any` for all of them.
struct States {
  std::vector<LiveState> states;
  bool any = false;
};
[[nodiscard]] Result<States> parse_states(std::string_view text);

}  // namespace berth::client
