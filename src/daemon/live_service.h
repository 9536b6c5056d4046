// The service of a running scheduler: what may be asked, by whom, answered from
// the status board and the store, written to the journal. Jobs are looked at,
// acted on and changed here; submitting them, the cluster and callers are
// objects of their own. Safe from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "daemon/admission.h"
#include "daemon/caller_directory.h"
#include "daemon/cluster_service.h"
#include "daemon/energy_meter.h"
#include "daemon/identity.h"
#include "daemon/job_submitter.h"
#include "daemon/journal_writer.h"
#include "daemon/message_queue.h"
#include "daemon/scheduler.h"
#include "daemon/service.h"
#include "daemon/status_board.h"
#include "wire/why.h"

namespace berth {

struct ServiceOptions {
  std::string version;
  std::set<std::string> admins;  // beside root and whoever runs the scheduler
  std::set<std::string> operators;
  double fair_share_half_life = 7 * 86'400.0;  // seconds
  std::uint64_t reserve_bytes = 64U << 20U;    // kept free for ends when submits are refused
  Identity::Options identity;                  // who belongs to which group
};

class LiveService final : public Service {
 public:
  struct Parts {
    StatusBoard& board;
    Store& store;
    Journal& journal;
    const LiveClock& clock;
    Scheduler& scheduler;
    Admission& admission;
    const Cluster& cluster;
    std::uint64_t generation = 0;
    /// Runs in the engine's thread between two passes.
    std::function<void(Question)> ask_engine;
    std::function<void(JobNumber, SentSignal)> signal;             // in the engine's thread
    std::function<void(AttemptId, std::uint32_t)> join = {};       // from any thread
    std::function<Why(const JobView&, bool may_see_all)> explain;  // in the engine's thread
    std::function<std::string()> more_metrics;                     // Prometheus text of other parts
    ServiceOptions options;
    /// Hears a fixed word for what stands in the way of jobs, and says it in
    /// words for the log.
    std::function<void(std::string_view cause, std::string_view why)> note_trouble = {};
    /// What the policy says to a job that comes now, in the engine's thread;
    /// absent: nobody is asked before a job is taken.
    std::function<std::optional<std::string>(const JobSpec&)> refusal_of = {};
    /// What would keep a job of this request waiting, in the engine's thread.
    std::function<Why(const JobSpec&)> foresee = {};
    EnergyMeter* energy = nullptr;
    std::function<KeptSteps(AttemptId)> steps_of = {};  // of one that runs; from any thread
  };
  explicit LiveService(Parts parts);
  /// What stands in the way of taking jobs; empty: nothing.
  void set_trouble(std::string trouble) { cluster_.set_trouble(std::move(trouble)); }

  [[nodiscard]] Answer<Submitted> submit(const Caller& caller, JobSpec spec) override;
  [[nodiscard]] Answer<Foreseen> test(const Caller& caller, JobSpec spec) override;
  void submit_async(const Caller& caller, JobSpec spec,
                    std::function<void(Answer<Submitted>)> done) override {
    submitter_.submit_async(caller, std::move(spec), std::move(done));
  }
  [[nodiscard]] Answer<JobPage> jobs(const Caller& caller, const JobFilter& filter) override;
  [[nodiscard]] Answer<JobView> job(const Caller& caller, JobNumber job) override;
  [[nodiscard]] Answer<std::vector<AttemptView>> attempts(const Caller& caller,
                                                          JobNumber job) override;
  [[nodiscard]] Answer<JobStepsList> steps(const Caller& caller,
                                           const std::vector<JobNumber>& jobs) override;
  [[nodiscard]] Answer<PastPage> history(const Caller& caller, const PastQuery& query) override;
  [[nodiscard]] Answer<std::vector<VerbResult>> act(const Caller& caller, Verb verb,
                                                    const JobFilter& which, const std::string& why,
                                                    SentSignal signal) override;
  [[nodiscard]] Answer<void> join(const Caller& caller, JobNumber job,
                                  std::int32_t request) override;
  [[nodiscard]] Answer<JobView> change(const Caller& caller, JobNumber job,
                                       const std::string& changes) override;
  [[nodiscard]] Answer<std::string> why(const Caller& caller, JobNumber job) override;

  [[nodiscard]] ClusterView cluster(const Caller&) override { return cluster_.cluster(); }
  [[nodiscard]] std::vector<NodeView> nodes(const Caller&) override { return cluster_.nodes(); }
  [[nodiscard]] Answer<NodeView> set_node(const Caller& caller, const std::string& node,
                                          const std::string& state,
                                          const std::string& reason) override {
    return cluster_.set_node(caller, node, state, reason);
  }
  [[nodiscard]] Answer<ClusterView> set_policy(
      const Caller& caller, const std::string& policy,
      const std::vector<std::pair<std::string, std::string>>& settings) override {
    return cluster_.set_policy(caller, policy, settings);
  }
  [[nodiscard]] std::vector<ShareView> shares(const Caller& caller) override {
    return cluster_.shares(caller);
  }
  [[nodiscard]] Answer<ShareView> set_share(const Caller& caller, const ShareView& share) override {
    return cluster_.set_share(caller, share);
  }
  [[nodiscard]] std::string learnt_profiles(const Caller& caller) override {
    return cluster_.learnt_profiles(caller);
  }

  [[nodiscard]] Answer<std::string> make_token(const Caller& caller,
                                               const TokenView& token) override {
    return callers_.make_token(caller, token);
  }
  [[nodiscard]] Answer<std::vector<TokenView>> tokens(const Caller& caller) override {
    return callers_.tokens(caller);
  }
  [[nodiscard]] Answer<void> revoke_token(const Caller& caller, const std::string& name) override {
    return callers_.revoke_token(caller, name);
  }
  [[nodiscard]] std::optional<Caller> caller_of(const std::string& token) override {
    return callers_.caller_of(token);
  }
  [[nodiscard]] Caller caller_of_peer(std::uint32_t uid, std::uint32_t gid) override {
    return callers_.caller_of_peer(uid, gid);
  }

  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      std::uint64_t after, std::function<void(const ServiceEvent&)> listener) override {
    return parts_.board.subscribe(after, std::move(listener));
  }
  [[nodiscard]] std::uint64_t latest() const override { return parts_.board.latest(); }
  [[nodiscard]] std::string metrics() override;

 private:
  struct Told {  // a request, and what somebody else may see of it
    std::shared_ptr<const JobSpec> whole{}, shown{};
  };
  [[nodiscard]] JobView shown_to(const Caller& caller, JobView view) const;
  [[nodiscard]] JobView shown_to(const Caller& caller, JobView view, Told& last) const;
  [[nodiscard]] Answer<std::vector<JobNumber>> chosen(const Caller& caller, const JobFilter& which,
                                                      std::vector<VerbResult>& results);
  [[nodiscard]] Answer<ChangeRecord> change_in(const Ledger& ledger, const Caller& caller,
                                               JobNumber job, const std::string& changes);
  [[nodiscard]] Answer<void> write_setting(SettingRecord setting);

  Parts parts_;
  Identity identity_;
  CallerDirectory callers_;
  ClusterService cluster_;
  JobSubmitter submitter_;
  std::atomic<std::uint64_t> unexplained_ = 0;
};

}  // namespace berth
