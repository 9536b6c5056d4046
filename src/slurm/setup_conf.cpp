#include "slurm/setup_conf.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "base/split.h"

namespace berth::slurm {

namespace {

constexpr int kDeepestInclude = 16;

bool is_blank(char c) noexcept { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// A backslash at the end of a line joins the next one to it; blanks may follow it.
bool is_continued(std::string_view line) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line.ends_with('\\');
}

std::string_view before_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
      continue;
    }
    if (line[i] == '#') return line.substr(0, i);
  }
  return line;
}

/// Lines as Slurm sees them: joined first, then without their comment. (So a comment that ends with
/// a backslash swallows the line below it, as it does there.)
std::vector<std::string> logical_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::string joined;
  bool is_open = false;
  for (const std::string_view physical : split(text, '\n')) {
    std::string_view part = physical;
    const bool goes_on = is_continued(part);
    if (goes_on) part = part.substr(0, part.rfind('\\'));
    joined += part;
    is_open = goes_on;
    if (goes_on) continue;
    lines.emplace_back(without_blanks(before_comment(joined)));
    joined.clear();
  }
  if (is_open) lines.emplace_back(without_blanks(before_comment(joined)));
  return lines;
}

std::optional<std::string_view> included_path(std::string_view line) {
  constexpr std::string_view kInclude = "include";
  if (line.size() <= kInclude.size() || !is_blank(line[kInclude.size()])) return std::nullopt;
  if (lower_case(line.substr(0, kInclude.size())) != kInclude) return std::nullopt;
  return without_blanks(line.substr(kInclude.size()));
}

/// The next KEY=VALUE of a line, taken off its front; a value with blanks stands in quotes.
std::optional<ConfValues::Setting> take_setting(std::string_view& line) {
  line = without_blanks(line);
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  std::string_view key = without_blanks(line.substr(0, equals));
  // What stands before the last blank is no part of the key: Slurm would refuse the line anyway.
  if (const auto blank = key.find_last_of(" \t"); blank != std::string_view::npos)
    key.remove_prefix(blank + 1);
  line = without_blanks(line.substr(equals + 1));
  std::size_t end = 0;
  std::string_view value;
  if (line.starts_with('"')) {
    end = line.find('"', 1);
    if (end == std::string_view::npos) end = line.size();
    value = line.substr(1, end - 1);
    end = std::min(end + 1, line.size());
  } else {
    while (end < line.size() && !is_blank(line[end])) ++end;
    value = line.substr(0, end);
  }
  line.remove_prefix(end);
  return ConfValues::Setting{lower_case(key), std::string(value)};
}

class ConfWalk {
 public:
  ConfWalk(const ConfReader& read, std::string folder, std::string without)
      : read_(read), folder_(std::move(folder)), without_(std::move(without)) {}

  Result<void> visit(const std::string& path, int depth) {
    if (depth > kDeepestInclude)
      return fail(fmt::format("{}: Include lines are nested too deeply", path));
    BERTH_TRY(const auto text, read_(path));
    if (!text) {
      if (depth == 0) return fail(fmt::format("{}: there is no such file", path));
      values_.missing.push_back(path);
      return {};
    }
    values_.files.push_back(path);
    for (const std::string& line : logical_lines(*text)) {
      if (const auto included = included_path(line)) {
        const std::string next = resolved(std::string(*included));
        if (next != without_) BERTH_TRY_VOID(visit(next, depth + 1));
        continue;
      }
      std::string_view rest = line;
      while (auto setting = take_setting(rest)) values_.settings.push_back(std::move(*setting));
    }
    return {};
  }
  ConfValues take() { return std::move(values_); }

 private:
  /// As Slurm finds it: beside slurm.conf unless it has a full path; %c is the cluster's name.
  [[nodiscard]] std::string resolved(std::string path) const {
    const std::string cluster = lower_case(values_.value("ClusterName").value_or(""));
    for (std::size_t at = path.find("%c"); at != std::string::npos; at = path.find("%c", at))
      path.replace(at, 2, cluster);
    return path.starts_with('/') ? path : folder_ + "/" + path;
  }

  const ConfReader& read_;
  const std::string folder_, without_;
  ConfValues values_;
};

}  // namespace

std::optional<std::string> ConfValues::value(std::string_view key) const {
  const std::string wanted = lower_case(key);
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting) {
    if (setting->key == wanted) return setting->value;
  }
  return std::nullopt;
}

Result<ConfValues> read_conf(const std::string& path, const ConfReader& read,
                             const std::string& without) {
  ConfWalk walk(read, std::filesystem::path(path).parent_path().string(), without);
  BERTH_TRY_VOID(walk.visit(path, 0));
  return walk.take();
}

std::string addition_for(std::string_view conf, std::string_view line) {
  std::string added;
  if (!conf.empty() && !conf.ends_with('\n')) added += '\n';
  const std::size_t end = conf.find_last_not_of('\n');
  const std::string_view full = end == std::string_view::npos ? "" : conf.substr(0, end + 1);
  const std::size_t begin = full.rfind('\n');
  const bool has_one_end = conf.size() - full.size() <= 1;
  // An empty line ends what a backslash left open.
  if (has_one_end && is_continued(begin == std::string_view::npos ? full : full.substr(begin + 1)))
    added += '\n';
  added += line;
  added += '\n';
  return added;
}

std::optional<std::string> without_addition(std::string_view conf, std::string_view added) {
  std::string_view wanted = added;
  std::size_t at = conf.find(wanted);
  // Whoever added lines below ours may have ended the line above it otherwise: ours alone counts.
  if (at == std::string_view::npos) {
    while (wanted.starts_with('\n')) wanted.remove_prefix(1);
    at = conf.find(wanted);
  }
  if (wanted.empty() || at == std::string_view::npos) return std::nullopt;
  const bool begins_a_line = wanted.starts_with('\n') || at == 0 || conf[at - 1] == '\n';
  if (!begins_a_line || conf.find(wanted, at + 1) != std::string_view::npos) return std::nullopt;
  std::string left(conf.substr(0, at));
  left += conf.substr(at + wanted.size());
  return left;
}

std::string with_item(std::string_view list, std::string_view item) {
  if (has_item(list, item)) return std::string(list);
  return list.empty() ? std::string(item) : fmt::format("{},{}", list, item);
}

bool has_item(std::string_view list, std::string_view name) {
  const std::string wanted = lower_case(name.substr(0, name.find('=')));
  return std::ranges::any_of(split(list, ','), [&](std::string_view item) {
    return lower_case(without_blanks(item.substr(0, item.find('=')))) == wanted;
  });
}

}  // namespace berth::slurm
