#include "policies/hpo/study.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace berth::hpo {

TrialId Study::add() {
  const auto trial = static_cast<TrialId>(trials_.size());
  trials_.emplace_back();
  fresh_.insert(trial);
  return trial;
}

/// Nobody is still on the way to this rung: new ones, running ones, interrupted ones.
bool Study::is_judged(std::size_t rung) const {
  return std::ranges::none_of(trials_, [&](const Trial& trial) {
    return trial.state != State::AtRung && trial.state != State::Over && trial.target <= rung;
  });
}

std::optional<Promotion> Study::next(const Horizon& horizon) const {
  if (const auto promotion = asha_.next(horizon.highest_rung)) {
    if (rules_.halving == Halving::Asynchronous || is_judged(promotion->rung - 1)) return promotion;
  }
  if (!fresh_.empty() && horizon.may_explore) return Promotion{*fresh_.begin(), 0};
  for (const TrialId trial : interrupted_)
    if (trials_[trial].target <= horizon.highest_rung)
      return Promotion{trial, trials_[trial].target};
  return running_ == 0 ? last_hope(horizon) : std::nullopt;
}

std::optional<Promotion> Study::last_hope(const Horizon& horizon) const {
  const auto leader = asha_.leader();
  if (!leader || asha_.results(rungs_.last()) > 0) return std::nullopt;
  const std::size_t next = trials_[*leader].target + 1;
  if (trials_[*leader].state != State::AtRung || next > horizon.highest_rung) return std::nullopt;
  return Promotion{*leader, next};
}

std::vector<TrialId> Study::gang_of(const Promotion& promotion) const {
  if (rules_.halving == Halving::Asynchronous || trials_[promotion.trial].state != State::AtRung)
    return {promotion.trial};
  std::vector<TrialId> gang = asha_.best_of(promotion.rung - 1);
  std::erase_if(gang, [&](TrialId trial) {
    return trials_[trial].state != State::AtRung || trials_[trial].target + 1 != promotion.rung;
  });
  if (gang.empty()) gang.push_back(promotion.trial);  // the last hope
  return gang;
}

void Study::start(const Promotion& promotion) {
  Trial& trial = trials_[promotion.trial];
  BERTH_CHECK(trial.state != State::Running && trial.state != State::Over,
              "a trial is started while it waits");
  if (trial.state == State::AtRung) asha_.promote(promotion);
  fresh_.erase(promotion.trial);
  interrupted_.erase(promotion.trial);
  trial = {State::Running, promotion.rung};
  ++running_;
}

void Study::interrupt(TrialId trial) {
  BERTH_CHECK(is_running(trial), "only a running trial is interrupted");
  trials_[trial].state = State::Interrupted;
  interrupted_.insert(trial);
  --running_;
}

Study::Verdict Study::reach(TrialId id, double loss) {
  BERTH_CHECK(is_running(id), "only a running trial reaches a rung");
  Trial& trial = trials_[id];
  const std::size_t rung = trial.target;
  const bool is_best = asha_.report(id, rung, loss);
  if (rules_.losers == Losers::Stop && std::isfinite(loss) && rung < rungs_.last()) {
    const bool too_few = static_cast<double>(asha_.results(rung)) < rules_.eta;
    if (is_best || too_few) {  // among fewer than eta nobody can be judged
      asha_.promote({id, ++trial.target});
      return Verdict::GoOn;
    }
  }
  trial.state = State::AtRung;
  --running_;
  return rules_.losers == Losers::Stop || !std::isfinite(loss) ? Verdict::Stop : Verdict::Wait;
}

void Study::end(TrialId trial) {
  if (is_running(trial)) --running_;
  fresh_.erase(trial);
  interrupted_.erase(trial);
  trials_[trial].state = State::Over;
  asha_.withdraw(trial);
}

std::vector<TrialId> Study::waiting() const {
  std::vector<TrialId> waiting;
  for (TrialId trial = 0; trial < trials_.size(); ++trial) {
    const State state = trials_[trial].state;
    if (state != State::Running && state != State::Over) waiting.push_back(trial);
  }
  return waiting;
}

int Study::urgency(const Promotion& promotion) const noexcept {
  switch (trials_[promotion.trial].state) {
    case State::New: return 0;
    case State::AtRung: return 1;
    default: return 2;
  }
}

}  // namespace berth::hpo
