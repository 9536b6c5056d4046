// The scheduler as the command line sees it: one call per route of the API. Errors are sentences
// for people: no scheduler there, not let in, not allowed, no such job, try later. A scheduler that
// restarts is waited for if one asks for patience; a submit is repeated under its key, so that it
// happens once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/answers.h"
#include "client/http.h"
#include "model/job_spec.h"
#include "model/step.h"
#include "wire/requests.h"

namespace berth::client {

/// As a user of a query: who we are to the scheduler, which a token may decide and not the machine.
inline constexpr std::string_view kMe = "@me";

/// Which jobs; empty parts do not restrict.
/// Brief: what tables show. Folded: the same, and jobs of an array that wait alike may be one row.
enum class Rows : std::uint8_t { WithJson, Brief, Folded };

struct JobQuery {
  std::vector<LiveState> states{};  // empty: all that are not over
  bool any_state = false;
  std::string user{}, group{}, queue{}, name{};
  std::vector<JobNumber> ids{};
  std::optional<std::int64_t> ended_since{};  // of those that are over; Unix seconds
  std::size_t most = 0;                       // jobs to fetch in all; 0: every page
  Rows rows = Rows::Brief;
};

struct HistoryQuery {
  std::string user, group, queue, name;
  std::vector<std::string> outcomes;
  std::optional<std::int64_t> since, until;  // Unix seconds
  std::size_t most = 100;
  Rows rows = Rows::Brief;
};

class Scheduler {
 public:
  explicit Scheduler(Endpoint endpoint,
                     std::chrono::milliseconds timeout = std::chrono::seconds(30))
      : http_(std::make_unique<HttpClient>(std::move(endpoint), timeout)) {}

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return http_->endpoint(); }

  /// How long requests that nobody is there to take are tried again; those that went out and were
  /// cut off only if doing them twice is doing them once. `note` hears of it if it takes longer
  /// than a moment. Without this only submits are patient.
  struct Patience {
    std::chrono::milliseconds of_submit = std::chrono::seconds(30);
    std::chrono::milliseconds of_others = std::chrono::milliseconds(0);
    std::function<void(const std::string&)> note = {};
  };
  void be_patient(Patience patience) { patience_ = std::move(patience); }

  /// The spec's key, or a random one if it has none, makes a repetition harmless. The body as well.
  struct SubmitAnswer {
    Submitted reply;
    std::string json;
  };
  /// Joules of jobs by user, and of nobody, since they are counted.
  struct EnergySums {
    std::map<std::string, double> users;
    double nobody = 0;
  };
  [[nodiscard]] Result<EnergySums> energy_sums();
  /// What jobs have shown of themselves: a profile file.
  [[nodiscard]] Result<std::string> learnt_profiles();
  [[nodiscard]] Result<SubmitAnswer> submit(JobSpec spec);
  /// What would become of it; nothing is made.
  struct TestAnswer {
    Foreseen seen;
    std::string json;
  };
  [[nodiscard]] Result<TestAnswer> test(const JobSpec& spec);
  [[nodiscard]] Result<JobRows> jobs(const JobQuery& query);
  [[nodiscard]] Result<JobRow> job(JobNumber number);
  [[nodiscard]] Result<std::vector<AttemptView>> attempts(JobNumber number);
  /// Of each of these jobs that is known, in the order of their numbers; any number of them.
  [[nodiscard]] Result<std::vector<JobSteps>> steps(std::vector<JobNumber> numbers);
  [[nodiscard]] Result<JobRows> history(const HistoryQuery& query);
  /// Parts that are empty do not restrict; a user may be kMe.
  [[nodiscard]] Result<std::vector<VerbResult>> act(JobAction action);
  /// `changes` is a JSON object.
  [[nodiscard]] Result<JobRow> change(JobNumber number, const std::string& changes);
  [[nodiscard]] Result<std::string> why(JobNumber number);
  [[nodiscard]] Result<ClusterView> cluster();
  [[nodiscard]] Result<std::vector<NodeView>> nodes();
  /// The user, or for kMe our own name.
  [[nodiscard]] Result<std::string> name_of(const std::string& user);

  /// Any other route; the body of the answer. `path` is below /api/v1.
  [[nodiscard]] Result<std::string> get(const std::string& path);
  [[nodiscard]] Result<std::string> send(const std::string& method, const std::string& path,
                                         std::string body);
  /// A route whose answer comes piece by piece.
  [[nodiscard]] Result<std::unique_ptr<HttpStream>> stream(const std::string& path,
                                                           Headers headers = {});

  /// The status of the last answer; 0 if there was none. For callers that treat some specially.
  [[nodiscard]] int last_status() const noexcept { return status_; }

 private:
  [[nodiscard]] Result<std::string> exchange(const HttpRequest& request);
  [[nodiscard]] Result<std::string> exchange_once(const HttpRequest& request);
  class Waiting;
  [[nodiscard]] Result<JobRows> some_jobs(const JobQuery& query, const std::string& ids);

  std::unique_ptr<HttpClient> http_;  // on the heap: a Scheduler can be handed on
  std::string me_;                    // once it was asked for
  int status_ = 0;
  bool is_stopping_ = false;  // the last answer said so
  Patience patience_;
};

/// What a refusal means to the one who asked.
[[nodiscard]] Error error_of(const HttpReply& reply, const Endpoint& endpoint);
/// 128 random bits.
[[nodiscard]] std::string random_key();

}  // namespace berth::client
