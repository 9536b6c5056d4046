// How many files a user's processes may have open, as this system gives it to a login: what the
// scheduler itself was started with is its own affair. From the files of pam_limits, and before
// them from whoever began everything: systemd's defaults, or the first process of a container.
#pragma once

#include <string>

#include "exec/account.h"
#include "exec/host.h"

namespace berth {

struct LimitPlaces {
  std::string security = "/etc/security";  // limits.conf and limits.d/*.conf
  std::string systemd = "/run/systemd/system";
  std::string first_process = "/proc/1/limits";
};

/// Lines that make no sense are passed over, as pam_limits does.
[[nodiscard]] FileLimits ordinary_file_limits(const Account& account,
                                              const LimitPlaces& places = {});

}  // namespace berth
