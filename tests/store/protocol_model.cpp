#include "store/protocol_model.h"

#include <unordered_map>

#include <fmt/format.h>

#include "store/protocol_state.h"

namespace berth::test {

namespace {

bool is_alive(Process process) {
  return process == Process::Running || process == Process::Signalled;
}

/// All states that can be reached, breadth first, so that the first way to a state is a shortest.
class Explorer {
 public:
  explicit Explorer(const ModelOptions& options) : options_(options) {}

  Exploration run() {
    reach({}, "");
    for (std::size_t i = 0; i < states_.size(); ++i) {
      current_ = i;
      // A copy: the vector grows under it.
      const ModelState state = states_[i];
      check(state);
      step_shims(state);
      if (state.is_down)
        step_recovery(state);
      else
        step_scheduler(state);
      if (!state.is_down && state.crashes < options_.crashes) step_crashes(state);
    }
    found_.states = states_.size();
    find_stuck();
    return found_;
  }

 private:
  struct Way {
    std::size_t from;
    std::string step;
  };
  [[nodiscard]] bool is(Mutant mutant) const { return options_.mutant == mutant; }

  std::size_t reach(const ModelState& state, std::string step) {
    const auto [known, is_new] = index_.try_emplace(state, states_.size());
    if (is_new) {
      states_.push_back(state);
      ways_.push_back({current_, std::move(step)});
      before_.emplace_back();
    }
    if (states_.size() > 1) before_[known->second].push_back(current_);
    return known->second;
  }
  [[nodiscard]] std::string trace(std::size_t to) const {
    std::string text;
    for (; to != 0; to = ways_[to].from) text = ways_[to].step + (text.empty() ? "" : " · ") + text;
    return text;
  }
  void broken(std::size_t invariant, std::size_t at) {
    std::string& way = found_.broken[invariant - 1];
    if (way.empty()) way = trace(at);
  }

  /// I2: one live attempt per job; I3: one on the device; I4: none of a job whose end was told.
  void check(const ModelState& state) {
    int all = 0;
    for (const ModelJob& job : state.jobs) {
      int live = 0;
      for (const Attempt& attempt : job.attempts) live += is_alive(attempt.process) ? 1 : 0;
      all += live;
      if (live > 1) broken(2, current_);
      if (live > 0 && job.is_end_acked) broken(4, current_);
    }
    if (all > 1) broken(3, current_);
  }

  void step_shims(const ModelState& state) {
    for (std::size_t j = 0; j < kJobs; ++j) {
      for (std::size_t k = 0; k < kAttempts; ++k) {
        ModelState after = state;
        Attempt& attempt = after.jobs[j].attempts[k];
        switch (attempt.process) {
          case Process::None: break;
          case Process::Forked:
            if (attempt.claim == Claim::None) {
              attempt.claim = Claim::Shim;
              attempt.process = Process::Running;
              reach(after, fmt::format("shim {} claims", j));
            } else {
              attempt.process = Process::None;
              reach(after, fmt::format("shim {} leaves", j));
            }
            break;
          case Process::Running:
            attempt = {Process::None, attempt.claim, Exit::Ended};
            reach(after, fmt::format("job {} ends", j));
            break;
          case Process::Signalled:
            attempt = {Process::None, attempt.claim, Exit::Preempted};
            reach(after, fmt::format("job {} gives way", j));
            break;
        }
      }
    }
  }

  /// Devices are taken when the intent is written, free when the end of the process is durable.
  [[nodiscard]] bool is_device_free(const ModelState& state) const {
    return std::ranges::all_of(state.jobs, [](const ModelJob& job) {
      return job.phase <= Phase::Waiting || job.phase == Phase::Done;
    });
  }

  void step_scheduler(const ModelState& state) {
    for (int j = 0; j < kJobs; ++j) {
      switch (state.jobs[static_cast<std::size_t>(j)].phase) {
        case Phase::None: step_submit(state, j); break;
        case Phase::Submitted: step_ack(state, j); break;
        case Phase::Waiting: step_start(state, j); break;
        case Phase::Intent: step_spawn(state, j); break;
        case Phase::Running: step_preempt(state, j); [[fallthrough]];
        case Phase::Killing: step_end(state, j); break;
        case Phase::Ending: step_tell(state, j); break;
        case Phase::Done: break;
      }
    }
    if (state.synced == state.written) return;
    ModelState after = state;
    after.synced = after.written;
    reach(after, "fsync");
  }
  static ModelJob& job(ModelState& state, int j) { return state.jobs[static_cast<std::size_t>(j)]; }

  void step_submit(ModelState after, int j) {
    after.append(Entry::Submit, j, 0);
    job(after, j).phase = Phase::Submitted;
    reach(after, fmt::format("submit {}", j));
  }
  void step_ack(ModelState after, int j) {
    if (!after.is_synced(Entry::Submit, j, 0) && !is(Mutant::AckBeforeSync)) return;
    job(after, j).phase = Phase::Waiting;
    job(after, j).is_submit_acked = true;
    reach(after, fmt::format("ack {}", j));
  }
  void step_start(ModelState after, int j) {
    ModelJob& it = job(after, j);
    if (!is_device_free(after) || it.next > kAttempts) return;
    it.attempt = it.next++;
    it.phase = Phase::Intent;
    if (is(Mutant::SpawnThenLog)) {
      it.now().process = Process::Forked;
      reach(after, fmt::format("spawn {}", j));
    } else {
      after.append(Entry::Intent, j, it.attempt);
      reach(after, fmt::format("intent {}.{}", j, it.attempt));
    }
  }
  void step_spawn(ModelState after, int j) {
    ModelJob& it = job(after, j);
    it.phase = Phase::Running;
    if (is(Mutant::SpawnThenLog)) {
      after.append(Entry::Intent, j, it.attempt);
      reach(after, fmt::format("intent {}.{}", j, it.attempt));
    } else if (after.is_synced(Entry::Intent, j, it.attempt) || is(Mutant::SpawnBeforeSync)) {
      it.now().process = Process::Forked;
      reach(after, fmt::format("spawn {}", j));
    }
  }
  void step_preempt(ModelState after, int j) {
    ModelJob& it = job(after, j);
    if (after.preemptions == options_.preemptions || it.now().process != Process::Running) return;
    ++after.preemptions;
    it.now().process = Process::Signalled;
    it.phase = Phase::Killing;
    if (is(Mutant::FreeAtSignal)) {  // and so the job is taken for one that waits
      after.append(Entry::Preempted, j, it.attempt);
      it.phase = Phase::Waiting;
      it.attempt = 0;
    }
    reach(after, fmt::format("preempt {}", j));
  }
  void step_end(ModelState after, int j) {
    ModelJob& it = job(after, j);
    const Attempt attempt = it.now();
    if (attempt.exit == Exit::None) return;
    after.append(attempt.exit == Exit::Ended ? Entry::Ended : Entry::Preempted, j, it.attempt);
    it.phase = Phase::Ending;
    reach(after, fmt::format("write end {}", j));
  }
  void step_tell(ModelState after, int j) {
    ModelJob& it = job(after, j);
    const bool is_ended = it.now().exit == Exit::Ended;
    const bool is_synced =
        after.is_synced(is_ended ? Entry::Ended : Entry::Preempted, j, it.attempt);
    if (!is_synced && !(is_ended && is(Mutant::EndAckBeforeSync))) return;
    it.phase = is_ended ? Phase::Done : Phase::Waiting;
    it.attempt = 0;
    it.is_end_acked = is_ended;
    reach(after, fmt::format("{} {}", is_ended ? "ack end" : "requeue", j));
  }

  /// kill -9 keeps the tail and the shims; a power loss any prefix of the tail and no shim; one of
  /// the controller any prefix, and all shims.
  void step_crashes(const ModelState& state) {
    crash(state, state.written, "kill -9");
    for (std::uint8_t kept = state.synced; kept <= state.written; ++kept) {
      ModelState lost = state;
      lost.cut(kept);
      lost.synced = kept;
      ModelState dark = lost;
      for (ModelJob& job : dark.jobs)
        for (Attempt& attempt : job.attempts) attempt.process = Process::None;
      crash(dark, kept, "power loss");
      if (options_.has_controller_power_loss) crash(lost, kept, "controller power loss");
    }
  }
  void crash(ModelState state, std::uint8_t kept, const char* kind) {
    state.cut(kept);
    ++state.crashes;
    state.is_down = true;
    for (ModelJob& job : state.jobs) {  // what was in memory only
      job.phase = Phase::None;
      job.attempt = 0;
    }
    ++found_.crash_transitions;
    reach(state, kind);
  }

  struct Folded {  // what the journal says of a job
    bool is_submitted = false, is_ended = false;
    std::uint8_t open = 0;  // attempt without an end
    std::uint8_t last = 0;
  };
  static Folded fold(const ModelState& state, int j) {
    Folded all;
    for (std::size_t i = 0; i < state.written; ++i) {
      const JournalEntryModel& entry = state.journal[i];
      if (entry.job != j) continue;
      all.last = std::max(all.last, entry.attempt);
      if (entry.kind == Entry::Submit) all.is_submitted = true;
      all.open = entry.kind == Entry::Intent ? entry.attempt : std::uint8_t{0};
      if (entry.kind == Entry::Ended) {
        all.is_ended = true;
        all.open = entry.attempt;  // told again, once it is synced
      }
    }
    return all;
  }
  void step_recovery(ModelState after) {
    bool is_submit_lost = false, is_end_lost = false;
    for (int j = 0; j < kJobs; ++j) {
      const Folded folded = fold(after, j);
      const ModelJob& it = job(after, j);
      is_submit_lost = is_submit_lost || (it.is_submit_acked && !folded.is_submitted);
      is_end_lost = is_end_lost || (it.is_end_acked && !folded.is_ended);
      if (is(Mutant::NumberFromJournal)) job(after, j).next = folded.last + 1;
      if (folded.is_submitted) recover(after, j, folded);
    }
    after.is_down = false;
    const std::size_t at = reach(after, "recover");
    if (is_submit_lost) broken(1, at);
    if (is_end_lost) broken(4, at);
  }
  /// R7.
  void recover(ModelState& state, int j, const Folded& folded) {
    ModelJob& it = job(state, j);
    it.phase = it.is_submit_acked ? Phase::Waiting : Phase::Submitted;
    if (folded.open == 0) return;
    it.attempt = folded.open;
    Attempt& attempt = it.now();
    if (folded.is_ended) {
      it.phase = it.is_end_acked ? Phase::Done : Phase::Ending;
      if (it.is_end_acked) it.attempt = 0;
    } else if (attempt.exit != Exit::None) {
      state.append(attempt.exit == Exit::Ended ? Entry::Ended : Entry::Preempted, j, it.attempt);
      it.phase = Phase::Ending;
    } else if (attempt.claim == Claim::Shim && is_alive(attempt.process) &&
               !is(Mutant::RequeueNotAdopt)) {
      it.phase = attempt.process == Process::Signalled ? Phase::Killing : Phase::Running;
    } else {
      if (attempt.claim == Claim::None && !is(Mutant::NoTombstone))
        attempt.claim = Claim::Tombstone;
      state.append(Entry::Void, j, it.attempt);
      it.phase = Phase::Waiting;
      it.attempt = 0;
    }
  }

  /// Backwards from the states in which all is done.
  void find_stuck() {
    std::vector<bool> is_good(states_.size());
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const auto is_done = [](const ModelJob& job) { return job.phase == Phase::Done; };
      if (std::ranges::all_of(states_[i].jobs, is_done)) {
        is_good[i] = true;
        open.push_back(i);
      }
    }
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (const std::size_t from : before_[at]) {
        if (is_good[from]) continue;
        is_good[from] = true;
        open.push_back(from);
      }
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (is_good[i]) continue;
      if (found_.stuck++ == 0) found_.stuck_trace = trace(i);
    }
  }

  const ModelOptions options_;
  std::vector<ModelState> states_;
  std::unordered_map<ModelState, std::size_t, ModelStateHash> index_;  // lookup only
  std::vector<Way> ways_;
  std::vector<std::vector<std::size_t>> before_;
  std::size_t current_ = 0;
  Exploration found_;
};

}  // namespace

Exploration explore(const ModelOptions& options) { return Explorer(options).run(); }

}  // namespace berth::test
