// Stride scheduling for gangs. Every job has tickets and a pass; each quantum jobs are looked at by
// (pass, id), those that fit are taken, and the pass of each taken one grows by its GPUs over its
// tickets, so that GPU time goes by tickets. A job that is passed over for want of devices is not
// charged and therefore comes earlier the next time. A newcomer starts at the smallest pass
// present.
//
// order() is O(n log n), add() and remove() are O(n) over a flat array.
#pragma once

#include <algorithm>
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

  void add(JobId job, std::int32_t gpus, double tickets) {
    const auto least = std::ranges::min_element(entries_, {}, &Entry::pass);
    const double pass = least == entries_.end() ? 0 : least->pass;
    entries_.push_back({.job = job, .gpus = gpus, .tickets = tickets, .pass = pass});
  }
  void remove(JobId job) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.job == job; });
  }
  /// By (pass, id) as of now.
  [[nodiscard]] std::span<Entry> order() {
    std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
      return a.pass != b.pass ? a.pass < b.pass : a.job < b.job;
    });
    return entries_;
  }
  /// In no order.
  [[nodiscard]] std::span<Entry> entries() noexcept { return entries_; }
  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace berth::gandiva_fair
