// The YAML profile file (docs/formats/profiles.md): what models are like, and how they get on in
// pairs. Reading checks everything and reports faults together, each with its place; a profile that
// could come to a speed of zero is refused. Writing is the inverse: what was written reads back the
// same to eight digits (pairs: to six).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "perf/profile.h"

namespace berth {

/// Adds to `base`; a profile of the same name replaces. `name` is for messages.
[[nodiscard]] Result<ProfileSet> parse_profiles(const std::string& text, const std::string& name,
                                                ProfileSet base);
/// The file on top of the built-in catalogue.
[[nodiscard]] Result<ProfileSet> load_profiles(const std::string& path);

/// Everything but the class default; profiles and pairs in the order of their ids. `heading` stands
/// above as comments.
[[nodiscard]] std::string profiles_to_yaml(const ProfileSet& profiles, std::string_view heading);

[[nodiscard]] std::string_view to_string(Provenance provenance) noexcept;

}  // namespace berth
