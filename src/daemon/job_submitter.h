// How a request becomes a job: whose it is, whether it makes sense here,
// whether a job of the same key exists, what the policy says to it, and the
// record that makes it durable. Nobody hears that a job was taken before it is
// on record. Safe from any thread; the policy is asked in the engine's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admission.h"
#include "daemon/clock.h"
#include "daemon/identity.h"
#include "daemon/journal_writer.h"
#include "daemon/message_queue.h"
#include "daemon/scheduler.h"
#include "daemon/service.h"
#include "daemon/status_board.h"
#include "store/store.h"

namespace berth {

/// A deadline that has passed already is refused.
[[nodiscard]] Answer<void> check_deadline(const JobSpec& spec, std::int64_t wall);

class JobSubmitter {
 public:
  struct Parts {
    const StatusBoard& board;
    Store& store;
    Journal& journal;
    const LiveClock& clock;
    const Scheduler& scheduler;
    Admission& admission;
    Identity& identity;
    std::uint64_t reserve_bytes = 0;  // kept free for ends when submits are refused
    std::function<void(Question)> ask_engine;
    std::function<void(std::string_view cause, std::string_view why)> note_trouble;
    /// What the policy says to a job that comes now, in the engine's thread;
    /// absent: nobody is asked before a job is taken.
    std::function<std::optional<std::string>(const JobSpec&)> refusal_of;
  };
  explicit JobSubmitter(Parts parts) : parts_(std::move(parts)) {}

  using Done = std::function<void(Answer<Submitted>)>;
  /// `done` is called once, from this thread, the journal's or the engine's.
  void submit_async(const Caller& caller, JobSpec spec, Done done);
  /// Everything that is asked before a job is taken, but for the policy; fills in what the request
  /// leaves open.
  [[nodiscard]] Answer<void> check(const Caller& caller, JobSpec& spec,
                                   std::vector<std::string>& notes);
  /// Acknowledged in this life.
  [[nodiscard]] std::uint64_t count() const noexcept { return submits_.load(); }

 private:
  struct Submission;
  void ask_policy(const std::shared_ptr<Submission>& submission, Done done);
  void take(const std::shared_ptr<Submission>& submission, Done done);
  [[nodiscard]] Answer<void> prepare(const Caller& caller, JobSpec& spec,
                                     std::vector<std::string>& notes);
  [[nodiscard]] Answer<void> name_owner(const Caller& caller, JobSpec& spec);
  [[nodiscard]] Answer<std::optional<Submitted>> known_key(const JobSpec& spec);

  Parts parts_;
  std::atomic<std::uint64_t> submits_ = 0;
};

}  // namespace berth
