// What people can ask of a Berth that advises: views of the last picture of a Slurm, history from
// its accounting, and why jobs wait. Whatever would change something is refused with Slurm's own
// command for it. Safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "advise/books.h"
#include "advise/event_log.h"
#include "advise/past.h"
#include "advise/poller.h"
#include "daemon/scheduler_options.h"
#include "daemon/service.h"

namespace berth::advise {

struct AdviceOptions {
  std::string version{};           // of Berth
  SchedulerOptions scheduling{};   // whose advice is given
  std::set<std::string> admins{};  // beside root and whoever runs this
  std::set<std::string> operators{};
};

class AdviseService final : public Service {
 public:
  struct Parts {
    slurm::Link& link;
    Books& books;
    Logger& log;
    PollOptions poll{};
    AdviceOptions options{};
    std::function<std::int64_t()> wall;  // Unix microseconds
  };
  explicit AdviseService(Parts parts);

  /// Begins to read, in a thread of its own.
  void start() { poller_.start(); }
  void stop() { poller_.stop(); }
  [[nodiscard]] Poller& poller() noexcept { return poller_; }

  // Looking.
  [[nodiscard]] Answer<JobPage> jobs(const Caller& caller, const JobFilter& filter) override;
  [[nodiscard]] Answer<JobView> job(const Caller& caller, JobNumber job) override;
  [[nodiscard]] Answer<std::vector<AttemptView>> attempts(const Caller& caller,
                                                          JobNumber job) override;
  [[nodiscard]] Answer<JobStepsList> steps(const Caller& caller,
                                           const std::vector<JobNumber>& jobs) override;
  [[nodiscard]] Answer<PastPage> history(const Caller& caller, const PastQuery& query) override;
  [[nodiscard]] Answer<std::string> why(const Caller& caller, JobNumber job) override;
  [[nodiscard]] ClusterView cluster(const Caller& caller) override;
  [[nodiscard]] std::vector<NodeView> nodes(const Caller& caller) override;
  [[nodiscard]] std::vector<ShareView> shares(const Caller& caller) override;
  [[nodiscard]] std::string metrics() override;
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      std::uint64_t after, std::function<void(const ServiceEvent&)> listener) override {
    return events_.subscribe(after, std::move(listener));
  }
  [[nodiscard]] std::uint64_t latest() const override { return events_.latest(); }

  // Who asks. There are no tokens: whoever comes by the socket is known by it.
  [[nodiscard]] std::optional<Caller> caller_of(const std::string&) override {
    return std::nullopt;
  }
  [[nodiscard]] Caller caller_of_peer(std::uint32_t uid, std::uint32_t gid) override;

  // Changing: refused.
  [[nodiscard]] Answer<Submitted> submit(const Caller&, JobSpec) override;
  void submit_async(const Caller& caller, JobSpec spec,
                    std::function<void(Answer<Submitted>)> done) override;
  [[nodiscard]] Answer<Foreseen> test(const Caller&, JobSpec) override;
  [[nodiscard]] Answer<std::vector<VerbResult>> act(const Caller&, Verb verb,
                                                    const JobFilter& which, const std::string& why,
                                                    SentSignal signal) override;
  [[nodiscard]] Answer<void> join(const Caller&, JobNumber, std::int32_t) override;
  [[nodiscard]] Answer<JobView> change(const Caller&, JobNumber job, const std::string&) override;
  [[nodiscard]] Answer<NodeView> set_node(const Caller&, const std::string& node,
                                          const std::string& state, const std::string&) override;
  [[nodiscard]] Answer<ClusterView> set_policy(
      const Caller&, const std::string& policy,
      const std::vector<std::pair<std::string, std::string>>&) override;
  [[nodiscard]] Answer<ShareView> set_share(const Caller&, const ShareView& share) override;
  [[nodiscard]] Answer<std::string> make_token(const Caller&, const TokenView&) override;
  [[nodiscard]] Answer<std::vector<TokenView>> tokens(const Caller&) override;
  [[nodiscard]] Answer<void> revoke_token(const Caller&, const std::string&) override;

 private:
  [[nodiscard]] bool may_see(const Caller& caller, const Sight& sight, const slurm::Job& job) const;
  [[nodiscard]] bool sees_all(const Caller& caller, const Sight& sight) const;
  [[nodiscard]] PastSource past_source(const Sight& sight);
  [[nodiscard]] Answer<std::vector<slurm::Job>> past(const Caller& caller, const Sight& sight,
                                                     PastQuery query);
  [[nodiscard]] Answer<slurm::Job> find(const Caller& caller, const Sight& sight, JobNumber number);
  void tell(const Sight& sight, const JobChange& change);

  Parts parts_;
  const std::int64_t started_;
  EventLog events_;
  std::mutex explaining_;  // one forked copy at a time: they are large
  Poller poller_;          // last: it calls tell()
};

}  // namespace berth::advise
