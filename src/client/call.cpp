// Small things that several commands share.
#include <algorithm>
#include <ctime>

#include "client/commands.h"
#include "client/endpoint.h"

namespace berth::client {

Result<Scheduler> Call::scheduler() const {
  BERTH_TRY(auto endpoint, find_endpoint(value("server"), process_variables()));
  return Scheduler(std::move(endpoint));
}

int exit_code_of(const JobRow& job) {
  if (job.state == JobState::Completed) return kSuccess;
  if (job.signal != 0) return 128 + job.signal;
  return job.exit_code != 0 ? job.exit_code : kFailure;
}

std::int64_t unix_now() { return std::time(nullptr); }

}  // namespace berth::client
