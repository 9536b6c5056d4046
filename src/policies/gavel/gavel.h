// Gavel (OSDI 2020): policies as programs over the time each job spends on each device type, made
// real by rounds.
//
// Rounds of 360 s, aligned to time zero. At each, jobs are chosen by how much of their fraction
// they still lack (candidates.h); a job chosen for the type it is on keeps its devices and pays
// nothing, the others give theirs back by checkpoint (turns.h). Fractions are computed anew when
// jobs came or went, at most every other round (fractions.h). Between rounds nothing starts, unless
// `start` says so.
//
// Speeds are the believed rates of each job's model on each type at its own number of GPUs, placed
// as close together as the type allows; `agnostic` takes all types as equal, which is what the
// paper compares with. Deviations from the paper are listed in docs/policies/gavel.md.
//
// A round costs O(J R log(J R)); a computation O(J log J) and programs over classes of equal jobs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/gavel/candidates.h"
#include "policies/gavel/fractions.h"
#include "policies/gavel/turns.h"
#include "policies/policy_entry.h"

namespace berth::gavel {

struct Options {
  Duration round = std::chrono::minutes{6};
  StartRule start = StartRule::InRounds;
  std::int64_t recompute_rounds = 2;
  FractionOptions fractions = {};
};

class Gavel final : public Policy {
 public:
  Gavel(std::string name, Options options)
      : name_(std::move(name)),
        options_(std::move(options)),
        rounds_(options_.round),
        fractions_(options_.fractions) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = fractions_.needs(), .preempts = true, .shares_devices = shares_devices()};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId) override { note_change(view); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    return rounds_.wakeup(view.now);
  }

 private:
  [[nodiscard]] bool shares_devices() const noexcept { return options_.fractions.pair_jobs > 0; }
  void note_change(const View& view) {
    is_changed_ = true;
    rounds_.stir(view.now);
  }
  void compute_if_due(const View& view);
  [[nodiscard]] bool nothing_would_change(const View& view) const;

  std::string name_;
  Options options_;
  Rounds rounds_;  // settled while no round would change anything before the next event
  Fractions fractions_;
  Candidates candidates_{0};
  Turns turns_;
  std::optional<std::int64_t> computed_;  // the round in which fractions were
  bool is_changed_ = false;               // jobs or nodes came or went since then
};

}  // namespace berth::gavel

namespace berth {

/// gavel-las, gavel-ftf, gavel-makespan, gavel-cost, gavel-slo, gavel-hierarchical, gavel-fifo,
/// gavel-sjf, gavel-throughput.
[[nodiscard]] std::vector<PolicyEntry> gavel_entries();

}  // namespace berth
