#include <fmt/format.h>

#include "apps/commands.h"
#include "base/json_writer.h"
#include "base/text_table.h"
#include "daemon/live_abilities.h"
#include "policies/registry.h"

namespace berth {

namespace {

void put_json(JsonWriter& json, const PolicyEntry& entry) {
  json.begin_object().field("name", entry.name).field("summary", entry.summary);
  const PolicyTraits traits = traits_of(entry);
  json.field("needs", needs_text(traits.needs)).field("preempts", traits.preempts);
  json.key("params").begin_array();
  for (const ParamSpec& param : entry.params) {
    json.begin_object()
        .field("key", param.key)
        .field("default", param.default_value)
        .field("meaning", param.meaning);
    if (!param.live_default.empty()) json.field("live_default", param.live_default);
    json.end_object();
  }
  json.end_array().end_object();
}

std::string all_for_people() {
  TextTable table({{"policy", Align::Left},
                   {"needs", Align::Left},
                   {"preempts", Align::Left},
                   {"what it does", Align::Left}});
  for (const PolicyEntry& entry : policy_registry()) {
    const PolicyTraits traits = traits_of(entry);
    table.add_row(
        {entry.name, needs_text(traits.needs), traits.preempts ? "yes" : "no", entry.summary});
  }
  return table.str() +
         "\n`berth policies NAME` lists what --set changes; `berth placements` and `berth "
         "estimators` go with them.\n";
}

/// With its defaults; with training code that can reach the scheduler, and programs that switch
/// nodes. Who resizes a job resizes its share of everything, as far as it can be.
std::vector<AbilityNote> notes_of(const PolicyEntry& entry) {
  const PolicyTraits traits = traits_of(entry);
  const Capabilities resized = traits.resizes ? Ability::HostMemory : Capabilities{};
  return live_notes(traits.uses() | resized, true, true);
}

std::string live_for_people(const PolicyEntry& entry) {
  const auto notes = notes_of(entry);
  if (notes.empty()) return fmt::format("{}: live it does all that it does.\n", entry.name);
  TextTable table({{"it uses", Align::Left}, {"live", Align::Left}, {"how", Align::Left}});
  for (const AbilityNote& note : notes)
    table.add_row({std::string(to_string(note.ability)), note.is_lost ? "lost" : "yes", note.text});
  return fmt::format("{}: live\n\n", entry.name) + table.str();
}

void put_live_json(JsonWriter& json, const PolicyEntry& entry) {
  json.begin_object().field("name", entry.name).key("live").begin_array();
  for (const AbilityNote& note : notes_of(entry)) {
    json.begin_object()
        .field("uses", to_string(note.ability))
        .field("lost", note.is_lost)
        .field("how", note.text)
        .end_object();
  }
  json.end_array().end_object();
}

std::string one_for_people(const PolicyEntry& entry) {
  const PolicyTraits traits = traits_of(entry);
  std::string text =
      fmt::format("{}: {}\n\nneeds to know: {}\npreempts: {}\n\n", entry.name, entry.summary,
                  needs_text(traits.needs), traits.preempts ? "yes" : "no");
  if (entry.params.empty()) return text + "It has no parameters.\n";
  TextTable table({{"--set", Align::Left}, {"default", Align::Left}, {"meaning", Align::Left}});
  bool has_live_default = false;
  for (const ParamSpec& param : entry.params) {
    std::string value = param.default_value.empty() ? "(empty)" : param.default_value;
    has_live_default = has_live_default || !param.live_default.empty();
    if (!param.live_default.empty()) value += fmt::format(" (live: {})", param.live_default);
    table.add_row({param.key, value, param.meaning});
  }
  if (has_live_default)
    text +=
        "Under `berth serve` the defaults marked \"live\" hold unless --set says otherwise.\n\n";
  return text + table.str();
}

}  // namespace

Exit execute(const PoliciesOptions& options) {
  if (options.live && options.name.empty()) {
    return complain(Exit::Misuse, Error{"policies: --live is about one policy: name it"});
  }
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
  if (!options.json)
    return write_stdout(options.live ? live_for_people(**entry) : one_for_people(**entry));
  if (options.live)
    put_live_json(json, **entry);
  else
    put_json(json, **entry);
  return write_stdout(json.str() + "\n");
}

}  // namespace berth
