// Which jobs have a turn in one quantum, and on which servers: by stride, at their homes. A job
// whose turn is where it already runs keeps its devices.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/gandiva_fair/homes.h"
#include "policies/kit/pass.h"

namespace berth::gandiva_fair {

class Quantum {
 public:
  Quantum(const Options& options, Homes& homes) : options_(options), homes_(homes) {}
  void begin(const View& view) { turns_.resize(view.jobs.size()); }
  /// Chooses, stops and starts.
  void hold(Pass& pass);

 private:
  struct Turn {
    bool is_chosen = false;
    std::vector<Slice> devices = {};  // by server, masks empty; none where devices are only counted
  };
  void count_free(const View& view);
  void choose(const Pass& pass, JobId job);
  [[nodiscard]] bool try_choose(const Pass& pass, JobId job);
  [[nodiscard]] bool try_spread(const Pass& pass, JobId job, std::vector<Slice>& devices) const;
  void stop_others(Plan& plan) const;
  void start(Pass& pass, JobId job);

  const Options& options_;
  Homes& homes_;
  Column<JobId, Turn> turns_;
  std::vector<JobId> chosen_;
  Column<NodeId, std::int64_t> node_free_;
  Column<PoolId, std::int64_t> pool_free_;
};

}  // namespace berth::gandiva_fair
