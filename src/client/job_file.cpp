// YAML to the JSON that the API takes: scalars become what their key says, and everything else is
// checked by the reader of requests, so that files and requests cannot differ. Complaints carry the
// place of the key.

#include "client/job_file.h"

#include <algorithm>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>
#include <nlohmann/json.hpp>

#include "client/job_keys.h"
#include "model/job_spec_json.h"
#include "model/yaml_fields.h"
#include "model/yaml_guard.h"

namespace berth::client {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxFileBytes = 16U << 20U;
constexpr std::size_t kMaxJobs = 10'000;
constexpr YamlKind kKind{"job file", "a job is `command: [python3, train.py]` and more keys"};

class JobFileReader {
 public:
  explicit JobFileReader(const std::string& file) : file_(file), fields_(file) {
    for (const JobSpecField& field : job_spec_fields()) keys_.emplace_back(field.key);
  }

  Result<std::vector<JobSpec>> read(const YAML::Node& root) {
    std::vector<JobSpec> jobs;
    if (root.IsSequence()) {
      read_list(root, json::object(), jobs);
    } else if (!root.IsMap()) {
      fields_.wrong(root.Mark(), "a job file is a mapping of keys, or a list of jobs");
    } else if (YamlFields::child(root, "jobs").IsDefined()) {
      static const std::vector<std::string> kTop{"defaults", "jobs"};
      fields_.check_keys(root, kTop, "a file of several jobs");
      json defaults = json::object();
      const YAML::Node common = YamlFields::child(root, "defaults");
      if (common.IsDefined() && !common.IsNull()) defaults = read_keys(common);
      const YAML::Node list = YamlFields::child(root, "jobs");
      if (list.IsSequence())
        read_list(list, defaults, jobs);
      else
        fields_.wrong(list.Mark(), "jobs is a list: each begins with '- '");
    } else {
      read_job(root, json::object(), jobs);
    }
    BERTH_TRY_VOID(fields_.verdict());
    if (jobs.empty()) return fail(fmt::format("{}:1:1: no job in it", file_));
    return jobs;
  }

 private:
  // An array is one request; ten thousand jobs are as many.
  void read_list(const YAML::Node& list, const json& defaults, std::vector<JobSpec>& jobs) {
    if (list.size() > kMaxJobs) {
      fields_.wrong(list.Mark(),
                    fmt::format("{} jobs, at most {} (use array)", list.size(), kMaxJobs));
      return;
    }
    for (const YAML::Node& job : list) read_job(job, defaults, jobs);
  }

  void read_job(const YAML::Node& node, const json& defaults, std::vector<JobSpec>& jobs) {
    if (!node.IsMap()) {
      fields_.wrong(node.Mark(), "a job is a mapping of keys");
      return;
    }
    json all = defaults;
    const json own = read_keys(node);
    // Defaults may give the one and a job the other; both together would be something else.
    if (own.contains("script")) all.erase("command");  // the one replaces the other
    if (own.contains("command") && !own.contains("script")) all.erase("script");
    if (own.contains("env") && all.contains("env")) {
      all["env"].update(own["env"]);
      json rest = own;
      rest.erase("env");
      all.update(rest);
    } else {
      all.update(own);
    }
    auto spec = job_spec_from_json(all);
    if (spec)
      jobs.push_back(*std::move(spec));
    else
      for (const std::string& message : spec.error().messages) about_key(node, message);
  }

  /// "key: what" at the key's place.
  void about_key(const YAML::Node& node, const std::string& message) {
    const YAML::Node value =
        YamlFields::child(node, std::string_view(message).substr(0, message.find(':')));
    fields_.wrong(value.IsDefined() ? value.Mark() : node.Mark(), message);
  }

  json read_keys(const YAML::Node& map) {
    json object = json::object();
    if (!map.IsMap()) {
      fields_.wrong(map.Mark(), "a mapping of keys is expected here");
      return object;
    }
    fields_.check_keys(map, keys_, "a job");
    for (const JobSpecField& field : job_spec_fields()) {
      const YAML::Node value = YamlFields::child(map, field.key);
      if (value.IsDefined() && !value.IsNull()) read_value(field, value, object);
    }
    return object;
  }

  // A scalar is converted by its key, as on the command line; lists and maps only where the key has
  // them.
  void read_value(const JobSpecField& field, const YAML::Node& value, json& object) {
    const std::string key(field.key);
    if (key == "grid" && value.IsMap()) {
      object[key] = read_grid(value);
    } else if (field.kind == "map") {
      object[key] = read_map(value, key);
    } else if (key == "command" && value.IsScalar()) {
      object[key] = json::array({"/bin/sh", "-c", value.Scalar()});
    } else if (field.kind == "list" && value.IsSequence()) {
      object[key] = read_list_of_texts(value, key);
    } else if (!value.IsScalar()) {
      fields_.wrong(value.Mark(), fmt::format("{} is a {}, not a list or mapping", key,
                                              field.kind == "string" ? "text" : field.kind));
    } else if (auto converted = value_of_key(key, value.Scalar())) {
      object[key] = *std::move(converted);
    } else {
      fields_.wrong(value.Mark(), fmt::format("{}: {}", key, shown(converted.error().text())));
    }
  }

  // A value without text is an empty one, as in `NAME:`.
  json read_map(const YAML::Node& value, const std::string& key) {
    json map = json::object();
    if (!value.IsMap()) {
      fields_.wrong(value.Mark(), fmt::format("{} is a mapping, NAME: value", key));
      return map;
    }
    for (const auto& entry : value) {
      if (entry.first.IsScalar() && (entry.second.IsScalar() || entry.second.IsNull()))
        map[entry.first.Scalar()] = entry.second.IsNull() ? "" : entry.second.Scalar();
      else
        fields_.wrong(entry.first.Mark(), fmt::format("{}: a name with a plain value", key));
    }
    return map;
  }

  /// NAME: value, or NAME: [values], as texts "NAME=VALUE,VALUE".
  json read_grid(const YAML::Node& value) {
    json list = json::array();
    for (const auto& entry : value) {
      std::string text = entry.first.IsScalar() ? entry.first.Scalar() + "=" : "=";
      if (entry.second.IsScalar()) {
        text += entry.second.Scalar();
      } else if (entry.second.IsSequence()) {
        for (const YAML::Node& item : entry.second) {
          if (text.back() != '=') text += ',';
          text += item.IsScalar() ? item.Scalar() : "";
        }
      } else {
        fields_.wrong(entry.first.Mark(), "grid: a name with a value or a list of values");
      }
      list.push_back(text);
    }
    return list;
  }

  json read_list_of_texts(const YAML::Node& value, const std::string& key) {
    json list = json::array();
    for (const YAML::Node& item : value) {
      if (item.IsScalar())
        list.push_back(item.Scalar());
      else
        fields_.wrong(item.Mark(), fmt::format("{}: a list of plain words", key));
    }
    return list;
  }

  const std::string& file_;
  YamlFields fields_;
  std::vector<std::string> keys_;
};

}  // namespace

Result<std::vector<JobSpec>> parse_job_file(std::string_view text, const std::string& file) {
  if (text.size() > kMaxFileBytes)
    return fail(
        fmt::format("{}:1:1: larger than {} bytes (is this a job file?)", file, kMaxFileBytes));
  if (text.find('\0') != std::string_view::npos)
    return fail(fmt::format("{}:1:1: not a text file (a job file is YAML in UTF-8)", file));
  try {  // yaml-cpp throws; nothing of it leaves this function
    const std::string owned(text);
    BERTH_TRY_VOID(check_yaml_shape(owned, file, kKind));
    return JobFileReader(file).read(YAML::Load(owned));
  } catch (const YAML::Exception& problem) {
    return fail(fmt::format("{}: {} (YAML: keys are 'key: value', lists begin with '- ', no tabs)",
                            yaml_place(file, problem.mark), problem.msg));
  } catch (const std::exception& problem) {
    return fail(fmt::format("{}:1:1: cannot read: {}", file, problem.what()));
  }
}

}  // namespace berth::client
