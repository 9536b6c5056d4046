#include "slurm/setup_state.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_writer.h"

namespace berth::slurm {

namespace {

constexpr int kStateFormat = 1;

std::string beside(const std::string& conf, const char* name) {
  return (std::filesystem::path(conf).parent_path() / name).string();
}

std::string_view phase_name(SetupPhase phase) noexcept {
  switch (phase) {
    case SetupPhase::Applying: return "applying";
    case SetupPhase::Active: return "active";
    case SetupPhase::Undoing: return "undoing";
  }
  return "";
}

std::optional<SetupPhase> phase_from(std::string_view text) noexcept {
  for (const auto phase : {SetupPhase::Applying, SetupPhase::Active, SetupPhase::Undoing}) {
    if (phase_name(phase) == text) return phase;
  }
  return std::nullopt;
}

SetupState state_of(const nlohmann::json& json) {
  SetupState state;
  state.phase = phase_from(json.at("phase").get<std::string>()).value();
  state.gate = gate_from(json.at("gate").get<std::string>()).value();
  json.at("conf").get_to(state.conf);
  json.at("conf_added").get_to(state.conf_added);
  json.at("own_confs").get_to(state.own_confs);
  json.at("scripts").get_to(state.scripts);
  json.at("had_script").get_to(state.had_script);
  json.at("site_plugins").get_to(state.site_plugins);
  json.at("site_parameters").get_to(state.site_parameters);
  json.at("heartbeat").get_to(state.heartbeat);
  json.at("patience_seconds").get_to(state.patience_seconds);
  for (const auto& qos : json.at("qos"))
    state.qos.push_back(
        {qos.at("name").get<std::string>(), qos.at("group_jobs").get<std::string>()});
  json.at("made_qos").get_to(state.made_qos);
  json.at("handed_back").get_to(state.handed_back);
  return state;
}

}  // namespace

std::string_view to_string(Gate gate) noexcept { return gate == Gate::Lua ? "lua" : "qos"; }

std::optional<Gate> gate_from(std::string_view text) noexcept {
  if (text == "lua") return Gate::Lua;
  if (text == "qos") return Gate::Qos;
  return std::nullopt;
}

std::string state_path(const std::string& conf) { return beside(conf, "berth_setup.json"); }
std::string own_conf_path(const std::string& conf) { return beside(conf, "berth.conf"); }
std::string script_path(const std::string& conf) { return beside(conf, "job_submit.lua"); }
std::string site_script_path(const std::string& conf) {
  return beside(conf, "job_submit_site.lua");
}

std::string state_text(const SetupState& state) {
  JsonWriter json;
  json.begin_object().field("format", kStateFormat);
  json.field("what", "what `berth slurm setup` did; `berth slurm setup --undo` needs it");
  json.field("phase", phase_name(state.phase)).field("gate", to_string(state.gate));
  json.field("conf", state.conf).field("conf_added", state.conf_added);
  const auto add_texts = [&](std::string_view name, const std::vector<std::string>& texts) {
    json.key(name).begin_array();
    for (const std::string& text : texts) json.value(text);
    json.end_array();
  };
  add_texts("own_confs", state.own_confs);
  add_texts("scripts", state.scripts);
  json.field("had_script", state.had_script);
  json.field("site_plugins", state.site_plugins).field("site_parameters", state.site_parameters);
  json.field("heartbeat", state.heartbeat).field("patience_seconds", state.patience_seconds);
  json.key("qos").begin_array();
  for (const GatedQos& qos : state.qos)
    json.begin_object().field("name", qos.name).field("group_jobs", qos.group_jobs).end_object();
  json.end_array().field("made_qos", state.made_qos).field("handed_back", state.handed_back);
  json.end_object();
  return json.take() + "\n";
}

Result<SetupState> state_from(const std::string& text, const std::string& path) {
  try {  // the JSON library throws
    const auto json = nlohmann::json::parse(text);
    if (json.at("format").get<int>() != kStateFormat)
      return fail(
          fmt::format("{}: written by another version of Berth (undo with that one)", path));
    return state_of(json);
  } catch (const std::exception& problem) {
    return fail(fmt::format("{}: not what setup wrote: {} (undo by hand: docs/slurm-setup.md)",
                            path, problem.what()));
  }
}

Result<std::optional<SetupState>> load_state(const std::string& conf) {
  BERTH_TRY(const auto file, read_plain(state_path(conf)));
  if (!file) return std::nullopt;
  BERTH_TRY(SetupState state, state_from(file->text, state_path(conf)));
  return state;
}

Result<void> save_state(const SetupState& state, const Ownership& ownership) {
  return put_plain(state_path(state.conf), state_text(state), ownership);
}

}  // namespace berth::slurm
