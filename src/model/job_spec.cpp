// The small languages of a request: array indices, dependencies and time limits in Slurm's
// notation. Each has a reader and a writer that agree, because the journal keeps the written form.

#include "model/job_spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/split.h"

namespace berth {

namespace {

constexpr std::int64_t kMaxLimitSeconds = std::int64_t{100} * 366 * 86'400;
constexpr std::int32_t kMaxDelayMinutes = 10'000'000;

template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

constexpr std::array<std::pair<DependencyKind, std::string_view>, 6> kDependencyKinds{{
    {DependencyKind::AfterOk, "afterok"},
    {DependencyKind::AfterAny, "afterany"},
    {DependencyKind::AfterNotOk, "afternotok"},
    {DependencyKind::After, "after"},
    {DependencyKind::Singleton, "singleton"},
    {DependencyKind::AfterCorr, "aftercorr"},
}};

std::optional<DependencyKind> dependency_kind_from(std::string_view text) {
  for (const auto& [kind, name] : kDependencyKinds)
    if (name == text) return kind;
  return std::nullopt;
}

/// "12", "12_3", "12_*", "12+5".
std::optional<Dependency> dependency_on(DependencyKind kind, std::string_view text) {
  Dependency found{.kind = kind};
  if (const auto plus = text.find('+'); plus != std::string_view::npos) {
    const auto minutes = whole<std::int32_t>(text.substr(plus + 1));
    const bool is_time = minutes && *minutes >= 0 && *minutes <= kMaxDelayMinutes;
    if (!is_time || kind != DependencyKind::After) return std::nullopt;
    found.minutes = *minutes;
    text = text.substr(0, plus);
  }
  if (const auto mark = text.find('_'); mark != std::string_view::npos) {
    const std::string_view index = text.substr(mark + 1);
    if (index != "*") {
      const auto value = whole<std::int32_t>(index);
      if (!value || *value < 0 || kind == DependencyKind::AfterCorr) return std::nullopt;
      found.index = *value;
    }
    text = text.substr(0, mark);
  }
  const auto job = whole<JobNumber>(text);
  if (!job || *job == 0) return std::nullopt;
  found.job = *job;
  return found;
}

/// "4", "0-9" or "0-9:3", appended; not many more than an array may have.
/// Stops soon after the limit: "0-2000000000" must not fill the memory before it is refused.
bool add_indices(std::string_view part, std::vector<std::int32_t>& indices) {
  std::int32_t step = 1;
  if (const auto colon = part.find(':'); colon != std::string_view::npos) {
    const auto value = whole<std::int32_t>(part.substr(colon + 1));
    if (!value || *value < 1 || part.find('-') == std::string_view::npos) return false;
    step = *value;
    part = part.substr(0, colon);
  }
  const auto dash = part.find('-');
  const auto first = whole<std::int32_t>(part.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : whole<std::int32_t>(part.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first) return false;
  // 64 bits: the last step may pass the largest index.
  for (std::int64_t index = *first; index <= *last && indices.size() <= kMaxArraySize;
       index += step)
    indices.push_back(static_cast<std::int32_t>(index));
  return true;
}

/// "90s", "15m", "1.5h", "2d".
std::optional<std::int64_t> with_unit(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  double unit = 0;
  switch (text.back()) {
    case 's': unit = 1; break;
    case 'm': unit = 60; break;
    case 'h': unit = 3'600; break;
    case 'd': unit = 86'400; break;
    default: return std::nullopt;
  }
  text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  const double seconds = value * unit;
  if (!(seconds > 0) || seconds > static_cast<double>(kMaxLimitSeconds)) return std::nullopt;
  // Rounded up: nobody gets less time than they asked for.
  return static_cast<std::int64_t>(std::ceil(seconds));
}

/// minutes | minutes:seconds | hours:minutes:seconds | days-hours[:minutes[:seconds]].
std::optional<std::int64_t> with_colons(std::string_view text) {
  std::int64_t days = 0;
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto value = whole<std::int64_t>(text.substr(0, dash));
    if (!value || *value < 0 || *value > 36'600) return std::nullopt;
    days = *value;
    text = text.substr(dash + 1);
  }
  std::array<std::int64_t, 3> part{};
  const auto pieces = split(text, ':');
  if (pieces.size() > part.size()) return std::nullopt;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto value = whole<std::int64_t>(pieces[i]);
    if (!value || *value < 0 || *value > 100'000'000) return std::nullopt;
    part[i] = *value;
  }
  if (dash != std::string_view::npos || pieces.size() == 3)
    return days * 86'400 + part[0] * 3'600 + part[1] * 60 + part[2];
  return part[0] * 60 + part[1];
}

}  // namespace

JobRequest request_of(const JobSpec& spec, JobNumber number, Time submit, Names& names) {
  JobRequest request;
  request.id = names.intern(fmt::format("{}", number));
  request.submit = submit;
  // The engine counts a job for cores alone as one device of which it uses nothing (gpu_milli 0).
  request.gpus = std::max(1, spec.gpus);
  request.gpus_min = spec.gpus_min;
  request.gpus_max = spec.gpus_max;
  request.gpu_milli = spec.gpus == 0 ? 0 : spec.gpu_milli;  // cores alone
  request.cpus_milli = spec.cpus * 1'000;
  request.memory_mib = spec.memory_mib;
  request.batch_size = spec.batch_size;
  request.priority = spec.priority;
  request.weight = static_cast<float>(spec.weight);
  request.kind = spec.kind;
  request.preemptible = spec.preemptible;
  request.iterations = spec.iterations;
  request.user = names.intern(spec.user);
  request.group = names.intern(spec.group);
  request.queue = names.intern(spec.queue);
  request.name = names.intern(spec.name);
  request.model = names.intern(spec.model);
  request.study = names.intern(spec.study);
  request.gpu_type = names.intern(spec.gpu_type);
  return request;
}

// The user's estimate, or else the limit: what scheduling may assume before it knows better.
Duration said_duration(const JobSpec& spec) noexcept {
  return std::chrono::seconds{spec.estimate > 0 ? spec.estimate : spec.time_limit};
}

// Sorted and without doubles, so that an index is found by binary search.
Result<ArraySpec> parse_array(std::string_view text) {
  ArraySpec array;
  std::string_view list = text;
  if (const auto percent = text.find('%'); percent != std::string_view::npos) {
    const auto at_once = whole<std::int32_t>(text.substr(percent + 1));
    if (!at_once || *at_once < 1)
      return fail(fmt::format("array '{}': after % stands how many may run at once", text));
    array.at_once = *at_once;
    list = text.substr(0, percent);
  }
  for (const std::string_view part : split(list, ',')) {
    if (!add_indices(part, array.indices))
      return fail(
          fmt::format("array '{}': '{}' is no index or range (as in 0-9:3,20%2)", text, part));
    if (array.indices.size() > kMaxArraySize)
      return fail(fmt::format("array '{}': more than {} jobs", text, kMaxArraySize));
  }
  std::ranges::sort(array.indices);
  array.indices.erase(std::unique(array.indices.begin(), array.indices.end()), array.indices.end());
  return array;
}

Result<Dependencies> parse_dependencies(std::string_view text) {
  Dependencies found;
  found.any = text.find('?') != std::string_view::npos;
  // Slurm allows one kind of separator; a mixture has no clear meaning.
  if (found.any && text.find(',') != std::string_view::npos)
    return fail(
        fmt::format("dependency '{}': either ',' (all of them) or '?' (one of them)", text));
  for (const std::string_view part : split(text, found.any ? '?' : ',')) {
    const auto pieces = split(part, ':');
    const auto kind = dependency_kind_from(pieces.front());
    if (!kind) {
      return fail(
          fmt::format("dependency '{}': '{}' is none of afterok, afterany, afternotok, "
                      "after, aftercorr, singleton",
                      text, pieces.front()));
    }
    if (*kind == DependencyKind::Singleton) {
      if (pieces.size() > 1)
        return fail(fmt::format("dependency '{}': singleton names no job", text));
      found.all.push_back({.kind = *kind});
      continue;
    }
    if (pieces.size() < 2) return fail(fmt::format("dependency '{}': {} which job?", text, part));
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      const auto dependency = dependency_on(*kind, pieces[i]);
      if (!dependency)
        return fail(
            fmt::format("dependency '{}': '{}' is no job (as in 12, 12_3, 12_*; after: "
                        "also 12+5, five minutes later)",
                        text, pieces[i]));
      found.all.push_back(*dependency);
    }
  }
  return found;
}

namespace {

bool is_endless(std::string_view text) {
  const auto same = [&](std::string_view word) {
    return std::ranges::equal(text, word, [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    });
  };
  return same("infinite") || same("unlimited");
}

/// "0", "0:00", "0-0", "0s": Slurm's other word for no limit.
bool is_zero(std::string_view text) {
  if (text.find_last_of("smhd") == text.size() - 1) text.remove_suffix(1);
  return text.find('0') != std::string_view::npos &&
         text.find_first_not_of("0:-") == std::string_view::npos;
}

}  // namespace

// A job may ask for "no limit"; a queue's limit of 0 means something else, hence two functions.
Result<std::int64_t> parse_job_limit(std::string_view text) {
  if (is_endless(text) || is_zero(text)) return kUnlimitedTime;
  return parse_time_limit(text);
}

Result<std::int64_t> parse_time_limit(std::string_view text) {
  if (is_endless(text)) return 0;
  auto seconds = with_unit(text);
  if (!seconds) seconds = with_colons(text);
  if (!seconds || *seconds <= 0 || *seconds > kMaxLimitSeconds) {
    return fail(fmt::format(
        "'{}' is no time limit (minutes, hours:minutes:seconds, days-hours, or 90s, 1.5h, 2d)",
        text));
  }
  return *seconds;
}

std::string_view to_string(DependencyKind kind) noexcept {
  for (const auto& [known, name] : kDependencyKinds)
    if (known == kind) return name;
  return "afterok";
}

std::string to_text(const Dependency& on) {
  std::string text = fmt::format("{}", on.job);
  if (on.index != kWholeArray) text += fmt::format("_{}", on.index);
  if (on.minutes != 0) text += fmt::format("+{}", on.minutes);
  return text;
}

std::string to_text(const std::vector<Dependency>& dependencies, bool any) {
  std::string text;
  for (const Dependency& dependency : dependencies) {
    if (!text.empty()) text += any ? '?' : ',';
    text += to_string(dependency.kind);
    if (dependency.kind != DependencyKind::Singleton) text += ":" + to_text(dependency);
  }
  return text;
}

std::string to_text(const ArraySpec& array) {
  std::string text;
  for (std::size_t i = 0; i < array.indices.size();) {
    std::size_t last = i;
    while (last + 1 < array.indices.size() && array.indices[last + 1] == array.indices[last] + 1)
      ++last;
    if (!text.empty()) text += ',';
    // Ranges of three and more: "1,2" is as short as "1-2".
    text += last > i + 1 ? fmt::format("{}-{}", array.indices[i], array.indices[last])
                         : fmt::format("{}", array.indices[i]);
    i = last > i + 1 ? last + 1 : i + 1;
  }
  if (array.at_once > 0) text += fmt::format("%{}", array.at_once);
  return text;
}

}  // namespace berth
