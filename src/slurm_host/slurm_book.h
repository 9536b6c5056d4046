// Which job of Slurm is which of ours, over requeues, restarts of either side and ids that are
// handed out again. A run is (job, restarts, submit time): a known name with a restart count that
// is not higher and another submit time is another job. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slurm/facts.h"
#include "slurm_host/claim.h"
#include "store/ledger.h"

namespace berth {

struct BookedJob {
  JobNumber number = 0;
  FirstSight first{};
  std::string user{};
  std::map<std::uint32_t, std::int64_t> runs{};  // restarts and submit time of those seen
  std::int64_t limit = 0;                        // its time limit as our journal has it
  std::optional<Claim> claim{};                  // the last
  /// As the last reading says; nothing: it did not say a word of it.
  const slurm::Job* now = nullptr;
  std::int32_t unseen = 0;      // readings in a row
  bool is_replaced = false;     // its name belongs to another job now
  std::int64_t over_since = 0;  // on both sides; 0: it is not

  /// Slurm does not know it any more. One reading without it may be a mistake.
  [[nodiscard]] bool is_gone() const noexcept { return is_replaced || unseen >= 2; }
};

class SlurmBook {
 public:
  /// Jobs and claims of earlier lives. Of a job that is over with us the claim remembers who it was.
  void load(const Ledger& ledger);
  /// What Slurm says now; it has to live as long as `now` of anybody is asked for.
  struct Unknown {
    SlurmName name;
    const slurm::Job* job = nullptr;
  };
  [[nodiscard]] std::vector<Unknown> read(const std::vector<slurm::Job>& jobs);
  void add(BookedJob job);
  void forget(JobNumber number);

  [[nodiscard]] BookedJob* find(JobNumber number);
  [[nodiscard]] std::map<JobNumber, BookedJob>& all() noexcept { return jobs_; }
  /// Tasks of this array that are in the book and not over with us.
  [[nodiscard]] std::int32_t tasks_of(std::uint32_t array) const;

 private:
  std::map<JobNumber, BookedJob> jobs_;
  std::map<SlurmName, JobNumber> by_name_;
};

}  // namespace berth
