#include "apps/pseudonyms.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/file.h"

namespace berth {

namespace {

constexpr std::size_t kKeyBytes = 32;

std::string keyed_hash(const std::string& key, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &length);
  std::string hex;
  for (std::size_t i = 0; i < 4; ++i) hex += fmt::format("{:02x}", digest.at(i));
  return hex;
}

Result<std::string> key_path() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  if (config != nullptr && *config == '/') return std::string(config) + "/berth/capture.key";
  if (home != nullptr && *home == '/') return std::string(home) + "/.config/berth/capture.key";
  return fail("--anonymous: HOME is not set, and the key of pseudonyms is kept there");
}

/// Written beside and linked into its place: of two captures at once one key wins.
Result<void> draw_key(const std::string& path) {
  std::array<char, kKeyBytes> key{};
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
    return fail(fmt::format("{}: no random numbers: {}", path, std::strerror(errno)));
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  {
    const Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0 ||
        ::write(file.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size()))
      return fail(fmt::format("{}: cannot be written: {}", beside, std::strerror(errno)));
  }
  const bool is_linked = ::link(beside.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const int problem = errno;
  ::unlink(beside.c_str());
  if (!is_linked)
    return fail(fmt::format("{}: cannot be written: {}", path, std::strerror(problem)));
  return {};
}

}  // namespace

std::string Pseudonyms::of(std::string_view kind, std::string_view name) {
  const bool is_counted = kind == "node" || kind == "rack" || kind == "zone";
  if (!is_counted)
    return fmt::format("{}-{}", kind, keyed_hash(key_, fmt::format("{}\n{}", kind, name)));
  const auto [found, is_new] = counted_.try_emplace({std::string(kind), std::string(name)});
  if (is_new) found->second = fmt::format("{}{}", kind.front(), ++counts_[std::string(kind)]);
  return found->second;
}

Result<std::string> pseudonym_key() {
  BERTH_TRY(const std::string path, key_path());
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
    BERTH_TRY_VOID(draw_key(path));
  }
  BERTH_TRY(std::string key, read_file(path));
  if (key.size() != kKeyBytes)
    return fail(fmt::format("{}: is no key of {} bytes (remove it to have a new one drawn)", path,
                            kKeyBytes));
  return key;
}

}  // namespace berth
