// The world below an engine that is made from a picture: nodes out of service go down, jobs that
// run arrive one by one in the order of their starts, on the devices that they have, and then
// nothing happens any more. It carries nothing out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "advise/cluster_of_sight.h"
#include "core/executor.h"
#include "core/slice.h"
#include "model/trace.h"

namespace berth::advise {

class PictureExecutor final : public Executor {
 public:
  struct Running {
    JobId slot;
    Time since;
    std::vector<Slice> slices;
  };
  struct Picture {
    Time now;
    std::vector<NodeId> out_of_service{};
    std::vector<Running> running{};  // in the order of their starts
  };
  explicit PictureExecutor(Picture picture);

  /// What Slurm can do as well: it suspends only together with the devices.
  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  [[nodiscard]] std::optional<Time> advance(Time wakeup) override;
  void collect(Time now, std::vector<Event>& due) override;
  [[nodiscard]] StartReceipt start(Time now, const Action& action, const JobTable& jobs) override;
  [[nodiscard]] Time stop(Time now, const Action&, const JobTable&) override { return now; }
  [[nodiscard]] JobPast past(JobId job) const override;

 private:
  [[nodiscard]] const Running* running(JobId slot) const;

  Picture picture_;
  std::unordered_map<JobId, std::size_t> at_;  // lookup only
  std::size_t steps_ = 0;                      // instants that have passed
};

}  // namespace berth::advise
