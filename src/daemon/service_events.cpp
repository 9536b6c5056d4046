#include "daemon/service_events.h"

#include "wire/events.h"
#include "wire/tree.h"

namespace berth {

ServiceEvent job_event(const JobView& view, const Record& cause) {
  JobEvent body{.job = view.number,
                .name = view.spec ? view.spec->name : "",
                .user = view.spec ? view.spec->user : "",
                .state = view.state,
                .what = std::string(kind_of(cause.body)),
                .at = cause.wall,
                .reason = view.reason};
  if (is_over(view.state)) {
    body.exit_code = view.exit_code;
    body.signal = view.signal;
  }
  ServiceEvent event;
  event.kind = "job";
  event.job = view.number;
  event.user = body.user;
  event.json = wire::to_sorted_json(body);
  return event;
}

ServiceEvent setting_event(const SettingRecord& setting) {
  ServiceEvent event;
  event.kind = setting.key.starts_with("node/")    ? "node"
               : setting.key.starts_with("token/") ? "token"
               : setting.key == "policy"           ? "policy"
                                                   : "cluster";
  // What a secret is kept as concerns nobody.
  const bool secret = setting.key.starts_with("token/");
  event.json = wire::to_sorted_json(SettingEvent{setting.key, secret ? "" : setting.value});
  return event;
}

}  // namespace berth
