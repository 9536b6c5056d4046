// The bodies of the events that the service streams: small, and enough to follow the queue without
// asking again.
#pragma once

#include "daemon/service.h"
#include "store/record.h"

namespace berth {

[[nodiscard]] ServiceEvent job_event(const JobView& view, const Record& cause);
[[nodiscard]] ServiceEvent setting_event(const SettingRecord& setting);

}  // namespace berth
