#include "client/selection.h"

#include <fmt/format.h>

#include "base/split.h"
#include "base/suggest.h"

namespace berth::client {

Result<States> parse_states(std::string_view text) {
  States found;
  std::vector<std::string> known{"all"};
  for (auto i = 0; i < static_cast<int>(LiveState::Unknown); ++i)
    known.emplace_back(to_string(static_cast<LiveState>(i)));
  for (const std::string_view word : split(text, ',')) {
    // Beside other states it makes them superfluous, but not wrong.
    if (word == "all" || word == "ALL") {
      found.any = true;
      continue;
    }
    const auto states = states_from(word);
    if (states.empty())
      return fail(fmt::format("no state is called '{}'{}", word, suggestion(word, known)));
    found.states.insert(found.states.end(), states.begin(), states.end());
  }
  return found;
}

Result<Selection> selection_of(const Call& call) {
  Selection selection;
  selection.user = call.has("me") ? std::string(kMe) : call.value("user");
  selection.group = call.value("group");
  selection.queue = call.value("queue");
  selection.name = call.value("name");
  if (call.has("state")) {
    BERTH_TRY(auto states, parse_states(call.value("state")));
    selection.states = std::move(states.states);
    selection.any_state = states.any;
  }
  return selection;
}

}  // namespace berth::client
