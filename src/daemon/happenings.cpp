#include "daemon/happenings.h"

#include "wire/events.h"
#include "wire/tree.h"

namespace berth {

Happening job_happening(const JobView& view, const Record& cause) {
  JobEvent event{.job = view.number,
                 .name = view.spec ? view.spec->name : "",
                 .user = view.spec ? view.spec->user : "",
                 .state = view.state,
                 .what = std::string(kind_of(cause.body)),
                 .at = cause.wall,
                 .reason = view.reason};
  if (is_over(view.state)) {
    event.exit_code = view.exit_code;
    event.signal = view.signal;
  }
  Happening happening;
  happening.kind = "job";
  happening.job = view.number;
  happening.user = event.user;
  happening.json = wire::to_sorted_json(event);
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
  happening.json = wire::to_sorted_json(SettingEvent{setting.key, secret ? "" : setting.value});
  return happening;
}

}  // namespace berth
