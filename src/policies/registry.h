// Every policy of the project, in one explicit table: name, what it is for, its parameters, how to
// make one. What it needs and may do it says itself (PolicyTraits). Adding a policy is a folder and
// a line here.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/policy.h"
#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] std::span<const PolicyEntry> policy_registry();
[[nodiscard]] Result<const PolicyEntry*> find_policy(std::string_view name);

[[nodiscard]] Result<std::unique_ptr<Policy>> make_policy(std::string_view name,
                                                          const Settings& settings = {});

/// Of one that is made with its default parameters.
[[nodiscard]] PolicyTraits traits_of(const PolicyEntry& entry);

/// What a live scheduler is to use: the given settings, and the live defaults of parameters that
/// they do not name.
[[nodiscard]] Result<std::unique_ptr<Policy>> make_live_policy(std::string_view name,
                                                               const Settings& settings = {});

/// "duration, history" or "nothing".
[[nodiscard]] std::string needs_text(Need needs);

}  // namespace berth
