// Parameters of a policy: declared once with default and meaning, set by --set KEY=VALUE, printed
// by `berth policies NAME`. Values are checked at the door; an unknown key prints the nearest ones.
#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth {

struct ParamSpec {
  std::string key;
  std::string default_value;
  std::string meaning;            // with its unit
  std::string live_default = {};  // of a live scheduler, if it is another one
};

/// How complaints call a setting and where they send their reader.
struct ParamVoice {
  std::string setting = "--set ";  // stands before KEY=VALUE
  std::string see = {};            // a command; empty: `berth policies OWNER`
};

using Settings = std::vector<std::pair<std::string, std::string>>;
/// "key=value,key=value"; `option` is named in complaints.
[[nodiscard]] Result<Settings> parse_settings(std::string_view text, std::string_view option);

class Params {
 public:
  /// Takes the given settings over the declared defaults; the error names key and owner.
  [[nodiscard]] static Result<Params> make(std::string_view owner,
                                           const std::vector<ParamSpec>& specs,
                                           const Settings& settings, ParamVoice voice = {});

  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] Result<double> number(std::string_view key, double low, double high) const;
  [[nodiscard]] Result<std::int64_t> integer(std::string_view key, std::int64_t low,
                                             std::int64_t high) const;
  /// The same as the type that keeps it; `high` is one of its values.
  template <std::integral T>
  [[nodiscard]] Result<T> whole(std::string_view key, T low, T high) const {
    BERTH_TRY(const std::int64_t number,
              integer(key, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)));
    return static_cast<T>(number);
  }
  /// Seconds, or with a unit: 90, 90s, 5m, 2h, 1d.
  [[nodiscard]] Result<Duration> duration(std::string_view key) const;
  /// The same, and more than zero.
  [[nodiscard]] Result<Duration> positive_duration(std::string_view key) const;
  [[nodiscard]] Result<bool> flag(std::string_view key) const;  // on/off, true/false, yes/no, 1/0
  [[nodiscard]] Result<std::vector<double>> numbers(std::string_view key) const;
  /// One of the words; answers its position.
  [[nodiscard]] Result<std::size_t> choice(std::string_view key,
                                           const std::vector<std::string>& words) const;
  /// The same with what each word stands for: choice<Rank>("rank", {{"tcon", Rank::Time}, …}).
  template <class T>
  [[nodiscard]] Result<T> choice(std::string_view key,
                                 std::initializer_list<std::pair<const char*, T>> words) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : words) names.emplace_back(name);
    BERTH_TRY(const std::size_t at, choice(key, names));
    return (words.begin() + at)->second;
  }
  /// "name:1:2,other:3": names with their numbers.
  [[nodiscard]] Result<std::vector<std::pair<std::string, std::vector<double>>>> named_numbers(
      std::string_view key) const;
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view key, std::string_view what) const;

 private:
  ParamVoice voice_;
  std::map<std::string, std::string, std::less<>> values_;
};

[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

}  // namespace berth
