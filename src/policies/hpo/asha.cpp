#include "policies/hpo/asha.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace berth::hpo {

Rungs::Rungs(double first, double eta, double whole) {
  BERTH_CHECK(first > 0 && eta > 1, "rungs rise");
  for (double epochs = first; epochs < whole * (1 - 1e-9); epochs *= eta) epochs_.push_back(epochs);
  epochs_.push_back(whole);
}

bool Asha::report(TrialId trial, std::size_t at, double loss) {
  if (!std::isfinite(loss)) {  // a trial that diverged does not go on, and counts for nobody
    withdraw(trial);
    return false;
  }
  Rung& rung = rungs_[at];
  rung.rest.emplace(loss, trial);
  // A newcomer may beat the worst of the best: it takes its place.
  if (!rung.best.empty() && *rung.rest.begin() < *rung.best.rbegin()) {
    const auto worst = *rung.best.rbegin();
    rung.best.erase(worst);
    rung.candidates.erase(worst);
    rung.rest.insert(worst);
    move_to_best(rung);
  }
  const auto n = static_cast<double>(rung.best.size() + rung.rest.size());
  const auto wanted = static_cast<std::size_t>(std::floor(n / eta_ + 1e-9));
  while (rung.best.size() < wanted) move_to_best(rung);
  return rung.best.contains({loss, trial});
}

void Asha::move_to_best(Rung& rung) {
  const auto entry = *rung.rest.begin();
  rung.rest.erase(rung.rest.begin());
  rung.best.insert(entry);
  const auto at = static_cast<std::size_t>(&rung - rungs_.data());
  if (!gone_.contains(entry.second) && !promoted_[at].contains(entry.second))
    rung.candidates.insert(entry);
}

void Asha::withdraw(TrialId trial) {
  gone_.insert(trial);
  for (Rung& rung : rungs_)
    std::erase_if(rung.candidates, [&](const auto& entry) { return entry.second == trial; });
}

std::optional<Promotion> Asha::next(std::size_t highest) const {
  for (std::size_t rung = std::min(highest, rungs_.size() - 1); rung-- > 0;) {
    if (!rungs_[rung].candidates.empty())
      return Promotion{rungs_[rung].candidates.begin()->second, rung + 1};
  }
  return std::nullopt;
}

void Asha::promote(const Promotion& promotion) {
  const std::size_t from = promotion.rung - 1;
  promoted_[from].insert(promotion.trial);
  std::erase_if(rungs_[from].candidates,
                [&](const auto& entry) { return entry.second == promotion.trial; });
}

std::vector<TrialId> Asha::best_of(std::size_t rung) const {
  std::vector<TrialId> trials;
  for (const auto& [loss, trial] : rungs_[rung].best)
    if (!gone_.contains(trial)) trials.push_back(trial);
  return trials;
}

std::size_t Asha::results(std::size_t rung) const noexcept {
  return rungs_[rung].best.size() + rungs_[rung].rest.size();
}

std::optional<TrialId> Asha::leader() const { return first(Among::Alive); }

std::optional<TrialId> Asha::winner() const { return first(Among::All); }

std::optional<TrialId> Asha::first(Among among) const {
  for (std::size_t rung = rungs_.size(); rung-- > 0;) {
    for (const Ranked* ranked : {&rungs_[rung].best, &rungs_[rung].rest}) {  // all best before rest
      for (const auto& [loss, trial] : *ranked)
        if (among == Among::All || !gone_.contains(trial)) return trial;
    }
  }
  return std::nullopt;
}

}  // namespace berth::hpo
