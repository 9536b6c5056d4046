#include "report/live_report.h"

#include "base/json_writer.h"
#include "report/html.h"

namespace berth {

std::string live_report_json(const LiveEnergy& energy) {
  JsonWriter json;
  json.begin_object().field("version", 1).field("title", energy.title);
  json.field("generated_by", "berth " BERTH_VERSION);
  json.key("runs").begin_array().end_array();
  json.key("live").begin_object().field("nobody", energy.nobody);
  json.key("users").begin_array();
  for (const auto& [user, kwh] : energy.users)
    json.begin_object().field("name", user).field("kwh", kwh).end_object();
  json.end_array().key("nodes").begin_array();
  for (const LiveEnergy::Node& node : energy.nodes) {
    json.begin_object().field("name", node.name).key("kwh").begin_object();
    for (const auto& [use, kwh] : node.kwh) json.field(use, kwh);
    json.end_object().end_object();
  }
  json.end_array().key("jobs").begin_array();
  for (const LiveEnergy::Job& job : energy.jobs) {
    json.begin_object().field("id", job.id).field("name", job.name).field("user", job.user);
    json.field("state", job.state).field("kwh", job.kwh).end_object();
  }
  json.end_array().end_object().end_object();
  return json.str();
}

std::string live_report_html(const LiveEnergy& energy) {
  return page_with(live_report_json(energy));
}

}  // namespace berth
