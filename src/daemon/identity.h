// Who may be named: as whom a job runs, whom a token stands for, and which group pays. The rules,
// in words and as a table, are in docs/security.md. No role but root's own runs code as root, none
// as a system account, and an operator as nobody but itself. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "daemon/machine_users.h"
#include "daemon/service.h"
#include "daemon/status_board.h"

namespace berth {

/// Where membership of groups comes from. What `users` says always counts.
struct GroupRules {
  bool from_unix = true;   // the user database of the machine
  bool from_table = true;  // `berth share set NAME --group --members …`
  bool any = false;        // a user may name what he likes, and who names none pays alone
  std::map<std::string, std::vector<std::string>> users;  // the first is the default
};

class Identity {
 public:
  struct Options {
    GroupRules groups;
    UserLookup lookup;  // empty: this machine's
  };
  Identity(const StatusBoard& board, Options options);

  /// Jobs of this user may run at the wish of the caller.
  [[nodiscard]] Answer<void> may_run_as(const Caller& caller, const std::string& user);
  /// A token may stand for this user.
  [[nodiscard]] Answer<void> may_vouch_for(const Caller& caller, const std::string& user);
  /// Fills in the group that pays for the job, or says why the one it names does not.
  [[nodiscard]] Answer<void> settle_group(const Caller& caller, JobSpec& spec);
  /// The changes as they may be written, or which of them are not the caller's to make: whoever
  /// cannot run code as the owner changes how a job is treated, not what it runs.
  [[nodiscard]] Answer<std::string> settle_changes(const Caller& caller, const JobSpec& spec,
                                                   const std::string& changes);
  /// The number of an account, if it is known.
  [[nodiscard]] std::optional<std::uint32_t> uid_of(const std::string& user);

 private:
  struct Groups {
    std::vector<std::string> allowed;  // the default first
    bool has_default = false;
  };
  [[nodiscard]] Answer<Groups> groups_of(const std::string& user);
  [[nodiscard]] Answer<void> check_account(const Caller& caller, const std::string& user,
                                           bool may_be_unknown);
  void read_table();

  const StatusBoard& board_;
  const GroupRules rules_;
  MachineUsers users_;
  std::mutex mutex_;  // of what follows, read from the settings
  std::uint64_t version_ = 0;
  std::set<std::string> with_share_;                        // groups
  std::map<std::string, std::set<std::string>> by_member_;  // user: groups
};

}  // namespace berth
