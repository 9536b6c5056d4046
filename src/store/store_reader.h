// The reading side of the SQLite store: questions about what is durable, over a connection of its
// own, so that they never wait for the writer nor it for them. Safe to call from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <set>

#include "store/decayed_usage.h"
#include "store/job_rows.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace berth {

class StoreReader {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StoreReader>> open(Database database);

  [[nodiscard]] Result<std::optional<PastJob>> past(JobNumber job);
  [[nodiscard]] Result<std::vector<PastJob>> past_jobs(const PastQuery& query);
  [[nodiscard]] Result<std::size_t> count_past(const PastQuery& query);
  [[nodiscard]] Result<std::vector<AttemptRow>> attempts(JobNumber job);
  [[nodiscard]] Result<std::optional<JobNumber>> by_key(const std::string& user,
                                                        const std::string& key);
  [[nodiscard]] Result<std::vector<LoggedPass>> engine();
  [[nodiscard]] Result<std::set<AttemptId>> started_since(Time since);
  [[nodiscard]] Result<std::vector<Store::Usage>> plain_usage();
  /// Every attempt of this sum's span goes into it.
  [[nodiscard]] Result<void> fill(DecayedUsage& usage, double half_life, std::int64_t now_wall);

 private:
  Database database_;
  SpecRows specs_;
  Statement past_, attempts_, by_key_, usage_, ended_;
  std::mutex mutex_;
};

}  // namespace berth
