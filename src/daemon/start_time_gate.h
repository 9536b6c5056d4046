// Jobs that may not compete before a moment: the begin time that their user asked for, or the pause
// after a failed attempt. Owns these moments and the timers that go with them. Begin times are told
// by people's clock and converted once, when the job is set: a wall clock that is moved later does
// not move them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/job_spec.h"
#include "why/shut_gate.h"

namespace berth {

class StartTimeGate {
 public:
  /// A job that has come. `wall` is the Unix time in microseconds at `now`.
  void add(JobNumber job, const JobSpec& spec, Time now, std::int64_t wall);
  /// Its request was changed: a pause it was in is over.
  void change(JobNumber job, const JobSpec& spec, Time now, std::int64_t wall);
  /// It pauses after an attempt; what it waited for before still counts.
  void pause(JobNumber job, Time until);
  void forget(JobNumber job);

  [[nodiscard]] bool is_open(JobNumber job, Time now) const;
  /// Adds the jobs whose moment has come since last asked.
  void take_due(Time now, std::set<JobNumber>& recheck);
  [[nodiscard]] std::optional<Time> next() const;
  void explain(JobNumber job, Time now, std::vector<ShutGate>& shut) const;

 private:
  struct Row {
    Time not_before{};
    std::int64_t begin = 0;        // as asked for; Unix seconds
    bool waits_for_begin = false;  // rather than after a failure
  };
  void set(JobNumber job, Row row, Time now, std::int64_t wall);

  std::map<JobNumber, Row> rows_;
  std::set<std::pair<Time, JobNumber>> timers_;
};

}  // namespace berth
