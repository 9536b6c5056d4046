// A scheduler that schedules nothing: every question of daemon/service.h answered from memory, with
// the roles checked, submits committed by a thread of its own in groups, and events kept. Tests
// move its jobs by hand (run, finish) and see who asked what.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/service.h"

namespace berth::testing {

class FakeService final : public Service {
 public:
  FakeService();
  ~FakeService() override;

  // For tests.
  void add_token(const std::string& text, const Caller& caller);
  void add_peer(std::uint32_t uid, const Caller& caller);
  /// The job runs on device 0 of n1.
  void run(JobNumber job);
  void finish(JobNumber job, LiveState state, int exit_code = 0);
  void set_output(JobNumber job, const std::string& out, const std::string& error = "");
  void happen(const std::string& kind, JobNumber job, const std::string& user,
              const std::string& json);
  void set_trouble(const std::string& text);
  /// Every call from now on fails so; nothing: as usual.
  void fail_with(std::optional<Fault> fault);
  /// Submits are taken but not answered until false.
  void hold_commits(bool is_held);
  void keep_events(std::size_t count);
  struct Question {
    std::string what;
    Caller caller;
  };
  [[nodiscard]] std::vector<Question> questions() const;
  [[nodiscard]] std::size_t subscribers() const;
  [[nodiscard]] std::size_t commits() const;
  [[nodiscard]] std::size_t job_count() const;
  [[nodiscard]] ShareView last_share() const;

  // Service.
  Answer<Submitted> submit(const Caller& caller, JobSpec spec) override;
  void submit_async(const Caller& caller, JobSpec spec,
                    std::function<void(Answer<Submitted>)> done) override;
  Answer<JobPage> jobs(const Caller& caller, const JobFilter& filter) override;
  Answer<JobView> job(const Caller& caller, JobNumber job) override;
  Answer<std::vector<AttemptView>> attempts(const Caller& caller, JobNumber job) override;
  Answer<JobStepsList> steps(const Caller& caller, const std::vector<JobNumber>& jobs) override;
  Answer<PastPage> history(const Caller& caller, const PastQuery& query) override;
  Answer<std::vector<VerbResult>> act(const Caller& caller, Verb verb, const JobFilter& which,
                                      const std::string& why, SentSignal signal) override;
  Answer<JobView> change(const Caller& caller, JobNumber job, const std::string& changes) override;
  Answer<std::string> why(const Caller& caller, JobNumber job) override;
  ClusterView cluster(const Caller& caller) override;
  std::vector<NodeView> nodes(const Caller& caller) override;
  Answer<NodeView> set_node(const Caller& caller, const std::string& node, const std::string& state,
                            const std::string& reason) override;
  Answer<ClusterView> set_policy(
      const Caller& caller, const std::string& policy,
      const std::vector<std::pair<std::string, std::string>>& settings) override;
  std::vector<ShareView> shares(const Caller& caller) override;
  Answer<ShareView> set_share(const Caller& caller, const ShareView& share) override;
  Answer<std::string> make_token(const Caller& caller, const TokenView& token) override;
  Answer<std::vector<TokenView>> tokens(const Caller& caller) override;
  Answer<void> revoke_token(const Caller& caller, const std::string& name) override;
  std::optional<Caller> caller_of(const std::string& token) override;
  Caller caller_of_peer(std::uint32_t uid, std::uint32_t gid) override;
  std::unique_ptr<Subscription> subscribe(
      std::uint64_t after, std::function<void(const ServiceEvent&)> listener) override;
  std::uint64_t latest() const override;
  std::string metrics() override;

 private:
  class Listening;
  struct Waiting {
    Caller caller;
    JobSpec spec;
    std::function<void(Answer<Submitted>)> done;
  };
  struct Token {
    TokenView view;
    Caller caller;
  };

  void note(const char* what, const Caller& caller);
  [[nodiscard]] Answer<Submitted> accept(const Caller& caller, JobSpec spec);
  [[nodiscard]] VerbResult do_to(JobView& job, const Caller& caller, Verb verb,
                                 const std::string& why);
  void tell(const std::string& kind, JobNumber job, const std::string& user,
            const std::string& json);
  void tell_state(const JobView& job);
  void commit_loop();

  mutable std::mutex mutex_;
  std::map<JobNumber, JobView> jobs_;
  std::map<std::pair<std::string, std::string>, JobNumber> keys_;
  std::map<std::string, Token> tokens_;
  std::map<std::uint32_t, Caller> peers_;
  std::vector<NodeView> nodes_;
  std::vector<ShareView> shares_;
  ClusterView cluster_;
  std::optional<Fault> fault_;
  std::vector<Question> questions_;
  std::deque<ServiceEvent> events_;
  std::size_t kept_ = 10'000;
  std::uint64_t sequence_ = 0;
  std::map<std::uint64_t, std::function<void(const ServiceEvent&)>> listeners_;
  std::uint64_t next_listener_ = 0;

  std::condition_variable submitted_;
  std::vector<Waiting> waiting_;
  std::size_t commits_ = 0;
  bool is_held_ = false;
  bool is_ending_ = false;
  std::thread committer_;
};

}  // namespace berth::testing
