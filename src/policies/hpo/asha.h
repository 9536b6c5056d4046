// Asynchronous successive halving (ASHA): trials of a study are trained for a few epochs, and only
// the best of those that came so far go on to the next rung. The tables and rules alone: no jobs,
// no time. Lower loss is better; every change is O(log trials).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace berth::hpo {

using TrialId = std::uint32_t;  // in the order in which the study got them

/// Epochs at which trials are compared: r, r eta, r eta^2 ... below the whole training, and its
/// end.
class Rungs {
 public:
  Rungs(double first, double eta, double whole);
  [[nodiscard]] std::size_t size() const noexcept { return epochs_.size(); }
  [[nodiscard]] std::size_t last() const noexcept { return epochs_.size() - 1; }
  /// At which a trial has reached the rung.
  [[nodiscard]] double epochs(std::size_t rung) const noexcept { return epochs_[rung]; }
  /// From the rung before to this one.
  [[nodiscard]] double cost(std::size_t rung) const noexcept {
    return rung == 0 ? epochs_[0] : epochs_[rung] - epochs_[rung - 1];
  }

 private:
  std::vector<double> epochs_;
};

/// Asynchronous: the best part of the results so far goes on. Synchronous: a rung is judged when
/// all its trials have reported, and those that go on go together.
enum class Halving : std::uint8_t { Asynchronous, Synchronous };

/// A trial and the rung up to which it is to be trained next.
struct Promotion {
  TrialId trial = 0;
  std::size_t rung = 0;
  friend bool operator==(const Promotion&, const Promotion&) = default;
};

class Asha {
 public:
  Asha(std::size_t rungs, double eta) : eta_(eta), rungs_(rungs) {}

  /// The loss of a trial at a rung. Answers whether it is among the best part there now.
  bool report(TrialId trial, std::size_t rung, double loss);
  /// It cannot go on (stopped, failed, ended); its results stand.
  void withdraw(TrialId trial);

  /// Who goes on next, if anybody may: the highest rung first, there the best not yet promoted of
  /// the best part (ties: lower trial), no rung above `highest`.
  [[nodiscard]] std::optional<Promotion> next(std::size_t highest) const;
  /// It does.
  void promote(const Promotion& promotion);

  /// Who of a rung may go on if it is judged now, best first.
  [[nodiscard]] std::vector<TrialId> best_of(std::size_t rung) const;
  [[nodiscard]] std::size_t results(std::size_t rung) const noexcept;
  /// The best trial of the highest rung that has any, of those that may still go on.
  [[nodiscard]] std::optional<TrialId> leader() const;
  /// The same among all.
  [[nodiscard]] std::optional<TrialId> winner() const;

 private:
  using Ranked = std::set<std::pair<double, TrialId>>;
  struct Rung {
    Ranked best;  // the floor(n / eta) best
    Ranked rest;
    Ranked candidates;  // of the best, who may go on and has not yet
  };
  enum class Among : std::uint8_t { All, Alive };
  [[nodiscard]] std::optional<TrialId> first(Among among) const;
  void move_to_best(Rung& rung);

  double eta_;
  std::vector<Rung> rungs_;
  std::set<TrialId> gone_;
  std::vector<std::set<TrialId>> promoted_{rungs_.size()};  // from each rung
};

}  // namespace berth::hpo
