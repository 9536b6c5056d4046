// A_online (MobiHoc 2020, TCC 2022): least weighted completion time of elastic jobs on several
// device types.
//
// Jobs are planned in batches, in windows that double in length. At the beginning of a window every
// job that waits may get a device type, a size and one stretch of slots inside the window; the
// weight that finds a place is maximised. The others wait for the next, longer window, so everybody
// is chosen in the end. A job that has started is never stopped.
//
// Needs run times and speeds by type and size. A late job keeps its GPUs, and whoever was planned
// on them starts when they are free; who has not started when the window ends joins the next batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/policy.h"
#include "policies/aonline/batch.h"
#include "policies/aonline/windows.h"
#include "policies/common/elastic.h"
#include "policies/common/job_list.h"
#include "policies/common/parameter_servers.h"
#include "policies/policy_entry.h"

namespace berth::aonline {

/// What becomes of a job too long for the longest window.
enum class TooLong : std::uint8_t { RunsOn, Rejected };

struct Options {
  Duration slot = std::chrono::minutes{10};
  WindowRule windows;
  bool early = true;    // the next window begins as soon as the plan of this one is done
  bool restart = true;  // windows begin at one slot again when the cluster is empty
  bool ahead = false;   // a planned job starts as soon as its turn comes and its GPUs are free
  TooLong too_long = TooLong::RunsOn;
  BatchOptions batch;
  ElasticRule elastic;
  ParameterServers servers;
};

class Aonline final : public Policy {
 public:
  Aonline(std::string name, const Options& options)
      : name_(std::move(name)), options_(options), begin_(kTimeZero + options.slot) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Profile,
            .resizes = true,
            .may_refuse = options_.too_long == TooLong::Rejected};
  }
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Planned {
    Time start;
    JobId job;
    PoolId pool;
    std::int32_t gpus = 1;
    [[nodiscard]] auto key() const noexcept { return std::tuple(start, job); }
  };

  [[nodiscard]] std::int64_t slots_for(double seconds) const;
  [[nodiscard]] std::vector<Configuration> ways_of(const View& view, JobId job) const;
  [[nodiscard]] Configuration held_by(const View& view, JobId job) const;
  [[nodiscard]] Time end_of_window() const { return begin_ + options_.slot * window_.length; }
  [[nodiscard]] bool is_plan_done() const { return planned_.empty() && in_window_.empty(); }
  void close_window(Time now);
  void find_next_window(Time now);
  void plan_window(const View& view);
  void start_due(const View& view, Plan& plan);

  std::string name_;
  Options options_;
  Window window_;                 // the one that is open, or the next
  Time begin_{};                  // of it
  bool open_ = false;             // it was planned and is not over
  bool idle_ = true;              // nobody is here
  Time awaited_ = kNever;         // a window that was waited for begins
  JobList waiting_;               // in no plan
  std::vector<Planned> planned_;  // in this window, not started; by start, then job
  JobList in_window_;             // started in it
  JobList running_;               // all that hold GPUs
  Column<PoolId, bool> held_up_;  // scratch: somebody whose turn it is waits for GPUs
};

}  // namespace berth::aonline

namespace berth {

[[nodiscard]] PolicyEntry aonline_entry();

}  // namespace berth
