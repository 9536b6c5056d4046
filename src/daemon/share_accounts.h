// Who may use how much and has used how much: from the settings and the store to the gates and to
// the policy that shares by it. What runs is counted by those who see it run; the store knows what
// has ended, also before a restart. Owns what the running engine was told of shares, so that it
// hears of them again only when they have changed. Engine's thread only.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "core/executor.h"
#include "core/policy.h"
#include "daemon/clock.h"
#include "daemon/gates.h"
#include "daemon/status_board.h"
#include "store/store.h"

namespace berth {

class ShareAccounts {
 public:
  struct Parts {
    const StatusBoard& board;
    Store& store;
    const LiveClock& clock;
  };
  explicit ShareAccounts(Parts parts) : parts_(parts) {}

  /// A new engine has been told nothing; one that goes on from before knows what was used.
  void begin_engine(const Policy& policy, bool is_recalled);
  /// What an engine that goes on was told last.
  void recall(std::optional<std::vector<Entitlement>> shares) { last_shares_ = std::move(shares); }
  /// The policy shares by use, and shares are not what it was told.
  [[nodiscard]] bool has_news() const;
  /// For the engine. What was used before is told once in its life, however often shares are set.
  [[nodiscard]] Entitlements entitlements(const Policy& policy);

  void set_limits(Gates& gates) const;
  /// `half_life`: seconds in which use counts half.
  [[nodiscard]] Result<void> set_uses(Gates& gates, double half_life) const;

 private:
  [[nodiscard]] std::vector<Entitlement> shares() const;

  Parts parts_;
  bool shares_by_use_ = false;
  bool has_told_uses_ = false;
  std::optional<std::vector<Entitlement>> last_shares_;  // nothing: none yet
};

}  // namespace berth
