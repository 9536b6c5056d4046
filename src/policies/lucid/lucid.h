// Lucid (ASPLOS 2023): jobs are put beside running ones where both hardly notice, nobody is
// interrupted, and the models behind it can be read.
//
// Profiler: with `profiler_nodes`, a new job of up to `profile_gpus` GPUs first runs there for at
// most `profile_time`, fewest GPUs first; short jobs end there. Then it goes to the main queue.
// Orchestrator: waiting jobs by GPUs x estimated work left. Each is packed beside the first running
// job that suits (packing_index.h), else started alone where it fits, else passed over. In a quiet
// period (few arrivals forecast for the coming hour) jobs run alone and strictly in order.
//
// Never preempts; only the end of a profiling run is recorded as such, with its progress kept.
// Jobs of one kind differ in their length alone, and a shorter one finds a partner wherever a
// longer one does: a pass looks at one head per kind. Assumes estimated run times and profiled
// models.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/policy.h"
#include "policies/kit/memo.h"
#include "policies/kit/pass.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/lucid/arrival_forecast.h"
#include "policies/lucid/packing_index.h"
#include "policies/lucid/profiler.h"
#include "policies/lucid/sharing_score.h"
#include "policies/policy_entry.h"

namespace berth::lucid {

enum class Packing : std::uint8_t { Off, On, ByForecast };

struct Options {
  Packing packing = Packing::ByForecast;
  PackingIndex::Choice partner = PackingIndex::Choice::FirstStarted;
  double quiet_arrivals = 2;                 // per hour: at most this is a quiet period
  bool unpack = false;                       // stop a newcomer that hurts or is hurt
  Duration trial = std::chrono::minutes{5};  // after which that is known
  ProfilerOptions profiler;
};

class Lucid final : public Policy {
 public:
  explicit Lucid(const Options& options)
      : options_(options), partners_(options.partner), profiler_(options.profiler) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "lucid"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile | Need::RunTime, .shares_devices = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  static constexpr JobId kNobody{0xffffffffU};
  enum class Place : std::uint8_t { Waiting, WaitingForProfiler, InProfiler, Alone, Packed };
  struct JobRow {
    Place place = Place::Waiting;
    bool stays_alone = false;  // was unpacked once
    double rate_alone = 1;     // of a host, before somebody came beside it
    bool was_measured = true;  // that rate: a belief is not to be compared with a measurement
    JobId mate = kNobody;
    PackingPartner as_partner;  // while it runs in the main part
  };
  struct Trial {
    Time due;
    JobId newcomer;
    JobId host;
    std::int32_t extended = 0;  // times: one of the two speaks, and was not measured yet
  };
  [[nodiscard]] double slower_of(const View& view, const Trial& trial) const;
  void enqueue(const View& view, JobId job);
  [[nodiscard]] SharingScore score_of(const View& view, JobId job);
  void look_at_the_forecast(Time now);
  /// The job holds nothing any more and waits nowhere.
  void detach(const View& view, JobId job);
  /// It runs alone: others may be put beside it.
  void offer(const View& view, JobId job);

  void run_profiler(Pass& pass);
  void unpack_sufferers(Pass& pass);
  void place_waiting(Pass& pass);
  [[nodiscard]] bool try_pack(Pass& pass, JobId job);
  [[nodiscard]] bool try_alone(Pass& pass, JobId job);
  void note_start(const Pass& pass, JobId job);

  Options options_;
  std::optional<SharingTree> tree_;
  Memo<ProfileId, SharingScore> scores_;  // profiles may be learnt while we run
  WaitingByKind waiting_;
  PackingIndex partners_;
  Profiler profiler_;
  ArrivalForecast arrivals_;
  Column<JobId, JobRow> rows_;
  std::size_t running_ = 0;
  std::deque<Trial> trials_;
  bool packing_ = true;
  Time last_look_{Duration::min()};
};

}  // namespace berth::lucid

namespace berth {

[[nodiscard]] PolicyEntry lucid_entry();

}  // namespace berth
