// The JSON body of a request: refused if nested too deeply or no object, then read key by key, as
// its description asks (wire/requests.h), with every fault collected. A JobSpec has a reader of its
// own (model/job_spec_json.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "daemon/service.h"

namespace berth::api {

inline constexpr int kMaxJsonDepth = 16;

/// An object; an empty text is an empty one.
[[nodiscard]] Result<nlohmann::json> parse_body(std::string_view text);

class BodyReader {
 public:
  /// `json` is an object and outlives the reader.
  explicit BodyReader(const nlohmann::json& json) : json_(json) {}

  // What wire::StrictReader asks for. Null is as good as nothing.
  static constexpr std::size_t kTextBytes = kMaxNameBytes;
  [[nodiscard]] std::optional<std::string> text(std::string_view key, std::size_t most_bytes);
  /// Not empty either.
  [[nodiscard]] std::string needed_text(std::string_view key);
  /// One of these words.
  [[nodiscard]] std::optional<std::string> needed_choice(std::string_view key,
                                                         std::span<const std::string_view> words);
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view key, std::int64_t low,
                                                  std::int64_t high);
  [[nodiscard]] std::optional<bool> flag(std::string_view key);
  [[nodiscard]] std::optional<double> number(std::string_view key, double low, double high);
  [[nodiscard]] std::vector<JobNumber> numbers(std::string_view key, std::size_t most);
  /// A text or a list of texts.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::size_t most);
  [[nodiscard]] bool has(std::string_view key) { return find(key) != nullptr; }
  /// An object whose values are texts, numbers or truths: settings, each as text.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> map(std::string_view key);

  void wrong(std::string_view key, std::string_view what);
  /// Call after all keys were asked for: reports those nobody asked for.
  void finish();
  [[nodiscard]] bool is_good() const noexcept { return faults_.empty(); }
  [[nodiscard]] const std::vector<std::string>& faults() const noexcept { return faults_; }

 private:
  [[nodiscard]] const nlohmann::json* find(std::string_view key);

  const nlohmann::json& json_;
  std::vector<std::string> known_;
  std::vector<std::string> faults_;
};

}  // namespace berth::api
