// What a scheduler is set up with: the policy and its settings, and what stands beside it. Plain
// data and its texts; which of it makes another engine necessary is said here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "daemon/beliefs.h"
#include "policies/registry.h"

namespace berth {

struct PolicyChoice {
  std::string policy = "easy";
  Settings settings = {};
  friend bool operator==(const PolicyChoice&, const PolicyChoice&) = default;
};
/// In whatever order their settings are written.
[[nodiscard]] bool is_same(PolicyChoice a, PolicyChoice b);
/// The setting "policy" as JSON.
[[nodiscard]] std::string to_text(const PolicyChoice& choice);
[[nodiscard]] Result<PolicyChoice> policy_choice_from(const std::string& text);
/// Whom it asks for run times: `said`, unless that is empty. Never an oracle.
[[nodiscard]] std::string live_estimator(const std::string& said, const PolicyChoice& choice);

struct SchedulerOptions {
  PolicyChoice policy;  // unless the setting says otherwise
  std::string placement = "best-fit";
  std::string estimator = {};  // empty: whom the policy asks by itself, else "history"
  std::string cpu = "off";
  BeliefOptions beliefs = {};
  std::string power = "off";  // who switches nodes beside the policy
  std::uint64_t seed = 1;
  std::size_t spare_slots = 16'384;   // of an engine, beyond twice the jobs there are
  std::size_t learn_from = 5'000;     // past jobs, for estimates
  double half_life = 7 * 86'400.0;    // seconds in which use of GPUs counts half
  std::int64_t min_run = 60;          // seconds before a policy's preemption stops an attempt
  std::int64_t training_answer = 10;  // seconds for an answer of training code; 0: it is not asked
  friend bool operator==(const SchedulerOptions&, const SchedulerOptions&) = default;
};
/// An engine made of the one decides as one made of the other. Which policy decides is told apart
/// elsewhere, for a setting may beat both; what holds whatever the policy is no part of an engine.
[[nodiscard]] bool make_the_same_engine(SchedulerOptions a, SchedulerOptions b);

}  // namespace berth
