// Small things that several commands share.
#include <algorithm>
#include <ctime>

#include <fmt/format.h>

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

std::string told(const DeedRow& deed) {
  const std::string job = fmt::format("job {}", deed.job);
  return deed.text.find(job) != std::string::npos ? deed.text
                                                  : fmt::format("{}: {}", job, deed.text);
}

std::int64_t unix_now() { return std::time(nullptr); }

}  // namespace berth::client
