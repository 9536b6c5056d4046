// What the scheduler was given for itself does not go on to jobs: they must not outlive it when
// memory runs out, nor have its priority or its number of open files.
#pragma once

#include "exec/host.h"

namespace berth {

/// Of the calling process and what it will become. Call it with the scheduler's rights; what these
/// do not allow stays as it is. Priorities change only for root's scheduler: somebody else's is
/// somebody who serves themselves, with the priority they chose.
void become_ordinary(const LaunchOrder& order);

}  // namespace berth
