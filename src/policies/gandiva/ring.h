// The turns that the residents of one unit take. A ring of seats; a seat is one job, or two packed
// on the same GPUs. A slice runs the longest prefix of the ring whose demand fits; the scan stops
// at the first seat that does not, so nobody is overtaken and every seat runs once within `seats`
// slices. When a slice ends, those that ran go to the tail; who runs in the next slice too is not
// suspended. With equal demands this is exact round robin.
//
// A slice also ends, and a new full one begins, when a running job finishes. The ring has no clock:
// its owner calls end_slice() and asks who runs. Rings are short (GPUs x height of a server), so
// every call is linear in the seats.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"

namespace berth::gandiva {

class Ring {
 public:
  struct Seat {
    JobId job;
    std::optional<JobId> guest;  // packed on the same GPUs
    std::int32_t gpus = 1;
  };

  /// An arrival sits down at the tail.
  void add(JobId job, std::int32_t gpus);
  /// The job is gone from here. A guest keeps the seat of its host.
  void remove(JobId job);
  /// The seats that ran go to the tail, in order; choose() follows.
  void end_slice();
  /// The longest prefix that fits runs.
  void choose(std::int32_t capacity);
  /// Only the first `seats` run: for an owner that knows better what fits.
  void limit_running(std::size_t seats);

  /// The guest leaves its own seat and joins the host's; both need the same number of GPUs.
  void pack(JobId host, JobId guest);
  /// The guest gets a seat of its own, right behind.
  void unpack(JobId guest);

  [[nodiscard]] std::span<const Seat> running() const noexcept {
    return std::span{seats_}.first(running_);
  }
  [[nodiscard]] std::span<const Seat> suspended() const noexcept {
    return std::span{seats_}.subspan(running_);
  }
  [[nodiscard]] std::span<const Seat> seats() const noexcept { return seats_; }
  [[nodiscard]] bool empty() const noexcept { return seats_.empty(); }
  [[nodiscard]] bool is_running(JobId job) const noexcept;
  [[nodiscard]] const Seat* seat_of(JobId job) const noexcept;

 private:
  [[nodiscard]] std::size_t position(JobId job) const noexcept;  // size() if absent

  std::vector<Seat> seats_;
  std::size_t running_ = 0;  // the first that many seats run
};

}  // namespace berth::gandiva
