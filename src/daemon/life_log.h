// The life of jobs in the log: submitted, started and where, preempted, cancelled, ended and how.
// A line per record, written after the commit; the journal stays the record of what happened.
#pragma once

#include "base/log.h"
#include "daemon/status_board.h"

namespace berth {

/// `board` knows the record already. Cheap if the log does not want to hear of it.
void log_life(Logger& log, const Committed& committed, const StatusBoard& board);

}  // namespace berth
