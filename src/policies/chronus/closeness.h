// Best-effort jobs closer together, where distance costs speed: at the begin of a term those that
// lie on more servers than they need move, change places, or make room (local_search.h).
#pragma once

#include <cstdint>
#include <vector>

#include "policies/chronus/local_search.h"
#include "policies/chronus/placing.h"
#include "policies/chronus/roster.h"
#include "policies/kit/pass.h"

namespace berth::chronus {

class Closeness {
 public:
  Closeness(const Options& options, Roster& roster, const Placing& placing)
      : options_(options), roster_(roster), placing_(placing) {}
  void improve(Pass& pass, PoolId pool);

 private:
  [[nodiscard]] std::vector<Resident> residents(const Pass& pass, PoolId pool) const;
  [[nodiscard]] std::vector<Resident> candidates(const Pass& pass, PoolId pool) const;
  void carry_out(Pass& pass, PoolId pool, const std::vector<Resident>& before,
                 const LocalSearch& search);

  const Options& options_;
  Roster& roster_;
  const Placing& placing_;
};

}  // namespace berth::chronus
