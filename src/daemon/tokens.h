// Tokens: a secret that stands for a user and a role. Only its hash is kept, as a setting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/service.h"

namespace berth {

struct KeptToken {
  TokenView view;
  std::string hash;  // SHA-256 of the text, hexadecimal
};

[[nodiscard]] std::string new_token_text();  // 256 random bits
[[nodiscard]] std::string token_hash(const std::string& text);
[[nodiscard]] std::string to_setting(const KeptToken& token);
[[nodiscard]] std::optional<KeptToken> token_from_setting(const std::string& key,
                                                          const std::string& value);

}  // namespace berth
