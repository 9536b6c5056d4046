// Packing: two jobs of a server that take turns are put on the same GPUs for a while, and stay
// there if their rates together beat taking turns. Pairs of models that do not get on are
// remembered and not tried again.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "policies/gandiva/housing.h"
#include "policies/gandiva/observations.h"
#include "policies/gandiva/turns.h"
#include "policies/kit/pass.h"

namespace berth::gandiva {

struct PackedRates {
  double isolated = 1;
  double packed = 0;
};
/// How two jobs on the same GPUs get on: the sum of packed over isolated rate. Taking turns scores
/// exactly 1 less the switches.
[[nodiscard]] double packing_score(const PackedRates& a, const PackedRates& b) noexcept;
[[nodiscard]] inline bool keeps_packing(double score) noexcept { return score > 1; }

class Packing {
 public:
  Packing(const Options& options, Housing& housing, Turns& turns, Observations& observations)
      : options_(options), housing_(housing), turns_(turns), observations_(observations) {}

  /// Keeps or undoes what was tried for long enough, and tries other pairs.
  void on_tick(Pass& pass);
  [[nodiscard]] bool has_probes() const noexcept { return !probes_.empty(); }

 private:
  struct Probe {
    JobId host;
    JobId guest;
    Time since;
  };
  using Pair = std::pair<ProfileId, ProfileId>;

  [[nodiscard]] bool is_decided(Pass& pass, const Probe& probe);
  [[nodiscard]] bool is_time_to_judge(const View& view, const Probe& probe) const;
  void see_alone_first(const View& view, const Probe& probe);
  void take_apart(Plan& plan, Home home, JobId guest);
  void start_probes(Pass& pass);
  [[nodiscard]] bool is_candidate(const Ring::Seat& seat) const;
  [[nodiscard]] std::optional<JobId> partner_for(const View& view, JobId job) const;
  void pack(Pass& pass, JobId host, JobId guest);

  const Options& options_;
  Housing& housing_;
  Turns& turns_;
  Observations& observations_;
  std::vector<Probe> probes_;
  std::set<Pair> bad_pairs_;
};

}  // namespace berth::gandiva
