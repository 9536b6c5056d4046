#include "exec/user_limits.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include <grp.h>

#include "exec/fields.h"
#include "exec/run_dir.h"

namespace berth {

namespace {

namespace fs = std::filesystem;

constexpr FileLimits kBySystemd{.soft = 1024, .hard = 524288};
constexpr std::uint64_t kMost = 1'048'576;  // of a kernel that was told nothing else

std::string text_of(const std::string& path) {
  const auto bytes = get_file(path);
  return bytes && *bytes ? **bytes : std::string{};
}

std::optional<std::uint64_t> amount(const std::string& word) {
  if (word == "unlimited" || word == "infinity" || word == "-1") return kMost;
  const auto number = integer_of(word);
  if (!number || *number < 0) return std::nullopt;
  return std::min(static_cast<std::uint64_t>(*number), kMost);
}

/// systemd raises its own limits and starts everything else with these; elsewhere all processes
/// have what the first one has.
FileLimits at_the_beginning(const LimitPlaces& places) {
  std::error_code ignored;
  if (fs::exists(places.systemd, ignored)) return kBySystemd;
  const std::string text = text_of(places.first_process);
  constexpr std::string_view kName = "Max open files";
  const auto at = text.find(kName);
  if (at == std::string::npos) return kBySystemd;
  std::istringstream words(text.substr(at + kName.size()));
  std::string soft, hard;
  words >> soft >> hard;
  const auto low = amount(soft), high = amount(hard);
  if (!low || !high || *high == 0) return kBySystemd;
  return {.soft = *low, .hard = *high};
}

bool is_member(const Account& account, const std::string& group) {
  std::vector<char> buffer(16384);
  ::group entry{};
  ::group* found = nullptr;
  if (::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return false;
  return account.gid == found->gr_gid || std::find(account.groups.begin(), account.groups.end(),
                                                   found->gr_gid) != account.groups.end();
}

/// How closely a line is meant for this user: 0 not at all, then everybody, a group, by name. Only
/// the last is for root.
int closeness(const std::string& domain, const Account& account) {
  if (domain == account.name) return 3;
  if (account.uid == 0) return 0;
  if (domain == "*") return 1;
  return domain.starts_with('@') && is_member(account, domain.substr(1)) ? 2 : 0;
}

class LimitReader {
 public:
  LimitReader(const Account& account, FileLimits& limits) : account_(account), limits_(limits) {}

  void read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line.substr(0, line.find('#')));
      std::string domain, type, item, value;
      if (words >> domain >> type >> item >> value && item == "nofile") take(domain, type, value);
    }
  }

 private:
  void take(const std::string& domain, const std::string& type, const std::string& value) {
    const auto number = amount(value);
    const int close = closeness(domain, account_);
    if (!number || close == 0) return;
    if ((type == "soft" || type == "-") && close >= soft_by_) {
      limits_.soft = *number;
      soft_by_ = close;
    }
    if ((type == "hard" || type == "-") && close >= hard_by_) {
      limits_.hard = *number;
      hard_by_ = close;
    }
  }

  const Account& account_;
  FileLimits& limits_;
  int soft_by_ = 0, hard_by_ = 0;
};

}  // namespace

FileLimits ordinary_file_limits(const Account& account, const LimitPlaces& places) {
  FileLimits limits = at_the_beginning(places);
  LimitReader reader(account, limits);
  reader.read(text_of(places.security + "/limits.conf"));
  std::vector<std::string> more;
  std::error_code problem;
  fs::directory_iterator folder(places.security + "/limits.d", problem);
  for (; !problem && folder != fs::directory_iterator{}; folder.increment(problem))
    if (folder->path().extension() == ".conf") more.push_back(folder->path().string());
  std::sort(more.begin(), more.end());
  for (const std::string& file : more) reader.read(text_of(file));
  limits.soft = std::min(limits.soft, limits.hard);
  return limits;
}

}  // namespace berth
