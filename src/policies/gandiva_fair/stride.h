// Stride scheduling for gangs. Every job has tickets and a pass; each quantum jobs are looked at by
// (pass, id), those that fit are taken, and the pass of each taken one grows by its GPUs over its
// tickets, so that GPU time goes by tickets. A job that is passed over for want of devices is not
// charged and therefore comes earlier the next time. A newcomer starts at the smallest pass
// present.
//
// order() is O(n log n), add() and remove() are O(n) over a flat array.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"

namespace berth::gandiva_fair {

class GangStride {
 public:
  struct Entry {
    JobId job;
    std::int32_t gpus = 1;
    double tickets = 1;  // above zero
    double pass = 0;

    /// It runs for a quantum.
    void charge() noexcept { pass += gpus / tickets; }
  };

  void add(JobId job, std::int32_t gpus, double tickets);
  void remove(JobId job);
  /// By (pass, id) as of now.
  [[nodiscard]] std::span<Entry> order();
  /// In no order.
  [[nodiscard]] std::span<Entry> entries() noexcept { return entries_; }
  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }

  /// A quantum on so many devices that are all alike: who runs, in order. Charges them.
  [[nodiscard]] std::vector<JobId> run_quantum(std::int64_t devices);

 private:
  std::vector<Entry> entries_;
};

}  // namespace berth::gandiva_fair
