// The parameters that a policy's specification names have the defaults it gives them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "policies/registry.h"

namespace berth {
namespace {

struct Published {
  std::string policy;
  std::vector<std::pair<std::string, std::string>> defaults;
};

const std::vector<Published> kPublished{
    {"optimus",
     {{"interval", "10m"},
      {"overhead", "30"},
      {"young_factor", "0.95"},
      {"young_epochs", "0.1"},
      {"delta", "0.01"},
      {"patience", "1"},
      {"favour_late", "on"},
      {"max_points", "500"},
      {"look_ahead", "1"}}},
    {"oasis",
     {{"slot", "10m"}, {"horizon", "200"}, {"units", "128"}, {"reject_to_besteffort", "off"}}},
    {"aonline", {{"beta", "2"}, {"max_window", "64"}, {"exact_jobs", "8"}}},
    {"themis",
     {{"f", "0.8"},
      {"lease", "20m"},
      {"align", "60"},
      {"max_bidders", "256"},
      {"starve_leases", "3"},
      {"auction_on_arrival", "on"}}},
    {"ftf-fractional", {{"round", "360"}}},
    {"chronus",
     {{"lease", "20m"},
      {"restart", "30"},
      {"slack", "1.05"},
      {"be_starve", "36"},
      {"lend_padding", "on"},
      {"be_in_milp", "off"},
      {"ls_iters", "1000"},
      {"mig_cost", "auto"},
      {"exact_jobs", "30"}}},
    {"andreas",
     {{"price", "0.172"},
      {"rho", "100"},
      {"period", "1h"},
      {"max_it", "1000"},
      {"sweeps", "100"},
      {"p_best", "0.5"},
      {"aging", "0.01"},
      {"restart", "30"},
      {"boot", "120"},
      {"idle_off", "0"},
      {"window", "5000"},
      {"wait_cheaper", "off"}}},
    {"pollux",
     {{"interval", "60"},
      {"p", "-1"},
      {"population", "100"},
      {"generations", "100"},
      {"restart", "30"},
      {"growth", "2"},
      {"min_two", "on"},
      {"smoothing", "0.9"},
      {"genetic_gpus", "1000"}}},
};

TEST(PublishedDefaults, AreThoseOfTheRegistry) {
  for (const auto& [policy, defaults] : kPublished) {
    const auto entry = find_policy(policy);
    ASSERT_TRUE(entry.has_value()) << policy;
    for (const auto& [key, value] : defaults) {
      const auto found = std::ranges::find((*entry)->params, key, &ParamSpec::key);
      ASSERT_NE(found, (*entry)->params.end()) << policy << ' ' << key;
      EXPECT_EQ(found->default_value, value) << policy << ' ' << key;
    }
  }
}

}  // namespace
}  // namespace berth
