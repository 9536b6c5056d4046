// A scheduler of which every answer has something in every field, and the same each time.
#pragma once

#include "daemon/service.h"

namespace berth::test {

/// Of characters that JSON writes differently.
inline const std::string kOddText = "quote \" slash \\ tab\t line\n <tag> \x01 ü";

class FilledService final : public Service {
 public:
  static JobSpec spec() {
    JobSpec spec;
    spec.script = "#!/bin/sh\necho\n";
    spec.command = {"a", "b c"};
    spec.workdir = "/home/ann";
    spec.env = {{"A", "1"}, {"B", kOddText}};
    spec.output = "out-%j";
    spec.name = "train";
    spec.user = "ann";
    spec.group = "ml";
    spec.queue = "gpu";
    spec.comment = kOddText;
    spec.gpus = 4;
    spec.gpus_min = 2;
    spec.gpus_max = 8;
    spec.weight = 1.5;
    spec.time_limit = 3'600;
    spec.deadline = 1'700'000'000;
    spec.requeue_exit_code = 75;
    spec.dependencies = {{DependencyKind::AfterOk, 3}, {DependencyKind::AfterAny, 4}};
    spec.array = ArraySpec{{0, 1, 2, 7}, 2};
    spec.kind = JobKind::Hpo;
    spec.key = "k-1";
    return spec;
  }
  /// Everything at once, whether or not one job can have it.
  static JobView full_job(JobNumber number) {
    static const auto kSpec = std::make_shared<const JobSpec>(spec());
    JobView job;
    job.number = number;
    job.array = 12;
    job.array_index = 3;
    job.array_at_once = 2;
    job.spec = kSpec;
    job.state = LiveState::Running;
    job.reason = kOddText;
    job.code = WaitCode::GroupGpus;
    job.submitted = 1'700'000'000'000'001;
    job.started = 1'700'000'000'000'002;
    job.last_started = 1'700'000'000'000'003;
    job.ended = 1'700'000'000'000'004;
    job.run_seconds = 12.5;
    job.last_run_seconds = 7.25;
    job.suspended_seconds = 1.5;
    job.suspended = 1'700'000'000'000'005;
    job.tasks = 4;
    job.gpu_seconds = 1e9 / 3;
    set_energy(job, 123'456'789);
    job.attempts = 3;
    job.preemptions = 2;
    job.failures = 1;
    job.where = {{"n1", {0, 1}, {4, 5}}, {"n2", {3}, {}}};
    job.granted = 3;
    job.exit_code = 7;
    job.signal = 9;
    job.pid = 4'321;
    job.output = "/home/ann/out-12";
    job.error = "/home/ann/err-12";
    job.training = TrainingView{.iterations = 100.5,
                                .iterations_per_second = 2.25,
                                .samples_per_second = 72,
                                .loss = 0.125,
                                .sub_steps = 2,
                                .last_heard_seconds_ago = 0.75};
    job.pace =
        PaceView{.rate = 0.75, .progress = 0.5, .seconds_left = 1'234.5, .source = "reports"};
    job.folded = {3, 4, 5, 9};
    return job;
  }
  /// Nothing but its number.
  static JobView plain_job(JobNumber number) {
    JobView job;
    job.number = number;
    job.spec = std::make_shared<const JobSpec>();
    job.state = LiveState::Pending;
    return job;
  }
  static JobView half_job(JobNumber number) {
    JobView job = plain_job(number);
    job.training = TrainingView{};
    job.pace = PaceView{.source = "request"};
    job.spec = nullptr;
    job.gpu_seconds = -0.0;
    return job;
  }
  static void set_energy(JobView& job, double joules) { job.energy_kwh = joules / kJoulesPerKwh; }
  static std::vector<JobView> all_jobs() { return {full_job(12), plain_job(13), half_job(14)}; }

  Answer<Submitted> submit(const Caller&, JobSpec) override {
    return Submitted{12, 4, false, {"a note", kOddText}};
  }
  void submit_async(const Caller& caller, JobSpec spec,
                    std::function<void(Answer<Submitted>)> done) override {
    done(submit(caller, std::move(spec)));
  }
  Answer<JobPage> jobs(const Caller&, const JobFilter& filter) override {
    if (filter.after) return JobPage{all_jobs(), std::nullopt, 3};
    return JobPage{all_jobs(), 14, 1'234};
  }
  Answer<JobView> job(const Caller&, JobNumber number) override {
    return number == 13 ? plain_job(13) : number == 14 ? half_job(14) : full_job(number);
  }
  Answer<std::vector<AttemptView>> attempts(const Caller&, JobNumber) override {
    return std::vector<AttemptView>{{.id = "3.17",
                                     .where = {{"n1", {0, 1}, {4, 5}}},
                                     .begun = 1'700'000'000'000'001,
                                     .ended = 1'700'000'000'000'002,
                                     .outcome = "timed-out",
                                     .exit_code = 1,
                                     .signal = 9,
                                     .gpu_seconds = 2.5,
                                     .why = kOddText},
                                    {.id = "4.1", .where = {}}};
  }
  Answer<JobStepsList> steps(const Caller&, const std::vector<JobNumber>& jobs) override {
    StepView step{.id = "0",
                  .name = kOddText,
                  .state = StepState::Failed,
                  .tasks = 4,
                  .cpus = 8,
                  .devices = {0, 1},
                  .cores = {4, 5},
                  .overlaps = true,
                  .begun = 1'700'000'000'000'001,
                  .ended = 1'700'000'000'000'002,
                  .exit_code = 3,
                  .signal = 9,
                  .cpu_seconds = 2.5,
                  .max_rss_kib = 1'024,
                  .pid = 77};
    StepView plain;
    plain.id = kBatchStep;
    JobStepsList list;
    for (const JobNumber job : jobs) list.jobs.push_back({job, "/run/steps", {plain, step}});
    return list;
  }
  Answer<PastPage> history(const Caller&, const PastQuery& query) override {
    if (query.before) return PastPage{all_jobs(), std::nullopt};
    return PastPage{all_jobs(), "1700000000000004.12"};
  }
  Answer<std::vector<VerbResult>> act(const Caller&, Verb, const JobFilter&, const std::string&,
                                      SentSignal) override {
    return std::vector<VerbResult>{{12, true, "cancelled"}, {13, false, kOddText}};
  }
  Answer<void> join(const Caller&, JobNumber, std::int32_t) override { return {}; }
  Answer<JobView> change(const Caller&, JobNumber number, const std::string&) override {
    return full_job(number);
  }
  Answer<std::string> why(const Caller&, JobNumber) override {
    return std::string(R"({"job":12})");
  }
  ClusterView cluster(const Caller&) override {
    ClusterView cluster;
    cluster.name = "1x4";
    cluster.policy = "las";
    cluster.settings = {{"quantum", "60"}, {"a", kOddText}};
    cluster.version = "0.1.0";
    cluster.generation = 7;
    cluster.started = 1'700'000'000'000'000;
    cluster.uptime_seconds = 99.5;
    cluster.pending = 5;
    cluster.running = 6;
    cluster.held = 7;
    cluster.gpus = 16;
    cluster.gpus_used = 9;
    cluster.queues = {{"gpu", 3'600, 600}, {"long", 0, 0}};
    cluster.passes = 1'000;
    cluster.last_pass_seconds = 0.001;
    cluster.worst_pass_seconds = 0.25;
    cluster.trouble = kOddText;
    return cluster;
  }
  static NodeView node(const std::string& name) {
    NodeView node;
    node.name = name;
    node.state = "drained";
    node.reason = kOddText;
    node.type = "a100";
    node.gpus = 8;
    node.gpus_used = 3;
    node.cpus = 64;
    node.cpus_used = 12;
    node.memory_mib = 515'000;
    node.devices = {{12, 13}, {}, {14}};
    set_energy(node, {1e6, 2e6, 3e6, 4e6});
    return node;
  }
  static void set_energy(NodeView& node, const std::array<double, 4>& joules) {
    for (std::size_t use = 0; use < joules.size(); ++use)
      node.energy_kwh[use] = joules[use] / kJoulesPerKwh;
  }
  std::vector<NodeView> nodes(const Caller&) override { return {node("n1"), NodeView{}}; }
  Answer<NodeView> set_node(const Caller&, const std::string& name, const std::string&,
                            const std::string&) override {
    return node(name);
  }
  Answer<ClusterView> set_policy(const Caller& caller, const std::string&,
                                 const std::vector<std::pair<std::string, std::string>>&) override {
    return cluster(caller);
  }
  static ShareView share() {
    return {.kind = "group",
            .name = "ml",
            .shares = 2.5,
            .gpu_seconds = 1e7,
            .gpus_now = 4,
            .jobs_now = 5,
            .waiting = 6,
            .gpu_limit = 7,
            .job_limit = 8,
            .gpu_seconds_limit = 9.5,
            .members = {"ann", "bob"}};
  }
  std::vector<ShareView> shares(const Caller&) override { return {share(), ShareView{}}; }
  Answer<ShareView> set_share(const Caller&, const ShareView& share) override { return share; }
  Answer<std::string> make_token(const Caller&, const TokenView&) override {
    return std::string("secret");
  }
  Answer<std::vector<TokenView>> tokens(const Caller&) override {
    return std::vector<TokenView>{{"ci", "ann", Role::Operator, 1'700'000'000, 1'800'000'000, true},
                                  {"home", "bob", Role::User, 0, 0, false}};
  }
  Answer<void> revoke_token(const Caller&, const std::string&) override { return {}; }
  std::optional<Caller> caller_of(const std::string& token) override {
    if (token == "nobody") return Caller{"nobody", kNoUid, kNoUid, Role::User};
    return Caller{"root", 0, 0, Role::Admin};
  }
  Caller caller_of_peer(std::uint32_t uid, std::uint32_t gid) override {
    return {"root", uid, gid, Role::Admin};
  }
  std::unique_ptr<Subscription> subscribe(std::uint64_t,
                                          std::function<void(const ServiceEvent&)>) override {
    return std::make_unique<Subscription>();
  }
  std::uint64_t latest() const override { return 5; }
  std::string metrics() override { return "measured 1\n"; }
  std::string learnt_profiles(const Caller&) override { return "models:\n  - \"x\"\n"; }
};

}  // namespace berth::test
