// One study: its trials, how far each has come, and which of them is to be trained next. Pure: the
// policy says when a trial starts, stops and reports.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "policies/hpo/asha.h"

namespace berth::hpo {

/// What becomes of a trial that reaches a rung and is not among the best there.
enum class Losers : std::uint8_t { Pause, Stop };

struct StudyRules {
  double first = 1;  // epochs of rung 0
  double eta = 3;
  double whole = 9;  // epochs of a whole training
  Halving halving = Halving::Asynchronous;
  Losers losers = Losers::Pause;
};

/// What a deadline leaves room for; everything without one.
struct Horizon {
  bool may_explore = true;
  std::size_t highest_rung = 1'000'000;
};

class Study {
 public:
  explicit Study(const StudyRules& rules)
      : rules_(rules),
        rungs_(rules.first, rules.eta, rules.whole),
        asha_(rungs_.size(), rules.eta) {}

  [[nodiscard]] const Rungs& rungs() const noexcept { return rungs_; }
  [[nodiscard]] TrialId add();
  /// Up to which rung the trial is trained now, or would be if it were started again.
  [[nodiscard]] std::size_t target(TrialId trial) const noexcept { return trials_[trial].target; }
  [[nodiscard]] bool is_running(TrialId trial) const noexcept {
    return trials_[trial].state == State::Running;
  }

  [[nodiscard]] bool is_over(TrialId trial) const noexcept {
    return trials_[trial].state == State::Over;
  }

  /// Who is to be started next: one that lost its devices comes last (others bring news). If nobody
  /// is left and none was trained to the end, as with fewer trials than eta, the leader goes on.
  [[nodiscard]] std::optional<Promotion> next(const Horizon& horizon) const;
  /// In a synchronous study those who have to start together with it, itself among them.
  [[nodiscard]] std::vector<TrialId> gang_of(const Promotion& promotion) const;
  void start(const Promotion& promotion);
  /// It lost its devices before it reached its rung.
  void interrupt(TrialId trial);

  /// The trial has reached the rung it was trained for. With Losers::Pause it waits then (next()
  /// may name it at once); with Losers::Stop it goes on to the next rung or is over.
  enum class Verdict : std::uint8_t { Wait, GoOn, Stop };
  [[nodiscard]] Verdict reach(TrialId trial, double loss);
  /// It has ended, by itself or by us.
  void end(TrialId trial);

  /// Nobody runs and nobody may go on: those who wait have lost.
  [[nodiscard]] bool is_settled(const Horizon& horizon) const {
    return running_ == 0 && !next(horizon);
  }
  [[nodiscard]] std::vector<TrialId> waiting() const;
  [[nodiscard]] std::optional<TrialId> leader() const { return asha_.leader(); }
  [[nodiscard]] std::optional<TrialId> winner() const { return asha_.winner(); }
  /// 0 = a new trial, 1 = goes on to a higher rung, 2 = was interrupted: news first.
  [[nodiscard]] int urgency(const Promotion& promotion) const noexcept;

 private:
  enum class State : std::uint8_t { New, Running, AtRung, Interrupted, Over };
  struct Trial {
    State state = State::New;
    std::size_t target = 0;
  };
  [[nodiscard]] bool is_judged(std::size_t rung) const;
  [[nodiscard]] std::optional<Promotion> last_hope(const Horizon& horizon) const;

  StudyRules rules_;
  Rungs rungs_;
  Asha asha_;
  std::vector<Trial> trials_;
  std::set<TrialId> fresh_;
  std::set<TrialId> interrupted_;
  std::size_t running_ = 0;
};

}  // namespace berth::hpo
