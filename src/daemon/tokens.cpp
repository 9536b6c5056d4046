#include "daemon/tokens.h"

#include <array>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace berth {

namespace {
std::string hex(const unsigned char* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}
}  // namespace

std::string new_token_text() {
  std::array<unsigned char, 32> bytes{};
  BERTH_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
              "the machine gives random bytes");
  return "berth_" + hex(bytes.data(), bytes.size());
}

std::string token_hash(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  BERTH_CHECK(
      EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) == 1,
      "SHA-256 is there");
  return hex(digest.data(), length);
}

std::string to_setting(const KeptToken& token) {
  return nlohmann::json{{"hash", token.hash},
                        {"user", token.view.user},
                        {"role", to_string(token.view.role)},
                        {"created", token.view.created},
                        {"expires", token.view.expires},
                        {"granted", token.view.is_granted}}
      .dump();
}

std::optional<KeptToken> token_from_setting(const std::string& key, const std::string& value) {
  constexpr std::string_view kPrefix = "token/";
  if (!key.starts_with(kPrefix)) return std::nullopt;
  const auto json = nlohmann::json::parse(value, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto text = [&](const char* name) {
    return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
  };
  const auto number = [&](const char* name) {
    return json.contains(name) && json[name].is_number_integer() ? json[name].get<std::int64_t>()
                                                                 : 0;
  };
  KeptToken token;
  token.view.name = key.substr(kPrefix.size());
  token.view.user = text("user");
  token.view.role = role_from(text("role")).value_or(Role::User);
  token.view.created = number("created");
  token.view.expires = number("expires");
  // 0.1 did not say who gave the role: it holds until the token is revoked, as it did then.
  token.view.is_granted = json.value("granted", nlohmann::json(true)) == true;
  token.hash = text("hash");
  if (token.hash.empty()) return std::nullopt;
  return token;
}

}  // namespace berth
