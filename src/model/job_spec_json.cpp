// visit_fields() lists every key of a request once; reading, writing, the list of fields and the
// check for unknown keys are visitors of it. Faults are collected, so that a user sees all of them.

#include "model/job_spec_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/suggest.h"

namespace berth {

namespace {

using nlohmann::json;

/// Read, never written: what it says is in gpus_min and gpus_max.
constexpr std::string_view kElastic = "elastic";

/// Every field once: its key, its place and its meaning. Readers, writers and the list of fields
/// are visitors of this.
template <class Spec, class Visitor>
void visit_fields(Spec& s, Visitor&& v) {
  v("script", s.script, "text of a script with a #! line; or say command");
  v("command", s.command, "program and arguments; with a script, its arguments");
  v("workdir", s.workdir, "absolute path of the directory it runs in");
  v("env", s.env, "environment variables");
  v("input", s.input, "path of standard input (default: none)");
  v("output", s.output, "path of standard output; %j %J %x %u %A %a %b %N %n %s %t are replaced");
  v("error", s.error, "path of standard error (default: with output)");
  v("open_mode", s.open_mode, "truncate or append to output that is there");
  v("umask", s.umask, "octal mask of the files it makes (default: the submitter's, or 022)");
  v("container", s.container, "image it runs in, by the scheduler's `containers`");
  v("name", s.name, "what people call it");
  v("user", s.user, "whose job it is (an admin may name another)");
  v("group", s.group, "whose share it uses");
  v("queue", s.queue, "queue (partition)");
  v("comment", s.comment, "any text");
  v("qos", s.qos, "any name; kept and shown, decides nothing");
  v("submit_host", s.submit_host, "where it was submitted");
  v("gpus", s.gpus, "devices, all or nothing; 0: cores alone (default 1)");
  v("gpus_min", s.gpus_min, "elastic: runs with as few");
  v("gpus_max", s.gpus_max, "elastic: uses as many");
  v("gpu_milli", s.gpu_milli, "share of one device in thousandths");
  v("gpu_type", s.gpu_type, "acceptable types, a100|v100 in order of preference");
  v("gpu_memory_mib", s.gpu_memory_mib, "only devices with so much memory");
  v("cpus", s.cpus, "cores for the whole job");
  v("memory_mib", s.memory_mib, "host memory for the whole job");
  v("tasks", s.tasks, "processes of a gang, each with its RANK");
  v("ranks", s.ranks, "a single task gets RANK, WORLD_SIZE and MASTER_* too");
  v("nodes", s.nodes, "only on these nodes");
  v("exclude", s.exclude, "not on these nodes");
  v("exclusive", s.exclusive, "no other job on its nodes");
  v("time_limit", s.time_limit, "seconds it may run");
  v("estimate", s.estimate, "seconds it will likely run");
  v("priority", s.priority, "larger is more urgent");
  v("weight", s.weight, "its share against others of equal right");
  v("preemptible", s.preemptible, "may be stopped and continued later");
  v("requeue", s.requeue, "runs again after a lost node");
  v("max_retries", s.max_retries, "runs again so often after a failure of its own");
  v("requeue_exit_code", s.requeue_exit_code, "this exit code means: run me again");
  v("warn_signal", s.warn_signal, "signal that announces a preemption or the limit");
  v("warn_seconds", s.warn_seconds, "so long before the limit");
  v("warn_shell", s.warn_shell, "the warning goes to its shell alone, not to what that started");
  v("grace_seconds", s.grace_seconds, "between the warning and the kill");
  v("deadline", s.deadline, "Unix seconds by which it should be over");
  v("soft_deadline", s.soft_deadline, "the deadline may be missed, at a price");
  v("hold", s.hold, "waits until it is released");
  v("begin", s.begin, "Unix seconds before which it does not start");
  v("dependencies", s.dependencies, "what it waits for, as in afterok:12:13");
  v("any_dependency", s.any_dependency, "one of the dependencies is enough");
  v("keep_unmet", s.keep_unmet, "stays in the queue though its dependencies can never be met");
  v("array", s.array, "many jobs of one kind, as in 0-9:3,20%2");
  v("grid", s.grid, "parameters and their values: an array over all combinations");
  v("grid_zip", s.grid_zip, "the first values together, then the second ones");
  v("model", s.model, "what it trains, as profiles call it");
  v("study", s.study, "hyper-parameter study it belongs to");
  v("batch_size", s.batch_size, "samples per iteration over all devices");
  v("iterations", s.iterations, "iterations in all");
  v("kind", s.kind, "training, hpo, debug, interactive or service");
  v("key", s.key, "of the client: the same key again is the same job");
}

template <class T>
constexpr std::string_view kind_name() {
  if constexpr (std::is_same_v<T, bool>)
    return "boolean";
  else if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::optional<std::int32_t>> ||
                     std::is_same_v<T, std::optional<std::int64_t>>)
    return "integer";
  else if constexpr (std::is_floating_point_v<T>)
    return "number";
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return "list";
  else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>)
    return "map";
  else
    return "string";
}

class FieldReader {
 public:
  FieldReader(const json& source, std::vector<std::string>& faults)
      : source_(source), faults_(faults) {}

  template <class T>
  void operator()(std::string_view key, T& value, std::string_view) {
    const auto found = source_.find(std::string(key));
    if (found != source_.end() && !found->is_null()) read(key, *found, value);
  }
  /// A word for the range from one device to what it asks for; a range that is given stands.
  /// The range is what is stored: a reader of the journal need not know this word.
  void read_elastic(JobSpec& spec) {
    bool is_elastic = false;
    (*this)(kElastic, is_elastic, "");
    if (!is_elastic) return;
    if (spec.gpus_min == 0) spec.gpus_min = 1;
    if (spec.gpus_max == 0) spec.gpus_max = spec.gpus;
  }
  void check_unknown() {
    const auto& fields = job_spec_fields();
    std::vector<std::string> known;
    for (const auto& [key, value] : source_.items()) {
      if (std::ranges::find(fields, key, &JobSpecField::key) != fields.end()) continue;
      if (known.empty())
        for (const JobSpecField& field : fields) known.emplace_back(field.key);
      faults_.push_back(fmt::format("{}: unknown{}", key, suggestion(key, known)));
    }
  }

 private:
  // What was found is shown, but cut: it may be a whole script.
  void wrong(std::string_view key, std::string_view wanted, const json& found) {
    std::string shown = found.dump(-1, ' ', true, json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    faults_.push_back(fmt::format("{}: {} expected, not {}", key, wanted, shown));
  }
  void read(std::string_view key, const json& from, std::string& to) {
    if (from.is_string())
      to = from.get<std::string>();
    else
      wrong(key, "a text", from);
  }
  void read(std::string_view key, const json& from, bool& to) {
    if (from.is_boolean())
      to = from.get<bool>();
    else
      wrong(key, "true or false", from);
  }
  template <class Whole>
  requires std::is_integral_v<Whole>
  void read(std::string_view key, const json& from, Whole& to) {
    if (from.is_number_unsigned() &&
        from.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<Whole>::max())) {
      wrong(key, "a smaller number", from);
    } else if (from.is_number_integer() &&
               from.get<std::int64_t>() >= std::numeric_limits<Whole>::min() &&
               from.get<std::int64_t>() <= std::numeric_limits<Whole>::max()) {
      to = from.get<Whole>();
    } else {
      wrong(key, "a whole number", from);
    }
  }
  void read(std::string_view key, const json& from, double& to) {
    if (from.is_number() && std::isfinite(from.get<double>()))
      to = from.get<double>();
    else
      wrong(key, "a number", from);
  }
  template <class T>
  void read(std::string_view key, const json& from, std::optional<T>& to) {
    T value{};
    // A value of the wrong kind leaves the optional empty: the fault is on record already.
    const std::size_t before = faults_.size();
    read(key, from, value);
    if (faults_.size() == before) to = std::move(value);
  }
  void read(std::string_view key, const json& from, std::vector<std::string>& to) {
    const auto is_text = [](const json& item) { return item.is_string(); };
    if (from.is_array() && std::ranges::all_of(from, is_text))
      to = from.get<std::vector<std::string>>();
    else
      wrong(key, "a list of texts", from);
  }
  void read(std::string_view key, const json& from, std::map<std::string, std::string>& to) {
    const auto is_text = [](const json& item) { return item.is_string(); };
    if (from.is_object() && std::ranges::all_of(from, is_text))
      to = from.get<std::map<std::string, std::string>>();
    else
      wrong(key, "names with texts", from);
  }
  void read(std::string_view key, const json& from, OpenMode& to) {
    if (from == "append")
      to = OpenMode::Append;
    else if (from == "truncate")
      to = OpenMode::Truncate;
    else
      wrong(key, "append or truncate", from);
  }
  void read(std::string_view key, const json& from, JobKind& to) {
    const auto kind = from.is_string() ? job_kind_from(from.get<std::string>()) : std::nullopt;
    if (kind)
      to = *kind;
    else
      wrong(key, "training, hpo, debug, interactive or service", from);
  }
  void read(std::string_view key, const json& from, ArraySpec& to) {
    if (!from.is_string()) return wrong(key, "a text such as 0-9", from);
    keep(key, parse_array(from.get<std::string>()), to);
  }
  void read(std::string_view key, const json& from, std::vector<Dependency>& to) {
    if (!from.is_string()) return wrong(key, "a text such as afterok:12", from);
    if (from.get<std::string>().empty()) return to.clear();
    Dependencies parsed;
    keep(key, parse_dependencies(from.get<std::string>()), parsed);
    to = parsed.all;
    if (parsed.any) is_any_ = true;
  }
  template <class T>
  void keep(std::string_view key, Result<T> parsed, T& to) {
    if (parsed)
      to = *std::move(parsed);
    else
      faults_.push_back(fmt::format("{}: {}", key, parsed.error().text()));
  }

 public:
  [[nodiscard]] bool is_any() const noexcept { return is_any_; }

 private:
  const json& source_;
  std::vector<std::string>& faults_;
  bool is_any_ = false;
};

json value_of(const ArraySpec& array) { return to_text(array); }
json value_of(const std::vector<Dependency>& all) { return to_text(all, false); }
json value_of(OpenMode mode) { return mode == OpenMode::Append ? "append" : "truncate"; }
json value_of(JobKind kind) { return std::string(to_string(kind)); }
template <class T>
json value_of(const T& value) {
  return value;
}
template <class T>
json value_of(const std::optional<T>& value) {
  return value ? value_of(*value) : json();
}

void write_value(JsonWriter& out, const ArraySpec& array) { out.value(to_text(array)); }
void write_value(JsonWriter& out, const std::vector<Dependency>& all) {
  out.value(to_text(all, false));
}
void write_value(JsonWriter& out, OpenMode mode) {
  out.value(mode == OpenMode::Append ? "append" : "truncate");
}
void write_value(JsonWriter& out, JobKind kind) { out.value(to_string(kind)); }
void write_value(JsonWriter& out, const std::vector<std::string>& list) {
  out.begin_array();
  for (const std::string& item : list) out.value(item);
  out.end_array();
}
void write_value(JsonWriter& out, const std::map<std::string, std::string>& map) {
  out.begin_object();
  for (const auto& [key, value] : map) out.field(key, value);
  out.end_object();
}
template <class T>
void write_value(JsonWriter& out, const T& value) {
  out.value(value);
}
template <class T>
void write_value(JsonWriter& out, const std::optional<T>& value) {
  write_value(out, *value);  // an empty one is the default and not written
}

}  // namespace

Result<JobSpec> job_spec_from_json(const json& source) {
  if (!source.is_object()) return fail("a job is a JSON object");
  JobSpec spec;
  Error error;
  FieldReader reader(source, error.messages);
  visit_fields(spec, reader);
  reader.read_elastic(spec);
  reader.check_unknown();
  if (reader.is_any()) spec.any_dependency = true;
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return spec;
}

// For what an older or newer scheduler sent: what can be read is read, faults are nobody's business
// here.
JobSpec known_part(const json& source) {
  JobSpec spec;
  if (!source.is_object()) return spec;
  std::vector<std::string> faults;
  FieldReader reader(source, faults);
  visit_fields(spec, reader);
  if (reader.is_any()) spec.any_dependency = true;
  return spec;
}

json to_json(const JobSpec& spec) {
  json out = json::object();
  const JobSpec plain;
  std::map<std::string_view, json> defaults;
  visit_fields(plain, [&](std::string_view key, const auto& value, std::string_view) {
    defaults.emplace(key, value_of(value));
  });
  visit_fields(spec, [&](std::string_view key, const auto& value, std::string_view) {
    json shown = value_of(value);
    if (shown != defaults[key]) out[std::string(key)] = std::move(shown);
  });
  return out;
}

void write_json(JsonWriter& out, const JobSpec& spec, SpecPart part) {
  static const JobSpec plain;
  static const std::vector<const void*> defaults = [] {  // in the order of the visit
    std::vector<const void*> all;
    visit_fields(plain, [&](std::string_view, const auto& value, std::string_view) {
      all.push_back(&value);
    });
    return all;
  }();
  out.begin_object();
  std::size_t field = 0;
  visit_fields(spec, [&]<class T>(std::string_view key, const T& value, std::string_view) {
    if (value == *static_cast<const T*>(defaults[field++])) return;
    // Scripts are large and environments may hold secrets: lists leave them out.
    if (part != SpecPart::Whole && (key == "script" || key == "env")) return;
    if (part == SpecPart::Brief && (key == "array" || key == "key")) return;
    out.key(key);
    write_value(out, value);
  });
  out.end_object();
}

Result<JobSpec> changed_job_spec(const JobSpec& spec, std::string_view changes) {
  const nlohmann::json json = nlohmann::json::parse(changes, nullptr, false);
  if (!json.is_object()) return fail("changes are a JSON object");
  // These decide who and how many a job is; changing them would make it another one.
  for (const char* fixed : {"user", "key", "array", "hold"}) {
    if (json.contains(fixed)) return fail(fmt::format("{}: cannot be changed", fixed));
  }
  nlohmann::json merged = to_json(spec);
  for (const auto& [key, value] : json.items()) merged[key] = value;
  return job_spec_from_json(merged);
}

std::string changes_between(const JobSpec& before, const JobSpec& after) {
  const json old = to_json(before);
  const json asked = to_json(after);
  json changes = json::object();
  for (const auto& [key, value] : old.items()) {
    // null sets a key back to its default: it was left out because it has that value now.
    if (!asked.contains(key)) changes[key] = nullptr;
  }
  for (const auto& [key, value] : asked.items()) {
    if (!old.contains(key) || old[key] != value) changes[key] = value;
  }
  return changes.dump(-1, ' ', false, json::error_handler_t::replace);
}

const std::vector<JobSpecField>& job_spec_fields() {
  static const std::vector<JobSpecField> fields = [] {
    std::vector<JobSpecField> all;
    const JobSpec spec;
    visit_fields(spec, [&]<class T>(std::string_view key, const T&, std::string_view meaning) {
      all.push_back({key, kind_name<T>(), meaning});
    });
    const auto after = std::ranges::find(all, "gpus_max", &JobSpecField::key) + 1;
    all.insert(after, {kElastic, "boolean", "true: runs with 1 to `gpus` devices, unless told"});
    return all;
  }();
  return fields;
}

}  // namespace berth
