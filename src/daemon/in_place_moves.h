// How a job goes on with other devices without being stopped. Its training code is asked, one step
// at a time: first to leave what others get, then, once what is new is free, to take that. A step
// that gives devices up is on record after the answer, one that takes some before the question, so
// that at any instant, also after a crash, the record holds all that its processes may use. The hub
// repeats what is on record to whoever connects: code and record agree again by that. Owns the
// moves under way; one that the code refuses is handed back to be done by stop and start.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/attempt_table.h"
#include "daemon/clock.h"
#include "daemon/decision_batch.h"
#include "daemon/message_queue.h"
#include "daemon/pending_starts.h"

namespace berth {

class InPlaceMoves {
 public:
  struct Parts {
    AttemptTable& attempts;
    DecisionBatch& batch;
    const Cluster& cluster;
    const LiveClock& clock;
    const JobLookup& job;
    const SupervisorRules& rules;
    std::uint64_t generation = 0;
    /// For people: a job on one node is bound to others than at its start; may be absent.
    const std::function<void(JobNumber, const std::vector<std::int32_t>&)>& show_cores;
  };
  explicit InPlaceMoves(Parts parts) : parts_(parts) {}

  /// Its training code could go on with these devices instead of its own. Processes of a gang are
  /// as many as its devices: another number of them is another start.
  [[nodiscard]] bool is_possible(JobNumber job, std::span<const Slice> slices) const;
  /// After what it is asked now.
  void begin(JobNumber job, PendingStart to) { moves_[job].to = std::move(to); }
  [[nodiscard]] bool contains(JobNumber job) const { return moves_.contains(job); }
  /// Where it is to be in the end; nothing: it does not move.
  [[nodiscard]] std::optional<PendingStart> target(JobNumber job) const;
  void erase(JobNumber job) { moves_.erase(job); }
  /// What the engine planned is void. What was asked is answered, and that is where the next engine
  /// finds it.
  void end_engine();

  /// One that cannot be done in place.
  struct Failed {
    JobNumber job = 0;
    std::string why;
    PendingStart to;
  };
  /// Takes the next step of each move that can take one. `is_clear`: nobody but the job is, or
  /// stays for long, on these devices. Answers the moves whose code has not answered in time.
  [[nodiscard]] std::vector<Failed> advance(
      const std::function<bool(JobNumber, std::span<const Slice>)>& is_clear);
  /// What the code said to a question. Answers the move if it cannot go on.
  [[nodiscard]] std::optional<Failed> handle(const ResizeAnswer& answer);

  /// It is about to give this device up.
  [[nodiscard]] bool leaves(JobNumber job, const AttemptTable::Device& device) const;
  /// When a move can go on, or has waited long enough for an answer; kNever: nothing but others can
  /// change anything.
  [[nodiscard]] Time next_due() const;

 private:
  struct Move {
    PendingStart to;
    std::vector<Slice> asked{};      // what its code was asked to use
    std::uint64_t id = 0;            // of that question
    std::optional<Time> until = {};  // an answer is waited for
  };
  void ask(JobNumber job, Move& move, std::vector<Slice> slices);
  void hold(JobNumber job, const Move& move, const std::vector<Slice>& slices);
  [[nodiscard]] Time due(const Attempt& attempt) const;

  Parts parts_;
  std::map<JobNumber, Move> moves_;
  std::uint64_t questions_ = 0;
};

}  // namespace berth
