// Better places for jobs without a promise, at the end of a lease: a gang that lies on more servers
// than it needs runs slower, and being at a checkpoint it may move.
//
// Hill climbing on the sum of speeds (1 on the fewest servers possible, less when spread) less a
// cost for each job that moves. Moves: a spread job goes to servers that hold it; it changes places
// with an equally large one that minds less; it makes room for a job that waits. The best
// improvement is taken; ties: lower job, then lower server. O(spread jobs x (servers + jobs)) per
// step.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "base/id.h"

namespace berth::chronus {

struct Part {
  std::uint32_t server = 0;
  std::int32_t gpus = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

struct Resident {
  JobId job;
  std::int32_t gpus = 1;
  std::int32_t fewest = 1;       // servers it could be on at best
  double spread_speed = 1;       // on more than that; from this on it does not mind
  bool is_free_to_move = false;  // was placed a moment ago: moving it costs nothing
  std::vector<Part> at{};        // by server; empty: it waits

  [[nodiscard]] bool is_spread() const noexcept { return std::ssize(at) > fewest; }
};

class LocalSearch {
 public:
  LocalSearch(std::vector<std::int32_t> free, std::vector<Resident> residents,
              std::vector<Resident> waiting, double move_cost);

  /// Steps taken: at most `limit`.
  std::int32_t run(std::int32_t limit);
  [[nodiscard]] double speeds() const noexcept;
  /// As they lie now; one that made room has no place, one that came in has one.
  [[nodiscard]] const std::vector<Resident>& residents() const noexcept { return residents_; }
  [[nodiscard]] const std::vector<Resident>& waiting() const noexcept { return waiting_; }

 private:
  struct Step {
    double gain = 0;
    std::size_t resident = 0;
    std::size_t partner = 0;  // to change places with, or to make room for
    enum class Kind : std::uint8_t { None, Move, Swap, Yield } kind = Kind::None;
    std::vector<Part> to;
  };
  [[nodiscard]] static double speed(const Resident& job) noexcept;
  [[nodiscard]] double cost_of_moving(std::size_t resident) const noexcept;
  [[nodiscard]] std::vector<Part> compact_place(std::int32_t gpus, std::int32_t fewest) const;
  void lift(const Resident& job) noexcept;
  void drop(const Resident& job) noexcept;
  void consider(Step& best, Step step) const;
  void consider_moves(std::size_t i, Step& best);
  void consider_swaps(std::size_t i, Step& best) const;
  void take(const Step& step);

  std::vector<std::int32_t> free_;  // by server
  std::vector<Resident> residents_;
  std::vector<Resident> waiting_;
  std::vector<bool> has_moved_;  // by resident
  double move_cost_;
};

}  // namespace berth::chronus
