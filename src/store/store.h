// Where records become durable. One writer; what was appended is lost by a power failure until
// commit() has returned, kept for ever afterwards. The real one is SQLite with a write-ahead log
// (store/sqlite_store.h); tests have one on a simulated disk. A commit that failed is fatal: nobody
// can know what is on the disk, so the caller logs, leaves, and recovers from what is there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/ledger.h"

namespace berth {

/// Which past jobs, newest end first or by number, and where a page of them begins.
struct PastQuery {
  std::optional<std::string> user{}, group{}, queue{}, name{};
  std::vector<JobNumber> numbers{};                        // empty: all
  std::vector<Outcome> outcomes{};                         // empty: all
  std::optional<std::int64_t> since_wall{}, until_wall{};  // ended in [since, until)
  enum class Order : std::uint8_t { NewestEnd, Number } order = Order::NewestEnd;
  std::optional<std::pair<std::int64_t, JobNumber>> before{};  // (ended, number), of NewestEnd
  std::optional<JobNumber> after{};                            // of Number
  std::size_t limit = 100;
};

struct AttemptRow {  // of any job, past or live
  AttemptId id;
  std::vector<HeldDevices> where;
  std::int64_t begun_wall = 0;
  std::int64_t ended_wall = 0;  // 0: not over
  std::optional<Outcome> outcome;
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  double gpu_seconds = 0;
  std::optional<double> run_seconds{};  // older versions did not write it down
  double suspended_seconds = 0;
  std::string why;
  double cpu_seconds = 0;
  std::int64_t max_rss_kib = 0;
  std::vector<StepView> steps;
};

struct LoggedPass {
  Time at;
  std::string bytes;
};

class Store {
 public:
  virtual ~Store() = default;
  /// The state that the durable records add up to.
  [[nodiscard]] virtual Result<Ledger> recover() = 0;
  /// What the last engine has left of itself: the record that began it, and its passes since.
  [[nodiscard]] virtual Result<std::vector<LoggedPass>> engine() = 0;
  /// Adds to the open batch, in memory. `past` goes to the table of past jobs with it.
  [[nodiscard]] virtual Result<void> append(const Record& record, const Ledger::Change& change) = 0;
  /// Makes everything appended so far durable.
  [[nodiscard]] virtual Result<void> commit() = 0;
  /// Bytes left for the journal; a submit is refused when it is short.
  [[nodiscard]] virtual std::uint64_t space_left() const = 0;

  [[nodiscard]] virtual Result<std::optional<PastJob>> past(JobNumber job) = 0;
  [[nodiscard]] virtual Result<std::vector<PastJob>> past_jobs(const PastQuery& query) = 0;
  /// How many there are over all pages.
  [[nodiscard]] virtual Result<std::size_t> count_past(const PastQuery& query) = 0;
  [[nodiscard]] virtual Result<std::vector<AttemptRow>> attempts(JobNumber job) = 0;
  /// The job, live or past, that this user made with this key.
  [[nodiscard]] virtual Result<std::optional<JobNumber>> by_key(const std::string& user,
                                                                const std::string& key) = 0;
  /// GPU seconds of ended attempts by user and group, each halved every `half_life` seconds: fair
  /// share. Zero half life: plain sums.
  struct Usage {
    std::string user, group;
    double gpu_seconds = 0;
  };
  [[nodiscard]] virtual Result<std::vector<Usage>> usage(std::int64_t now_wall,
                                                         double half_life) = 0;
};

}  // namespace berth
