#include "daemon/happenings.h"

#include <nlohmann/json.hpp>

namespace berth {

Happening job_happening(const JobView& view, const Record& cause) {
  nlohmann::json body{{"job", view.number},
                      {"name", view.spec ? view.spec->name : ""},
                      {"user", view.spec ? view.spec->user : ""},
                      {"state", to_string(view.state)},
                      {"what", kind_of(cause.body)},
                      {"at", cause.wall}};
  if (!view.reason.empty()) body["reason"] = view.reason;
  if (is_over(view.state)) {
    body["exit_code"] = view.exit_code;
    if (view.signal != 0) body["signal"] = view.signal;
  }
  Happening happening;
  happening.kind = "job";
  happening.job = view.number;
  happening.user = view.spec ? view.spec->user : "";
  happening.json = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return happening;
}

Happening setting_happening(const SettingRecord& setting) {
  Happening happening;
  happening.kind = setting.key.starts_with("node/")    ? "node"
                   : setting.key.starts_with("token/") ? "token"
                   : setting.key == "policy"           ? "policy"
                                                       : "cluster";
  // What a secret is kept as concerns nobody.
  const bool secret = setting.key.starts_with("token/");
  happening.json =
      nlohmann::json{{"key", setting.key}, {"value", secret ? "" : setting.value}}.dump(
          -1, ' ', false, nlohmann::json::error_handler_t::replace);
  return happening;
}

}  // namespace berth
