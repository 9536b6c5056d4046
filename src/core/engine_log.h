// An engine is a function of what it is told: what time it is, what has happened, how long stopping
// takes, what training code says. Its log holds these answers pass by pass, and nothing it can work
// out by itself. After a restart a new engine is told the same again, in the same order, and stands
// where the last one stood: job table, cluster, policy, tuner, estimator and random numbers,
// whatever they keep. No policy has to save anything.
//
// It stands between the engine and its executor. While it replays, nothing is carried out; each
// pass ends with a fingerprint of what was decided, so that an engine that decides otherwise
// (another version of a policy) is found out at once. Then it goes on with the executor below.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "core/action.h"
#include "core/executor.h"
#include "model/trace.h"

namespace berth {

/// This engine is not the one that wrote the log: it asks or decides something else.
class Diverged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class EngineLog final : public Executor, public RunObserver {
 public:
  struct Parts {
    Executor& executor;
    RunObserver& observer;
    Trace& slots;  // filled by the executor; while replaying, from the log
    /// A pass that was decided in, before the observer's instant_done().
    std::function<void(std::string pass)> keep;
  };
  explicit EngineLog(Parts parts) : parts_(std::move(parts)) {}

  /// Before the run: begins with these passes. After the last of them `caught_up` is called, with
  /// the engine as it stood; from then on the executor is asked.
  void replay(std::vector<std::string> passes, std::function<void()> caught_up);
  [[nodiscard]] bool is_replaying() const noexcept { return !past_.empty(); }

  /// Why the job was last given devices, and why they were last taken from it, in what was
  /// replayed.
  struct Reasons {
    Reason given = Reason::None, taken = Reason::None;
  };
  [[nodiscard]] Reasons last_reasons(JobId job) const;
  /// The shares that the engine was told last; nothing: none yet.
  [[nodiscard]] const std::optional<std::vector<Entitlement>>& last_shares() const noexcept {
    return shares_;
  }

  /// Something else from outside that policies or tuners are told, in the order of asking: `ask` is
  /// called and its answer put down, or it is read from the log.
  template <class Ask, class Put, class Get>
  [[nodiscard]] auto answer(Ask ask, Put put, Get get) const {
    if (is_replaying()) return get(*reader_);
    auto said = ask();
    put(writer_, said);
    return said;
  }

  [[nodiscard]] std::optional<Time> advance(Time wakeup) override;
  [[nodiscard]] bool expects_events() const noexcept override {
    return is_replaying() || parts_.executor.expects_events();
  }
  void collect(Time now, std::vector<Event>& due) override;
  [[nodiscard]] bool calls_for_pass() const override;
  [[nodiscard]] StartReceipt start(Time now, const Action& action, const JobTable& jobs) override;
  [[nodiscard]] Time stop(Time now, const Action& action, const JobTable& jobs) override;
  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return parts_.executor.capabilities();
  }
  void discard(Time now, const Action& action, const JobTable& jobs) override;
  void set_retry(JobId job, std::optional<bool> again) override;
  void adjust(Time now, const Action& action, const JobTable& jobs) override;
  [[nodiscard]] JobPast past(JobId job) const override;
  [[nodiscard]] Entitlements entitlements() override;
  void power(Time now, const Action& action) override;
  [[nodiscard]] std::optional<TrainingReport> report(Time now, JobId job,
                                                     const JobTable& jobs) const override;
  void losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
              std::vector<double>& losses) const override;
  void news(Time now, const JobTable& jobs, std::vector<RateChange>& changes) override;
  void rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) override;

  void append(Time now, const Action& action) override;
  void finished(Time now, JobId job, JobState outcome) override;
  void instant_done(Time now) override;

 private:
  void open_pass();
  template <class Ask>
  [[nodiscard]] auto hear(Ask ask) const;
  template <class Ask>
  void hear_rates(std::vector<RateChange>& changes, Ask ask);
  void put_notes();
  void get_notes();
  void put_names();
  void get_names();
  void check_end();

  Parts parts_;
  std::vector<std::string> past_;  // to replay; empty: recording
  std::size_t at_ = 0;             // in it
  std::function<void()> caught_up_;
  mutable std::optional<ByteReader> reader_;
  mutable ByteWriter writer_;
  std::size_t between_ = 0;  // bytes of what was answered since the last pass, before this one
  std::size_t names_ = 1;    // known to the log; the empty one always is
  std::vector<std::string> notes_;              // scratch
  std::unordered_map<JobId, Reasons> reasons_;  // while replaying; lookup only
  std::optional<std::vector<Entitlement>> shares_;
  Digest decided_;
  Time wakeup_{};
  bool is_first_ = true;
  mutable bool is_kept_ = false;       // this pass: something was told, or asks for a decision
  mutable std::vector<Slice> slices_;  // of the last past()
};

}  // namespace berth
