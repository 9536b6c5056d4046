// Shares and limits of users and groups as settings: "share/user/alice" is a JSON object.
#pragma once

#include <optional>
#include <string>

#include "daemon/service.h"

namespace berth {

[[nodiscard]] std::string share_key(const ShareView& share);
[[nodiscard]] std::string to_setting(const ShareView& share);
/// Nothing if the key or the value is not one.
[[nodiscard]] std::optional<ShareView> share_from_setting(const std::string& key,
                                                          const std::string& value);

}  // namespace berth
