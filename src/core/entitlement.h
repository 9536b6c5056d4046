// What people are entitled to, as an admin has set it, for policies that share by weight.
#pragma once

#include <string>
#include <vector>

namespace berth {

struct Entitlement {
  std::string who;  // "alice", "group/ml", "group/ml/alice"
  double shares = 1;
  friend bool operator==(const Entitlement&, const Entitlement&) = default;
};
/// GPU time from before this run, decayed to its beginning.
struct PastUse {
  std::string user, group;
  double gpu_seconds = 0;
};
struct Entitlements {
  std::vector<Entitlement> shares;  // all there are; whoever is not named has one
  std::vector<PastUse> uses;        // told once, before the first job
};

}  // namespace berth
