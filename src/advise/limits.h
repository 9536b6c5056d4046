// What `scontrol show assoc_mgr` says of a limit that holds a job back: how much is allowed and how
// much is in use, for each association above the job and for its QOS.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "advise/reasons.h"

namespace berth::advise {

/// Whose limits are looked up.
struct LimitHolder {
  std::string user, account, qos;
};
struct LimitUse {
  std::string of{};    // "QOS small", "account lab", "games in account lab"
  std::string what{};  // "gres/gpu", "jobs"
  std::string allowed{}, used{};
};
/// Those of `text` that the word means and that are set; empty: none was found.
[[nodiscard]] std::vector<LimitUse> uses_of(const Limit& limit, std::string_view text,
                                            const LimitHolder& holder);

}  // namespace berth::advise
