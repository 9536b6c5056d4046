// Who asks, and with which role: local peers by their account, others by a
// token. Owns what is remembered of both, since every request asks; tokens
// themselves are settings in the journal, kept as hashes. Safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/clock.h"
#include "daemon/identity.h"
#include "daemon/service.h"
#include "daemon/status_board.h"
#include "daemon/tokens.h"
#include "store/record.h"

namespace berth {

class CallerDirectory {
 public:
  struct Parts {
    const StatusBoard& board;
    Identity& identity;
    const LiveClock& clock;
    std::set<std::string> admins;  // beside root and whoever runs the scheduler
    std::set<std::string> operators;
    std::function<Answer<void>(SettingRecord)> write_setting;
  };
  explicit CallerDirectory(Parts parts) : parts_(std::move(parts)) {}

  /// Whom a token stands for; nothing if it is not (any more) good.
  [[nodiscard]] std::optional<Caller> caller_of(const std::string& token);
  /// Whom a local peer stands for.
  [[nodiscard]] Caller caller_of_peer(std::uint32_t uid, std::uint32_t gid);

  /// The text of a new one is shown once and kept only as a hash.
  [[nodiscard]] Answer<std::string> make_token(const Caller& caller, const TokenView& token);
  [[nodiscard]] Answer<std::vector<TokenView>> tokens(const Caller& caller);
  [[nodiscard]] Answer<void> revoke_token(const Caller& caller, const std::string& name);

 private:
  [[nodiscard]] Role role_of(const std::string& user, std::uint32_t uid) const;
  [[nodiscard]] Role role_of_token(const TokenView& token);

  Parts parts_;
  mutable std::mutex callers_mutex_;  // of what follows
  std::map<std::string, KeptToken> tokens_by_hash_;
  std::uint64_t tokens_version_ = 0;
  std::map<std::uint32_t, std::pair<Caller, Time>> peers_;
};

}  // namespace berth
