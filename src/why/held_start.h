// Why a start that the engine has decided on has not happened: it waits for an attempt that is
// still on its devices. Plain data: the daemon's supervisor fills it in, an explanation shows it.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "model/job_spec.h"

namespace berth {

struct HeldStart {
  JobNumber job = 0;
  JobNumber behind = 0;       // the job on its devices
  std::optional<Time> until;  // when that one is stopped; nothing: when it ends by itself
  std::string why;            // for people
};

}  // namespace berth
