// What policies that maximise goodput keep of each job: its range of sizes, the smoothed noise
// scale, restarts so far, the most GPUs it ever held, and the table of its goodputs. Jobs are
// listed in the order of their ids. Every operation is O(1) but refresh() and fits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/policy.h"
#include "policies/common/elastic.h"
#include "policies/goodput/goodput_tables.h"

namespace berth {

enum class GoodputModel : std::uint8_t { Profiled, Fitted };

struct GoodputOptions {
  ElasticRule elastic;
  GoodputModel model = GoodputModel::Profiled;
  Adaptation adaptation = Adaptation::Batch;
  double growth = 2;  // a job may hold so many times the most it ever held; 0 = no limit
  bool two_on_one = true;
  double smoothing = 0.9;  // of the noise scale, per round
  Duration restart = std::chrono::seconds{30};
};

class GoodputJobs {
 public:
  explicit GoodputJobs(const GoodputOptions& options) : options_(options) {}

  void begin(const View& view);
  void add(const View& view, JobId job);
  void remove(JobId job);
  [[nodiscard]] const std::vector<JobId>& active() const noexcept { return active_; }
  [[nodiscard]] const GoodputOptions& options() const noexcept { return options_; }

  /// Listens to what running jobs say; true if some table changed by it.
  bool refresh(const View& view);
  /// Some job reported a noise scale: what is best may change without an event.
  [[nodiscard]] bool hears_noise() const noexcept { return hears_noise_; }

  [[nodiscard]] const GoodputTable& table(const View& view, JobId job, PoolId pool);
  [[nodiscard]] std::int32_t least(JobId job) const { return facts_[job.value].range.least; }
  [[nodiscard]] std::int32_t most(JobId job) const;
  [[nodiscard]] const ElasticRange& range(JobId job) const { return facts_[job.value].range; }
  [[nodiscard]] std::int32_t restarts(JobId job) const { return facts_[job.value].restarts; }
  /// What is left of its speedup if it is moved now; 1 before its first start.
  [[nodiscard]] double restart_factor(const View& view, JobId job) const;
  /// It is being restarted, or about to end: better left alone.
  [[nodiscard]] bool is_pinned(const View& view, JobId job) const;

  /// Tells it its best batch where it stands in the plan, charges a restart if it was moved, and
  /// remembers its size. For every job the policy started or moved.
  void settle(const View& view, Plan& plan, JobId job, bool moved);
  /// Only the batch, for jobs that stay.
  void set_batch(const View& view, Plan& plan, JobId job);

 private:
  struct Facts {
    ElasticRange range;
    double phi = 0;       // smoothed; 0 = not known
    double used_phi = 0;  // of the table
    std::int32_t most_held = 0;
    std::int32_t restarts = 0;
    std::uint32_t fit = 0;   // index + 1 into learnt_
    bool is_silent = false;  // its training code reports no noise scale: it is not asked again
    const GoodputTable* table = nullptr;  // last asked for, and with what
    PoolId table_pool;
    double table_phi = 0;
  };
  /// What a job has shown, where parameters are learnt.
  struct Learnt {
    std::vector<StepTimes> seen;
    ThroughputParams params;
    std::unique_ptr<GoodputTable> table;
    double table_phi = 0;
    Time last_fit{};
    bool is_stale = false;
  };
  [[nodiscard]] GoodputSubject subject(const View& view, JobId job, PoolId pool) const;
  bool hear(const View& view, JobId job);
  bool watch(const View& view, JobId job);
  [[nodiscard]] const GoodputTable& learnt_table(const View& view, JobId job, PoolId pool);

  GoodputOptions options_;
  GoodputTables tables_;
  std::vector<std::int64_t> pool_gpus_;
  std::vector<JobId> active_;  // by id
  std::vector<Facts> facts_;   // by JobId
  std::vector<Learnt> learnt_;
  bool hears_noise_ = false;
};

}  // namespace berth
