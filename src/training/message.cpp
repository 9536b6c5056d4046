#include "training/message.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "training/message_fields.h"
#include "wire/reader.h"
#include "wire/tree.h"

namespace berth {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestMetric = 64;

/// Keys of one object, for wire::StrictReader; remembers the first that is wrong. Absent and null
/// are the same: a loss that is no number is sent as null.
class Keys {
 public:
  static constexpr std::size_t kTextBytes = 4096;

  explicit Keys(const Json& object) : object_(object) {}

  [[nodiscard]] std::optional<double> number(std::string_view key, double low, double) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>()))
      return wrong(key, "is not a finite number");
    if (value->get<double>() < low) return wrong(key, "is below zero");
    return value->get<double>();
  }
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view key, std::int64_t low,
                                                  std::int64_t high) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    const bool is_whole = value->is_number_integer();
    // An unsigned number beyond the signed range would turn negative.
    const bool fits = is_whole && (!value->is_number_unsigned() ||
                                   value->get<std::uint64_t>() <= static_cast<std::uint64_t>(high));
    if (!fits || value->get<std::int64_t>() < low || value->get<std::int64_t>() > high)
      return wrong(key, "is not a whole number in range");
    return value->get<std::int64_t>();
  }
  [[nodiscard]] std::int64_t needed_whole(std::string_view key, std::int64_t high) {
    const auto value = whole(key, 0, high);
    if (!value && error_.empty()) wrong(key, "is missing");
    return value.value_or(0);
  }
  [[nodiscard]] std::optional<std::string> text(std::string_view key, std::size_t most) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string() || value->get_ref<const std::string&>().size() > most)
      return wrong(key, "is not a short text");
    return value->get<std::string>();
  }
  [[nodiscard]] std::optional<bool> flag(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) return wrong(key, "is neither true nor false");
    return value->get<bool>();
  }
  [[nodiscard]] std::optional<std::string> needed_choice(std::string_view key,
                                                         std::span<const std::string_view> words) {
    const Json* value = find(key);
    if (value != nullptr && value->is_string() &&
        std::ranges::find(words, value->get_ref<const std::string&>()) != words.end())
      return value->get<std::string>();
    return wrong(key, fmt::format("is neither '{}'", fmt::join(words, "' nor '")));
  }
  [[nodiscard]] std::map<std::string, double> map(std::string_view key) {
    std::map<std::string, double> all;
    const Json* value = find(key);
    if (value == nullptr) return all;
    if (!value->is_object() || value->size() > kMostMetrics) {
      wrong(key, fmt::format("is not an object of at most {} numbers", kMostMetrics));
      return all;
    }
    for (const auto& [name, number] : value->items()) {
      if (number.is_number() && std::isfinite(number.get<double>()) &&
          name.size() <= kLongestMetric)
        all.emplace(name, number.get<double>());
    }
    return all;
  }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  [[nodiscard]] const Json* find(std::string_view key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::nullopt_t wrong(std::string_view key, std::string_view why) {
    if (error_.empty()) error_ = fmt::format("{} {}", key, why);
    return std::nullopt;
  }

  const Json& object_;
  std::string error_;
};

/// The word in a message's "type".
class TypeOf {
 public:
  template <class Message>
  static std::string_view word() {
    TypeOf type;
    Message message;
    wire::Fields<Message>::visit(message, type);
    return type.word_;
  }
  void operator()(std::string_view, wire::Constant constant, std::string_view = {}) {
    word_ = constant.text;
  }
  template <class T>
  void operator()(std::string_view, T&&, std::string_view = {}) {}

 private:
  std::string_view word_;
};

/// The first of these messages that has this type; none: nothing was read.
template <std::size_t kIndex = 0>
bool read_as(std::string_view type, Keys& keys, FromCode& message) {
  if constexpr (kIndex == std::variant_size_v<FromCode>) {
    return false;
  } else {
    using Message = std::variant_alternative_t<kIndex, FromCode>;
    if (type != TypeOf::word<Message>()) return read_as<kIndex + 1>(type, keys, message);
    wire::read_strictly(keys, message.emplace<kIndex>());
    return true;
  }
}

template <wire::Described Message>
std::string line_of(const Message& message) {
  return wire::to_sorted_json(message) + "\n";
}

}  // namespace

Result<FromCode> parse_from_code(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) return fail("not JSON");
  if (!json.is_object()) return fail("not a JSON object");
  Keys keys{json};
  const std::string type = keys.text("type", Keys::kTextBytes).value_or("");
  FromCode message;
  if (!read_as(type, keys, message))
    return fail(type.empty() ? "type is missing" : fmt::format("type '{:.40}' is not known", type));
  if (!keys.error().empty()) return fail(keys.error());
  return message;
}

std::string welcome_line(JobNumber job) { return line_of(Welcome{.job = job}); }

std::string terms_line(const Terms& terms) {
  return line_of(TermsNote{.sub_steps = terms.sub_steps,
                           .batch = std::max<std::int64_t>(0, terms.batch),
                           .cores = std::max(0, terms.cores_milli) / 1000.0,
                           .memory_mib = std::max<std::int64_t>(0, terms.memory_limit_mib)});
}

std::string checkpoint_line(double deadline_seconds, AfterCheckpoint then) {
  return line_of(CheckpointAsk{deadline_seconds, then == AfterCheckpoint::Stop});
}

std::string resize_line(std::int32_t gpus) { return line_of(ResizeNote{gpus}); }

std::string resize_line(const ResizeAsk& ask) { return line_of(ask); }

std::string error_line(std::string_view why) { return line_of(TrainingError{std::string{why}}); }

}  // namespace berth
