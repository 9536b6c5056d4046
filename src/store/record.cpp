// Records as JSON. Readers take what they know and default what is missing, so that records of
// every older version can be read; a kind nobody knows is an error, because skipping it would
// change what the journal adds up to.

#include "store/record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/journal_json.h"

namespace berth {

namespace {

using nlohmann::json;

json body_of(const SubmitRecord&) = delete;  // made of its spec's text: submit_body()
json body_of(const LifeRecord& r) {
  return {{"generation", r.generation},
          {"boot_id", r.boot_id},
          {"boot_clock", r.boot_clock},
          {"version", r.version}};
}
json body_of(const IntentRecord& r) {
  return {{"job", r.job},
          {"attempt", to_text(r.attempt)},
          {"where", to_json(r.where)},
          {"gpus", r.gpus},
          {"reason", r.reason}};
}
json body_of(const StartedRecord& r) {
  return {{"job", r.job}, {"attempt", to_text(r.attempt)}, {"pid", r.pid}};
}
json body_of(const WishRecord& r) {
  json body{{"job", r.job}, {"wish", to_string(r.wish)}, {"by", r.by}, {"why", r.why}};
  if (!r.for_jobs.empty()) body["for"] = r.for_jobs;
  return body;
}
json body_of(const EndRecord& r) {
  json body{{"job", r.job},
            {"outcome", to_string(r.outcome)},
            {"is_final", r.is_final},
            {"exit_code", r.exit_code},
            {"signal", r.signal},
            {"gpu_seconds", r.gpu_seconds},
            {"run_seconds", r.run_seconds},
            {"why", r.why}};
  if (!r.attempt.is_none()) body["attempt"] = to_text(r.attempt);
  if (r.suspended_seconds != 0) body["suspended_seconds"] = r.suspended_seconds;
  if (r.joules != 0) body["joules"] = r.joules;
  if (r.cpu_seconds != 0) body["cpu_seconds"] = r.cpu_seconds;
  if (r.max_rss_kib != 0) body["max_rss_kib"] = r.max_rss_kib;
  if (!r.steps.empty()) body["steps"] = to_json(r.steps);
  return body;
}
json body_of(const ChangeRecord& r) {
  return {{"job", r.job}, {"changes", r.changes}, {"by", r.by}};
}
/// Bytes are no text: two letters for each.
json body_of(const EngineRecord& r) {
  std::string letters;
  for (const char byte : r.bytes)
    letters += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return {{"begins", r.begins}, {"bytes", std::move(letters)}};
}
json body_of(const SettingRecord& r) { return {{"key", r.key}, {"value", r.value}, {"by", r.by}}; }

json body_of(const ResizeRecord& r) {
  return {{"job", r.job},
          {"attempt", to_text(r.attempt)},
          {"where", to_json(r.where)},
          {"gpus", r.gpus},
          {"extra_gpu_seconds", r.extra_gpu_seconds},
          {"reason", r.reason}};
}

enum class Need : std::uint8_t { Optional, Required };

/// Takes known fields out of an object; what is absent keeps its default, what it does not know it
/// leaves alone. All faults are collected.
class BodyReader {
 public:
  explicit BodyReader(const json& source) : source_(source) {}

  template <class T>
  void take(const char* key, T& value, Need need = Need::Optional) {
    const auto found = source_.find(key);
    if (found == source_.end() || found->is_null()) {
      if (need == Need::Required) fault(key, "is missing");
      return;
    }
    read(key, *found, value);
  }
  template <class Body>
  [[nodiscard]] Result<RecordBody> done(Body body) {
    if (!error_.messages.empty()) return tl::unexpected<Error>(std::move(error_));
    return RecordBody{std::move(body)};
  }

 private:
  void fault(const char* key, std::string_view text) {
    error_.messages.push_back(fmt::format("{}: {}", key, text));
  }
  template <class T>
  void keep(const char* key, std::optional<T> found, T& value) {
    if (found)
      value = *found;
    else
      fault(key, "an unknown word");
  }
  static std::string_view text_of(const json& from) {
    return from.is_string() ? std::string_view(from.get_ref<const std::string&>())
                            : std::string_view();
  }
  void read(const char* key, const json& from, std::string& to) {
    if (!from.is_string()) return fault(key, "a text expected");
    to = from.get<std::string>();
  }
  void read(const char* key, const json& from, bool& to) {
    if (!from.is_boolean()) return fault(key, "true or false expected");
    to = from.get<bool>();
  }
  void read(const char* key, const json& from, double& to) {
    if (!from.is_number() || !std::isfinite(from.get<double>()))
      return fault(key, "a number expected");
    to = from.get<double>();
  }
  template <std::integral Whole>
  void read(const char* key, const json& from, Whole& to) {
    // Signed and unsigned apart: a comparison between them would let huge numbers through as
    // negative ones.
    const bool is_fitting = from.is_number_unsigned()
                                ? from.get<std::uint64_t>() <=
                                      static_cast<std::uint64_t>(std::numeric_limits<Whole>::max())
                                : from.is_number_integer() && std::signed_integral<Whole> &&
                                      std::in_range<Whole>(from.get<std::int64_t>());
    if (!is_fitting) return fault(key, "a whole number in range expected");
    to = from.get<Whole>();
  }
  void read(const char* key, const json& from, AttemptId& to) {
    keep(key, attempt_from(text_of(from)), to);
  }
  void read(const char* key, const json& from, Outcome& to) {
    keep(key, outcome_from(text_of(from)), to);
  }
  void read(const char* key, const json& from, Wish& to) {
    keep(key, wish_from(text_of(from)), to);
  }
  template <class T>
  void keep(Result<T> found, T& value) {
    if (found) {
      value = *std::move(found);
      return;
    }
    for (std::string& message : found.error().messages)
      error_.messages.push_back(std::move(message));
  }
  void read(const char*, const json& from, std::vector<HeldDevices>& to) {
    keep(held_from_json(from), to);
  }
  void read(const char*, const json& from, std::vector<StepView>& to) {
    to = steps_from_json(from);
  }
  void read(const char* key, const json& from, std::vector<JobNumber>& to) {
    const auto is_number = [](const json& value) { return value.is_number_unsigned(); };
    if (!from.is_array() || !std::ranges::all_of(from, is_number))
      return fault(key, "a list of numbers expected");
    to = from.get<std::vector<JobNumber>>();
  }
  void read(const char*, const json& from, JobSpec& to) { keep(kept_spec(from), to); }

  const json& source_;
  Error error_;
};

Result<RecordBody> read_life(BodyReader reader) {
  LifeRecord r;
  reader.take("generation", r.generation, Need::Required);
  reader.take("boot_id", r.boot_id);
  reader.take("boot_clock", r.boot_clock);
  reader.take("version", r.version);
  return reader.done(std::move(r));
}
Result<RecordBody> read_submit(BodyReader reader) {
  SubmitRecord r;
  reader.take("first", r.first, Need::Required);
  reader.take("spec", r.spec, Need::Required);
  return reader.done(std::move(r));
}
Result<RecordBody> read_intent(BodyReader reader) {
  IntentRecord r;
  reader.take("job", r.job, Need::Required);
  reader.take("attempt", r.attempt, Need::Required);
  reader.take("where", r.where);
  reader.take("gpus", r.gpus);
  reader.take("reason", r.reason);
  return reader.done(std::move(r));
}
Result<RecordBody> read_started(BodyReader reader) {
  StartedRecord r;
  reader.take("job", r.job, Need::Required);
  reader.take("attempt", r.attempt, Need::Required);
  reader.take("pid", r.pid);
  return reader.done(r);
}
Result<RecordBody> read_wish(BodyReader reader) {
  WishRecord r;
  reader.take("job", r.job, Need::Required);
  reader.take("wish", r.wish, Need::Required);
  reader.take("by", r.by);
  reader.take("why", r.why);
  reader.take("for", r.for_jobs);
  return reader.done(std::move(r));
}
Result<RecordBody> read_end(BodyReader reader) {
  EndRecord r;
  reader.take("job", r.job, Need::Required);
  reader.take("attempt", r.attempt);
  reader.take("outcome", r.outcome, Need::Required);
  reader.take("is_final", r.is_final, Need::Required);
  reader.take("exit_code", r.exit_code);
  reader.take("signal", r.signal);
  reader.take("gpu_seconds", r.gpu_seconds);
  reader.take("run_seconds", r.run_seconds);
  reader.take("suspended_seconds", r.suspended_seconds);
  reader.take("joules", r.joules);
  reader.take("why", r.why);
  reader.take("cpu_seconds", r.cpu_seconds);
  reader.take("max_rss_kib", r.max_rss_kib);
  reader.take("steps", r.steps);
  return reader.done(std::move(r));
}
Result<RecordBody> read_change(BodyReader reader) {
  ChangeRecord r;
  reader.take("job", r.job, Need::Required);
  reader.take("changes", r.changes, Need::Required);
  reader.take("by", r.by);
  return reader.done(std::move(r));
}
Result<RecordBody> read_setting(BodyReader reader) {
  SettingRecord r;
  reader.take("key", r.key, Need::Required);
  reader.take("value", r.value, Need::Required);
  reader.take("by", r.by);
  return reader.done(std::move(r));
}
Result<RecordBody> read_resize(BodyReader reader) {
  ResizeRecord r;
  reader.take("job", r.job, Need::Required);
  reader.take("attempt", r.attempt, Need::Required);
  reader.take("where", r.where, Need::Required);
  reader.take("gpus", r.gpus, Need::Required);
  reader.take("extra_gpu_seconds", r.extra_gpu_seconds);
  reader.take("reason", r.reason);
  return reader.done(std::move(r));
}

Result<RecordBody> read_engine(BodyReader reader) {
  EngineRecord r;
  std::string letters;
  reader.take("begins", r.begins, Need::Required);
  reader.take("bytes", letters, Need::Required);
  for (std::size_t i = 0; i + 1 < letters.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(&letters[i], &letters[i] + 2, byte, 16);
    r.bytes += static_cast<char>(byte);
  }
  return reader.done(std::move(r));
}

// A kind is added at the end, with its reader; its name must never be reused.
struct Kind {
  std::string_view name;  // kept in the journal: never changes
  Result<RecordBody> (*read)(BodyReader);
};
/// In the order of RecordBody's alternatives.
constexpr Kind kKinds[] = {{"life", read_life},     {"submit", read_submit},
                           {"intent", read_intent}, {"started", read_started},
                           {"wish", read_wish},     {"end", read_end},
                           {"change", read_change}, {"setting", read_setting},
                           {"resize", read_resize}, {"engine", read_engine}};
static_assert(std::size(kKinds) == std::variant_size_v<RecordBody>);

}  // namespace

std::string_view kind_of(const RecordBody& body) noexcept { return kKinds[body.index()].name; }

std::string encode(const RecordBody& body) {
  return std::visit(
      []<class Body>(const Body& record) {
        if constexpr (std::is_same_v<Body, SubmitRecord>)
          // The text of a spec is kept in a table too; both are made by one function and stay
          // equal.
          return submit_body(record.first, spec_text(record.spec));
        else
          return dump(body_of(record));
      },
      body);
}

// Text from the disk: nothing here may throw or trust what it reads.
Result<RecordBody> decode(std::string_view kind, std::string_view text) {
  for (const Kind& known : kKinds) {
    if (known.name != kind) continue;
    const json source = json::parse(text, nullptr, false);
    if (!source.is_object()) return fail(fmt::format("a record '{}' is no JSON object", kind));
    auto body = known.read(BodyReader(source));
    if (!body) {
      for (std::string& message : body.error().messages)
        message = fmt::format("record '{}': {}", kind, message);
    }
    return body;
  }
  return fail(fmt::format("unknown kind of record '{}' (written by a newer version?)", kind));
}

}  // namespace berth
