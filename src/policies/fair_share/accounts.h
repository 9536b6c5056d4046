// Who has used how much GPU time of late, against its share. Two levels: accounts at the top are
// groups and users without a group, below a group are its users. Use halves every half life, and
// what is held now counts a little in advance, so that the many jobs somebody starts at one moment
// are felt at that moment.
//
// An account is a sum as of a moment and the GPUs held since: nothing ticks. Between two changes
// the ratio of two accounts moves in one direction, and when it passes a bound is a formula.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace berth::fair_share {

using AccountId = std::uint32_t;

class Accounts {
 public:
  struct Options {
    Duration half_life = std::chrono::hours{7 * 24};  // zero: nothing is forgotten
    Duration advance = std::chrono::minutes{10};      // how far ahead held GPUs count
  };
  explicit Accounts(const Options& options);

  /// "alice" (by herself, and inside groups unless said otherwise), "group/ml",
  /// "group/ml/alice". Shares are above zero; whoever is not named has one.
  void set_share(const std::string& who, double share);
  void set_shares(std::map<std::string, double, std::less<>> shares);
  /// GPU seconds from before, as of the first settle(). What a user has used in a group counts for
  /// the group.
  void add_use(const std::string& who, double gpu_seconds);
  void add_use(AccountId account, double gpu_seconds);

  /// Where jobs of this user and group are counted; no group: the user by itself.
  [[nodiscard]] AccountId leaf(std::string_view user, std::string_view group);
  [[nodiscard]] AccountId top(AccountId leaf) const noexcept { return rows_[leaf].top; }

  /// Everything below is as of the last call; time does not go back.
  void settle(Time now);
  void hold(AccountId leaf, std::int64_t gpus);  // below zero: gives back
  /// GPUs that were held before we knew, from then to then.
  void charge(AccountId leaf, std::int64_t gpus, Time from, Time to);

  /// Decayed GPU seconds, without the advance.
  [[nodiscard]] double used(AccountId account) const noexcept { return rows_[account].used; }
  /// GPU seconds per share, less is better; `more` GPUs as if it held them as well.
  [[nodiscard]] double standing(AccountId account, std::int64_t more = 0) const noexcept;

  /// The two accounts by which jobs of two leaves are compared: of the highest level on which they
  /// differ.
  [[nodiscard]] std::pair<AccountId, AccountId> rivals(AccountId a, AccountId b) const noexcept {
    if (top(a) == top(b)) return {a, b};
    return {top(a), top(b)};
  }
  /// Is a's standing, with so many GPUs more, better than b's by this factor?
  struct Lead {
    AccountId a, b;
    std::int64_t more = 0;
    double factor = 1;
  };
  [[nodiscard]] bool is_ahead(const Lead& lead) const noexcept {
    return standing(lead.a, lead.more) * lead.factor < standing(lead.b);
  }
  /// When it will be, if nobody starts or ends; nothing: it is, or never will be.
  [[nodiscard]] std::optional<Time> ahead_at(const Lead& lead) const;

 private:
  struct Row {
    double share = 1;
    double used = 0;
    std::int64_t gpus = 0;
    AccountId top = 0;
  };
  [[nodiscard]] AccountId open(const std::string& name, std::optional<AccountId> top);
  [[nodiscard]] double share_of(std::string_view name) const;
  /// By what use counts after this time.
  [[nodiscard]] double weight(Duration age) const noexcept;
  /// What one GPU adds in this time, as of its end.
  [[nodiscard]] double gain(Duration time) const noexcept;

  Options options_;
  std::map<std::string, double, std::less<>> shares_;
  std::map<std::string, AccountId, std::less<>> ids_;
  std::vector<Row> rows_;
  std::optional<Time> as_of_;
};

}  // namespace berth::fair_share
