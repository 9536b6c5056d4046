#include <fmt/format.h>

#include "apps/commands.h"
#include "base/json_writer.h"
#include "base/text_table.h"
#include "policies/registry.h"

namespace berth {

namespace {

void put_json(JsonWriter& json, const PolicyEntry& entry) {
  json.begin_object().field("name", entry.name).field("summary", entry.summary);
  json.field("needs", needs_text(entry.needs)).field("preempts", entry.preempts);
  json.key("params").begin_array();
  for (const ParamSpec& param : entry.params) {
    json.begin_object()
        .field("key", param.key)
        .field("default", param.default_value)
        .field("meaning", param.meaning)
        .end_object();
  }
  json.end_array().end_object();
}

std::string all_for_people() {
  TextTable table({{"policy", Align::Left},
                   {"needs", Align::Left},
                   {"preempts", Align::Left},
                   {"what it does", Align::Left}});
  for (const PolicyEntry& entry : policy_registry()) {
    table.add_row(
        {entry.name, needs_text(entry.needs), entry.preempts ? "yes" : "no", entry.summary});
  }
  return table.str() +
         "\n`berth policies NAME` lists what --set changes; `berth placements` and `berth "
         "estimators` go with them.\n";
}

std::string one_for_people(const PolicyEntry& entry) {
  std::string text =
      fmt::format("{}: {}\n\nneeds to know: {}\npreempts: {}\n\n", entry.name, entry.summary,
                  needs_text(entry.needs), entry.preempts ? "yes" : "no");
  if (entry.params.empty()) return text + "It has no parameters.\n";
  TextTable table({{"--set", Align::Left}, {"default", Align::Left}, {"meaning", Align::Left}});
  for (const ParamSpec& param : entry.params) {
    table.add_row(
        {param.key, param.default_value.empty() ? "(empty)" : param.default_value, param.meaning});
  }
  return text + table.str();
}

}  // namespace

Exit execute(const PoliciesOptions& options) {
  if (options.name.empty() && !options.json) return write_stdout(all_for_people());
  JsonWriter json;
  if (options.name.empty()) {
    json.begin_array();
    for (const PolicyEntry& entry : policy_registry()) put_json(json, entry);
    json.end_array();
    return write_stdout(json.str() + "\n");
  }
  const auto entry = find_policy(options.name);
  if (!entry) return complain(Exit::Misuse, entry.error());
  if (!options.json) return write_stdout(one_for_people(**entry));
  put_json(json, **entry);
  return write_stdout(json.str() + "\n");
}

}  // namespace berth
