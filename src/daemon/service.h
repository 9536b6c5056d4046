// Everything that people and programs can ask of a running scheduler, whoever carries the question:
// the REST server, a test, the terminal. Safe to call from any thread; an answer never waits for a
// scheduling pass unless it says so. Who may do what is decided here, not in the transport.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "model/step.h"
#include "store/store.h"
#include "wire/views.h"
#include "wire/why.h"

namespace berth {

enum class FaultKind : std::uint8_t {
  BadRequest,   // 400: cannot be understood
  Forbidden,    // 403
  NotFound,     // 404
  Conflict,     // 409: not in this state
  Impossible,   // 422: understood, can never be done here
  TooMany,      // 429: a limit of this user
  Unavailable,  // 503: disk full, shutting down
};
struct Fault {
  FaultKind kind{};
  std::vector<std::string> messages;
};
template <class T>
using Answer = tl::expected<T, Fault>;

/// What a list tells of each job. Brief: no paths of output. Folded: the same, and the jobs of an
/// array that have never run and wait for the same reason are one, the first of them.
enum class Rows : std::uint8_t { Whole, Brief, Folded };

struct JobFilter {
  std::vector<LiveState> states{};  // empty: all that are not over
  std::optional<std::string> user{}, group{}, queue{}, name{};
  std::optional<std::string> study{};  // of jobs that are not over
  std::vector<JobNumber> numbers{};
  std::optional<std::int64_t> ended_since{};  // of those that are over; Unix microseconds
  std::optional<JobNumber> after{};           // page: numbers above this one
  std::size_t limit = 100;                    // rows; at most 1,000
  Rows rows = Rows::Whole;
};
/// Something happened to a job, a node or the scheduler; numbered without gaps in one life.
struct ServiceEvent {
  std::uint64_t sequence = 0;
  std::string kind;  // job, node, policy, cluster
  JobNumber job = 0;
  std::string user;  // whose job
  std::string json;  // the body of the event
};

class Service {
 public:
  virtual ~Service() = default;

  // Jobs. Returned once durable.
  [[nodiscard]] virtual Answer<Submitted> submit(const Caller& caller, JobSpec spec) = 0;
  /// Submit without blocking the caller's thread: `done` is called from the committing thread.
  virtual void submit_async(const Caller& caller, JobSpec spec,
                            std::function<void(Answer<Submitted>)> done) = 0;
  /// What would become of it; nothing is made. Waits for the end of the pass under way.
  [[nodiscard]] virtual Answer<Foreseen> test(const Caller&, JobSpec) {
    return tl::unexpected<Fault>(Fault{FaultKind::Unavailable, {"nobody can tell here"}});
  }
  [[nodiscard]] virtual Answer<JobPage> jobs(const Caller& caller, const JobFilter& filter) = 0;
  [[nodiscard]] virtual Answer<JobView> job(const Caller& caller, JobNumber job) = 0;
  [[nodiscard]] virtual Answer<std::vector<AttemptView>> attempts(const Caller& caller,
                                                                  JobNumber job) = 0;
  /// Of each of these jobs that is known.
  [[nodiscard]] virtual Answer<JobStepsList> steps(const Caller& caller,
                                                   const std::vector<JobNumber>& jobs) = 0;
  [[nodiscard]] virtual Answer<PastPage> history(const Caller& caller, const PastQuery& query) = 0;
  [[nodiscard]] virtual Answer<std::vector<VerbResult>> act(const Caller& caller, Verb verb,
                                                            const JobFilter& which,
                                                            const std::string& why,
                                                            SentSignal signal) = 0;
  /// Starts a session in a running job of the caller's own, for a request that they have put into
  /// its directory of steps.
  [[nodiscard]] virtual Answer<void> join(const Caller&, JobNumber, std::int32_t /*request*/) {
    return tl::unexpected<Fault>(Fault{FaultKind::Unavailable, {"nobody can step into jobs here"}});
  }
  /// `changes` is a JSON object with keys of JobSpec.
  [[nodiscard]] virtual Answer<JobView> change(const Caller& caller, JobNumber job,
                                               const std::string& changes) = 0;
  /// Every reason that holds the job back; waits for the end of the pass under way. JSON.
  [[nodiscard]] virtual Answer<std::string> why(const Caller& caller, JobNumber job) = 0;

  // The cluster.
  [[nodiscard]] virtual ClusterView cluster(const Caller& caller) = 0;
  [[nodiscard]] virtual std::vector<NodeView> nodes(const Caller& caller) = 0;
  /// state: drain, resume, down.
  [[nodiscard]] virtual Answer<NodeView> set_node(const Caller& caller, const std::string& node,
                                                  const std::string& state,
                                                  const std::string& reason) = 0;
  [[nodiscard]] virtual Answer<ClusterView> set_policy(
      const Caller& caller, const std::string& policy,
      const std::vector<std::pair<std::string, std::string>>& settings) = 0;
  [[nodiscard]] virtual std::vector<ShareView> shares(const Caller& caller) = 0;
  [[nodiscard]] virtual Answer<ShareView> set_share(const Caller& caller,
                                                    const ShareView& share) = 0;

  // Tokens. The text of a new one is shown once and kept only as a hash.
  [[nodiscard]] virtual Answer<std::string> make_token(const Caller& caller,
                                                       const TokenView& token) = 0;
  [[nodiscard]] virtual Answer<std::vector<TokenView>> tokens(const Caller& caller) = 0;
  [[nodiscard]] virtual Answer<void> revoke_token(const Caller& caller,
                                                  const std::string& name) = 0;
  /// Whom a token stands for; nothing if it is not (any more) good.
  [[nodiscard]] virtual std::optional<Caller> caller_of(const std::string& token) = 0;
  /// Whom a local peer stands for.
  [[nodiscard]] virtual Caller caller_of_peer(std::uint32_t uid, std::uint32_t gid) = 0;

  // Events, from `after` on as far as they are kept; then as they come, from any thread, until
  // the subscription is dropped.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  [[nodiscard]] virtual std::unique_ptr<Subscription> subscribe(
      std::uint64_t after, std::function<void(const ServiceEvent&)> listener) = 0;
  /// The number of the latest event.
  [[nodiscard]] virtual std::uint64_t latest() const = 0;

  /// In Prometheus' text form.
  [[nodiscard]] virtual std::string metrics() = 0;
  /// What jobs have shown of themselves, as a profile file; a user sees what is of their own jobs.
  [[nodiscard]] virtual std::string learnt_profiles(const Caller&) { return {}; }
};

}  // namespace berth
