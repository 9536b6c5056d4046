#include "advise/limits.h"

#include <fmt/format.h>

#include "base/split.h"

namespace berth::advise {

namespace {

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \r") - begin + 1);
}

std::size_t depth_of(std::string_view line) { return line.find_first_not_of(' '); }

/// "games(5)" is games.
std::string_view name_in(std::string_view text) { return text.substr(0, text.find('(')); }

/// The value of "Key=value" among words of a line.
std::string_view value_in(std::string_view line, std::string_view key) {
  for (const std::string_view word : split(line, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos && word.substr(0, equals) == key)
      return word.substr(equals + 1);
  }
  return {};
}

/// "4(2)": allowed and used; "N(2)" is no limit.
void add_use(std::string_view of, std::string_view what, std::string_view figure,
             std::vector<LimitUse>& uses) {
  const std::string_view allowed = name_in(figure);
  if (allowed.empty() || allowed == "N") return;
  const std::size_t open = figure.find('(');
  std::string_view used;
  if (open != std::string_view::npos) used = figure.substr(open + 1, figure.size() - open - 2);
  uses.push_back({.of = std::string{of},
                  .what = std::string{what},
                  .allowed = std::string{allowed},
                  .used = std::string{used}});
}

/// "gres" is each gres/…; "bb" is bb/…; others are named as they are.
bool is_meant(std::string_view tres, std::string_view what) {
  if (tres == what) return true;
  const bool has_kinds = what == "gres" || what == "bb" || what == "license";
  return (has_kinds && tres.starts_with(std::string{what} + "/")) || what == "unknown";
}

void add_of_line(const Limit& limit, std::string_view of, std::string_view line,
                 std::vector<LimitUse>& uses) {
  const std::string_view value = value_in(line, limit.key);
  if (value.empty()) return;
  if (limit.key.find("TRES") == std::string::npos) return add_use(of, limit.what, value, uses);
  for (const std::string_view part : split(value, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view tres = part.substr(0, equals);
    if (is_meant(tres, limit.what)) add_use(of, tres, part.substr(equals + 1), uses);
  }
}

/// Which association a line begins, if the job stands below it; empty: it does not.
std::string association_of(std::string_view line, const LimitHolder& holder) {
  const std::string_view account = value_in(line, "Account");
  const std::string_view user = name_in(value_in(line, "UserName"));
  if (account != holder.account) return {};
  if (user.empty()) return fmt::format("account {}", account);
  return user == holder.user ? fmt::format("{} in account {}", user, account) : std::string{};
}

}  // namespace

std::vector<LimitUse> uses_of(const Limit& limit, std::string_view text,
                              const LimitHolder& holder) {
  std::vector<LimitUse> uses;
  std::string of;     // of the lines that follow; empty: of nobody who is meant
  bool named = true;  // below "Account Limits" and "User Limits": the one who is meant
  const bool wants_qos = limit.owner == LimitOwner::Qos;
  for (const std::string_view whole : split(text, '\n')) {
    const std::string_view line = trimmed(whole);
    if (line.empty()) continue;
    if (depth_of(whole) == 0) {
      named = true;
      of.clear();
      if (wants_qos && name_in(value_in(line, "QOS")) == holder.qos && !holder.qos.empty())
        of = fmt::format("QOS {}", holder.qos);
      if (!wants_qos && line.starts_with("ClusterName=")) of = association_of(line, holder);
      continue;
    }
    if (of.empty()) continue;
    // "User Limits", below it the users by name, below each what they have.
    if (line == "Account Limits" || line == "User Limits") {
      named = false;
      continue;
    }
    if (line.find('=') == std::string_view::npos) {
      const std::string_view name = name_in(line);
      named = name == holder.user || name == holder.account;
      continue;
    }
    if (named) add_of_line(limit, of, line, uses);
  }
  return uses;
}

}  // namespace berth::advise
