// What one engine believes of its jobs by their kind: how long they are, how fast they run beside
// others, what a start and a stop cost. Reads and teaches what jobs have shown (learnt.h). Whatever
// an engine comes to believe is noted, so that the next life can tell an engine that goes on the
// same again: repeat(). Owns the profiles that were made of kinds, and who is on its way out, since
// when. Engine's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/action.h"
#include "core/job_table.h"
#include "daemon/learnt.h"
#include "daemon/live_rates.h"
#include "model/trace.h"
#include "perf/rate_model.h"
#include "sim/sim_executor.h"
#include "store/ledger.h"
#include "training/training_channel.h"

namespace berth {

class KindBeliefs {
 public:
  struct Parts {
    Trace& slots;
    RateModel* believed = nullptr;  // grows by what is learnt; absent: every job runs at rate 1
    LearntKinds* learnt = nullptr;
    LearntLengths* lengths = nullptr;
    SwitchCosts costs = {};           // as configured; they go before what jobs have shown
    std::vector<std::string>& notes;  // for repeat() by another life
  };
  explicit KindBeliefs(Parts parts) : parts_(parts) {}

  // --- a newcomer

  /// If it says how many iterations it has and nothing of its length, it is as long as jobs of its
  /// kind have shown.
  void set_length(TraceJob& slot, const JobSpec& spec);
  /// It is believed to be what jobs of its kind have shown. Profiles are only ever added: those
  /// that others have stay what they are.
  void set_profile(JobId slot, const JobSpec& spec);
  [[nodiscard]] std::optional<ProfileId> profile_of(JobId slot) const;
  /// Of an iteration on the devices it asks for.
  [[nodiscard]] std::optional<double> seconds_per_iteration(const JobSpec& spec) const;

  // --- starts and stops

  /// What its processes do before they make progress.
  [[nodiscard]] Duration start_cost(const Action& action, const JobTable& jobs,
                                    const std::optional<LedgerJob>& job) const;
  /// From being asked to leave to having left.
  [[nodiscard]] Duration stop_cost(const std::optional<LedgerJob>& job) const;
  /// It was preempted, and may leave from then on.
  void leaves(JobNumber job, Time since);
  /// Its attempt has ended. `was_preempted`: as was wanted of it.
  void left(JobNumber job, bool was_preempted, const std::optional<LedgerJob>& record, Time now,
            std::int64_t wall_seconds);
  /// Drops those of whom an engine from before was told and who are not leaving any more.
  void forget_leaving(const std::function<bool(JobNumber, Time since)>& is_over) {
    std::erase_if(leaves_since_, [&](const auto& row) { return is_over(row.first, row.second); });
  }

  // --- what a running job shows

  struct Shown {
    const JobSpec& spec;
    std::int32_t granted = 0;  // devices
    const LiveRates::Measured& measured;
    const MeasuredProgress& progress;
    const JobSpec* beside = nullptr;          // the one job on its devices, if there is just one
    std::optional<double> seconds_running{};  // of this attempt
  };
  void learn(const Shown& shown, std::int64_t wall_seconds);

  /// A note of an earlier life. False: it is none of these.
  bool repeat(const nlohmann::json& note);

 private:
  [[nodiscard]] const LearntKind* find(const JobSpec& spec) const;
  void add_profile(const LearntKind& kind);

  Parts parts_;
  std::map<std::string, std::pair<std::uint32_t, ProfileId>> profiles_;  // by kind; its version
  std::unordered_map<JobId, ProfileId> profile_of_;
  std::map<JobNumber, Time> leaves_since_;
};

}  // namespace berth
