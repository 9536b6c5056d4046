#include "training/message.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace berth {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kLongestMetric = 64;

/// Reads keys of one object and remembers the first that is wrong.
class Keys {
 public:
  explicit Keys(const Json& object) : object_(object) {}

  /// Absent and null are the same: a loss that is no number is sent as null.
  [[nodiscard]] std::optional<double> number(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>()))
      return wrong(key, "is not a finite number");
    return value->get<double>();
  }
  [[nodiscard]] std::optional<double> positive(const char* key) {
    const auto value = number(key);
    if (value && *value < 0) return wrong(key, "is below zero");
    return value;
  }
  [[nodiscard]] std::optional<std::int64_t> count(const char* key, std::int64_t most) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    const bool is_whole = value->is_number_integer();
    // An unsigned number beyond the signed range would turn negative.
    const bool fits = is_whole && (!value->is_number_unsigned() ||
                                   value->get<std::uint64_t>() <= static_cast<std::uint64_t>(most));
    if (!fits || value->get<std::int64_t>() < 0 || value->get<std::int64_t>() > most) {
      wrong(key, "is not a whole number in range");
      return std::nullopt;
    }
    return value->get<std::int64_t>();
  }
  [[nodiscard]] std::int64_t needed_count(const char* key, std::int64_t most) {
    const auto value = count(key, most);
    if (!value && error_.empty()) wrong(key, "is missing");
    return value.value_or(0);
  }
  [[nodiscard]] std::string text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string() || value->get_ref<const std::string&>().size() > kLongestText) {
      wrong(key, "is not a short text");
      return {};
    }
    return value->get<std::string>();
  }
  [[nodiscard]] bool flag(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) wrong(key, "is neither true nor false");
    return value->is_boolean() && value->get<bool>();
  }
  [[nodiscard]] std::map<std::string, double> metrics() {
    std::map<std::string, double> all;
    const Json* value = find("metrics");
    if (value == nullptr) return all;
    if (!value->is_object() || value->size() > kMostMetrics) {
      wrong("metrics", "is not an object of at most 32 numbers");
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
  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::nullopt_t wrong(const char* key, const char* why) {
    if (error_.empty()) error_ = fmt::format("{} {}", key, why);
    return std::nullopt;
  }

  const Json& object_;
  std::string error_;
};

constexpr std::int64_t kMostIterations = std::int64_t{1} << 53;
constexpr std::int64_t kMostSmall = std::numeric_limits<std::int32_t>::max();

Hello hello_from(Keys& keys) {
  Hello hello;
  hello.version = static_cast<std::int32_t>(keys.needed_count("v", kMostSmall));
  hello.job = static_cast<JobNumber>(keys.needed_count("job", kMostIterations));
  hello.token = keys.text("token");
  hello.rank = static_cast<std::int32_t>(keys.count("rank", kMostSmall).value_or(0));
  hello.sdk = keys.text("sdk");
  hello.resizes = keys.flag("resizes");
  return hello;
}

Report report_from(Keys& keys) {
  Report report;
  report.iteration = keys.needed_count("iteration", kMostIterations);
  report.epoch = keys.positive("epoch");
  report.loss = keys.number("loss");
  report.seconds = keys.positive("seconds");
  report.batch = keys.count("batch", kMostSmall);
  report.samples = keys.positive("samples");
  report.sub_steps = static_cast<std::int32_t>(keys.count("sub_steps", kMostSmall).value_or(1));
  report.noise_scale = keys.positive("noise_scale");
  report.metrics = keys.metrics();
  return report;
}

std::string line_of(const Json& json) {
  // Bytes that are no UTF-8 come back from what a peer sent: they must not throw.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<FromCode> parse_from_code(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) return fail("not JSON");
  if (!json.is_object()) return fail("not a JSON object");
  Keys keys{json};
  const std::string type = keys.text("type");
  FromCode message = Bye{};
  if (type == "hello") {
    message = hello_from(keys);
  } else if (type == "report") {
    message = report_from(keys);
  } else if (type == "checkpointed") {
    message = Checkpointed{.iteration = keys.count("iteration", kMostIterations).value_or(0),
                           .path = keys.text("path")};
  } else if (type == "resized") {
    message = Resized{.id = static_cast<std::uint64_t>(keys.needed_count("id", kMostIterations)),
                      .done = keys.flag("done")};
  } else if (type == "phase") {
    const std::string phase = keys.text("phase");
    if (phase != "training" && phase != "validation")
      return fail("phase is neither 'training' nor 'validation'");
    message = PhaseNote{phase == "validation" ? Phase::Validation : Phase::Training};
  } else if (type != "bye") {
    return fail(type.empty() ? "type is missing" : fmt::format("type '{:.40}' is not known", type));
  }
  if (!keys.error().empty()) return fail(keys.error());
  return message;
}

std::string welcome_line(JobNumber job) {
  return line_of({{"type", "welcome"}, {"v", kTrainingProtocol}, {"job", job}});
}

std::string terms_line(const Terms& terms) {
  Json json{{"type", "terms"}, {"sub_steps", terms.sub_steps}};
  if (terms.batch > 0) json["batch"] = terms.batch;
  if (terms.cores_milli > 0) json["cores"] = terms.cores_milli / 1000.0;
  if (terms.memory_limit_mib > 0) json["memory_mib"] = terms.memory_limit_mib;
  return line_of(json);
}

std::string checkpoint_line(double deadline_seconds, AfterCheckpoint then) {
  return line_of({{"type", "checkpoint"},
                  {"deadline_seconds", deadline_seconds},
                  {"stop", then == AfterCheckpoint::Stop}});
}

std::string resize_line(std::int32_t gpus) { return line_of({{"type", "resize"}, {"gpus", gpus}}); }

std::string resize_line(const ResizeAsk& ask) {
  Json json{{"type", "resize"},
            {"id", ask.id},
            {"gpus", ask.devices.size()},
            {"devices", ask.devices},
            {"deadline_seconds", ask.deadline_seconds}};
  if (!ask.cores.empty()) json["cores"] = ask.cores;
  return line_of(json);
}

std::string error_line(std::string_view why) {
  return line_of({{"type", "error"}, {"why", std::string{why}}});
}

}  // namespace berth
