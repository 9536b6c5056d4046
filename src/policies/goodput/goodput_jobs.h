// What policies that maximise goodput know of each job: its range of sizes, the smoothed noise
// scale, restarts so far, the most GPUs it ever held, and the table of its goodputs. Active jobs
// are listed in the order of their ids. Every operation is O(1) but refresh() and fits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/policy.h"
#include "policies/common/elastic.h"
#include "policies/goodput/goodput_tables.h"
#include "policies/kit/memo.h"
#include "policies/kit/pass.h"

namespace berth::goodput {

enum class Model : std::uint8_t { Profiled, Fitted };
/// Where a job stands after a pass: a new place costs a restart.
enum class Place : std::uint8_t { Kept, New };

struct Options {
  Duration interval = std::chrono::seconds{60};
  ElasticRule elastic;
  Model model = Model::Profiled;
  Adaptation adaptation = Adaptation::Batch;
  double growth = 2;  // a job may hold so many times the most it ever held; 0 = no limit
  bool two_on_one = true;
  double smoothing = 0.9;  // of the noise scale, per round
  Duration restart = std::chrono::seconds{30};
};

class Jobs {
 public:
  explicit Jobs(const Options& options) : options_(options) {}

  void begin(const View& view);
  void add(const View& view, JobId job);
  void remove(JobId job);
  [[nodiscard]] const std::vector<JobId>& active() const noexcept { return active_; }

  /// Reads what running jobs report; true if some table changed by it.
  bool refresh(const View& view);
  /// Some job reported a noise scale: what is best may change without an event.
  [[nodiscard]] bool reports_noise() const noexcept { return reports_noise_; }

  [[nodiscard]] const Table& table(const View& view, JobId job, PoolId pool);
  [[nodiscard]] const ElasticRange& range(JobId job) const { return facts_[job].range; }
  [[nodiscard]] std::int32_t least(JobId job) const { return facts_[job].range.least; }
  /// What it may grow to now.
  [[nodiscard]] std::int32_t most(JobId job) const;
  [[nodiscard]] std::int32_t restarts(JobId job) const { return facts_[job].restarts; }
  /// What is left of its speedup if it is moved now; 1 before its first start.
  [[nodiscard]] double restart_factor(const View& view, JobId job) const;
  /// It is being restarted, or about to end: better left alone.
  [[nodiscard]] bool is_pinned(const View& view, JobId job) const;

  /// Gives it its best batch where it stands in the plan, charges a restart if that is a new place,
  /// and remembers its size. For every job the policy started or moved.
  void settle(Pass& pass, JobId job, Place place);
  /// Only the batch, for jobs that stay.
  void set_batch(Pass& pass, JobId job);

 private:
  struct Facts {
    ElasticRange range;
    double phi = 0;       // smoothed; 0 = not known
    double used_phi = 0;  // of the table
    std::int32_t most_held = 0;
    std::int32_t restarts = 0;
    bool is_silent = false;  // its training code reports no noise scale: it is not asked again
    const Table* table = nullptr;  // last asked for, and with what
    PoolId table_pool;
    double table_phi = 0;
  };
  /// What a job has shown, where parameters are learnt.
  struct Learnt {
    std::vector<StepTimes> seen;
    ThroughputParams params;
    std::optional<Table> table;
    double table_phi = 0;
    Time last_fit{};
    bool is_stale = false;
  };
  using ByNoise = std::map<std::int32_t, Table>;  // addresses stay

  [[nodiscard]] Subject subject(const View& view, JobId job, PoolId pool) const;
  bool update_noise(const View& view, JobId job);
  bool observe_step(const View& view, JobId job);
  [[nodiscard]] const Table& believed(const View& view, JobId job, PoolId pool);
  [[nodiscard]] const Table& learnt(const View& view, JobId job, PoolId pool);

  Options options_;
  Column<PoolId, std::int64_t> pool_gpus_;
  std::vector<JobId> active_;  // by id
  Column<JobId, Facts> facts_;
  Memo<KindId, Memo<PoolId, ByNoise>> tables_;
  std::unordered_map<JobId, Learnt> learnt_;  // lookup only
  bool reports_noise_ = false;
};

}  // namespace berth::goodput
