// The bodies of happenings: small, and enough to follow the queue without asking again.
#pragma once

#include "daemon/service.h"
#include "store/record.h"

namespace berth {

[[nodiscard]] Happening job_happening(const JobView& view, const Record& cause);
[[nodiscard]] Happening setting_happening(const SettingRecord& setting);

}  // namespace berth
