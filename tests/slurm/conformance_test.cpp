// Both links do the same on a real Slurm, of every version: reading jobs of every kind, placing,
// holding, requeueing, signals, a controller that is killed.
//
// By default with the Slurm of trixie, where its chroot is; BERTH_SLURM_SUITES=bookworm,trixie,forky
// names others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "base/split.h"
#include "slurm/program_link.h"
#include "slurm/text_link.h"
#include "support/slurm_cluster.h"

namespace berth::slurm {
namespace {

using test::SlurmCluster;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Everything that could be taken for structure by somebody.
const std::string kHostile = "evil\nJobId=2 JobName=x State=RUNNING|\x1f\x1e\t\\n \xff\xfe";

bool is_asked_for(const std::string& suite) {
  const char* suites = std::getenv("BERTH_SLURM_SUITES");
  for (const std::string_view asked : split(suites != nullptr ? suites : "trixie", ','))
    if (asked == suite) return true;
  return false;
}

class Conformance : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    const std::string suite = std::get<0>(GetParam());
    if (!is_asked_for(suite))
      GTEST_SKIP() << "BERTH_SLURM_SUITES does not name this Slurm: " << suite;
    if (const auto why = SlurmCluster::why_not(suite)) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<SlurmCluster>(
        suite, std::vector<std::string>{"-n", "4", "-t", "v100:4,a100:8", "--hold", "--extra",
                                        "MessageTimeout=4"});
    ASSERT_TRUE(cluster_->is_up());
    const TextLinkSettings text{.directory = cluster_->commands()};
    if (std::string_view(std::get<1>(GetParam())) == "Text") {
      link_ = std::make_unique<TextLink>(text);
    } else {
      const auto program = cluster_->link_program();
      ASSERT_FALSE(program.empty());
      link_ = std::make_unique<ProgramLink>(ProgramLinkSettings{.command = program, .text = text});
    }
  }

  /// Reads until something changes, and keeps what was read.
  void poll() {
    auto read = link_->jobs();
    ASSERT_TRUE(read) << read.error().text;
    if (*read) jobs_ = std::move(**read);
  }
  [[nodiscard]] Job job(std::uint32_t id) {
    for (const Job& one : jobs_)
      if (one.key.job == id) return one;
    return {};
  }
  /// Polls until a job is as wanted; a placed job starts within seconds.
  [[nodiscard]] bool wait(std::uint32_t id, const std::function<bool(const Job&)>& is_so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (std::chrono::steady_clock::now() < end) {
      poll();
      if (HasFatalFailure()) return false;
      if (is_so(job(id))) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    ADD_FAILURE() << "job " << id << " is still " << to_string(job(id).phase) << " ("
                  << job(id).reason << ")";
    return false;
  }
  [[nodiscard]] bool wait_phase(std::uint32_t id, JobPhase phase) {
    return wait(id, [phase](const Job& one) { return one.phase == phase && !one.completing; });
  }
  [[nodiscard]] Node node(const std::string& name) {
    auto read = link_->nodes();
    EXPECT_TRUE(read) << read.error().text;
    if (read && *read) nodes_ = std::move(**read);
    for (const Node& one : nodes_)
      if (one.name == name) return one;
    return {};
  }
  static std::string ref(std::uint32_t id) { return fmt::format("{}", id); }

  void conform();
  void submit_all();
  void reads_what_waits();
  void places_and_reads_what_runs();
  void reads_nodes();
  void reads_what_does_not_change();
  void changes();
  void signals();
  void requeues();
  void suspends();
  void refuses();
  void reads_the_rest();
  void survives_a_killed_controller();

  std::unique_ptr<SlurmCluster> cluster_;
  std::unique_ptr<Link> link_;
  std::vector<Job> jobs_;
  std::vector<Node> nodes_;
  std::uint32_t gang_ = 0, shared_ = 0, array_ = 0, failing_ = 0, picky_ = 0, later_ = 0,
                trapping_ = 0;
};

INSTANTIATE_TEST_SUITE_P(OnSlurm, Conformance,
                         testing::Combine(testing::Values("bookworm", "trixie", "forky"),
                                          testing::Values("Text", "Program")),
                         [](const auto& parameter) {
                           return std::string(std::get<1>(parameter.param)) + "On" +
                                  std::get<0>(parameter.param);
                         });

void Conformance::submit_all() {
  gang_ = cluster_->submit({"-J", kHostile, "--comment", kHostile, "-N2", "--ntasks-per-node=1",
                            "-c8", "--gres=gpu:a100:8", "-t30", "--wrap", "sleep 600"});
  shared_ = cluster_->submit({"--gres=shard:2", "--wrap", "sleep 600"});
  array_ = cluster_->submit({"--array=1-4%2", "--gres=gpu:1", "--wrap", "sleep 600"});
  failing_ = cluster_->submit({"--wrap", "exit 3"});
  picky_ = cluster_->submit({"--gpus=2", "-x", "n1,n3", "--exclusive", "--no-requeue", "-C",
                             "v100|a100", "--mem=4G", "--wrap", "sleep 600"});
  later_ = cluster_->submit(
      {"--begin=now+1hour", "-d", fmt::format("afterany:{}", gang_), "--wrap", "true"});
  // Its script and the shell below it note every signal.
  const std::string notes = cluster_->path() + "/signals";
  trapping_ = cluster_->submit(
      {"--gres=gpu:1", "--wrap",
       fmt::format("note() {{ echo \"$1\" >> {0}; }}\n"
                   "(trap 'note child' USR1; echo ready >> {0}; while :; do sleep 0.1; done) &\n"
                   "trap 'note script' USR1 USR2\nwhile :; do wait; sleep 0.1; done",
                   notes)});
  ASSERT_GT(trapping_, 0U);
}

void Conformance::reads_what_waits() {
  poll();
  const Job gang = job(gang_);
  EXPECT_EQ(gang.phase, JobPhase::Pending);
  EXPECT_EQ(gang.priority, 0U);
  EXPECT_EQ(gang.reason, "JobHeldUser");
  EXPECT_EQ(gang.name, kHostile);
  EXPECT_EQ(gang.comment, kHostile);
  EXPECT_EQ(gang.user, "root");
  EXPECT_EQ(gang.uid, 0U);
  EXPECT_EQ(gang.partition, "main");
  EXPECT_EQ(gang.gpus(), 16);
  EXPECT_EQ(gang.gpu_type(), "a100");
  EXPECT_EQ(gang.min_nodes, 2);
  EXPECT_EQ(gang.tasks, 2);
  EXPECT_EQ(gang.cpus, 16);
  EXPECT_EQ(gang.memory_mib, 16'000);
  EXPECT_EQ(gang.time_limit, 1800);
  EXPECT_TRUE(gang.is_batch && gang.may_requeue && !gang.exclusive);
  EXPECT_THAT(gang.held, IsEmpty());
  EXPECT_EQ(gang.ended, 0);
  EXPECT_NEAR(static_cast<double>(gang.key.submitted), static_cast<double>(std::time(nullptr)), 60);
  EXPECT_EQ(job(shared_).shards(), 2);
  EXPECT_EQ(job(shared_).gpus(), 0);
  EXPECT_EQ(job(array_).array, array_);
  EXPECT_EQ(job(array_).array_tasks, "1-4%2");
  const Job picky = job(picky_);
  EXPECT_EQ(picky.gpus(), 2);
  EXPECT_THAT(picky.excluded_nodes, ElementsAre("n1", "n3"));
  EXPECT_EQ(picky.features, "v100|a100");
  EXPECT_TRUE(picky.exclusive);
  EXPECT_FALSE(picky.may_requeue);
  EXPECT_EQ(picky.memory_mib, 4096);
  EXPECT_EQ(picky.time_limit, 0);
  EXPECT_THAT(job(later_).dependency, HasSubstr("afterany"));
  EXPECT_GT(job(later_).eligible, job(later_).key.submitted + 3000);
}

void Conformance::places_and_reads_what_runs() {
  for (const auto& [id, nodes] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {ref(gang_), {"n3", "n4"}},
           {ref(shared_), {"n2"}},
           {fmt::format("{}_2", array_), {"n1"}},
           {ref(failing_), {"n1"}},
           {ref(trapping_), {"n1"}}}) {
    const auto placed = link_->place(id, {.nodes = nodes});
    ASSERT_TRUE(placed) << placed.error().text;
  }
  ASSERT_TRUE(wait_phase(gang_, JobPhase::Running));
  const Job gang = job(gang_);
  ASSERT_THAT(gang.held, SizeIs(2));
  EXPECT_EQ(gang.held[0].node, "n3");
  EXPECT_EQ(gang.held[1].node, "n4");
  EXPECT_THAT(gang.required_nodes, ElementsAre("n3", "n4"));
  EXPECT_GT(gang.started, 0);
  EXPECT_EQ(gang.gpus(), 16);
  for (const HeldNode& held : gang.held)
    EXPECT_THAT(held.gres, ElementsAre(GresCount{"gpu", "a100", 8, {0, 1, 2, 3, 4, 5, 6, 7}}));
  ASSERT_TRUE(wait_phase(shared_, JobPhase::Running));
  EXPECT_EQ(job(shared_).shards(), 2);
  ASSERT_TRUE(wait_phase(failing_, JobPhase::Failed));
  EXPECT_EQ(job(failing_).exit_code, 3);
  EXPECT_GT(job(failing_).ended, 0);
  EXPECT_THAT(job(failing_).held, IsEmpty());
  // The task has its own id by now.
  EXPECT_EQ(job(array_).array_tasks, "1,3-4%2");
  std::uint32_t task = 0;
  for (const Job& one : jobs_)
    if (one.array == array_ && one.array_tasks == "2") task = one.key.job;
  ASSERT_NE(task, 0U);
  ASSERT_TRUE(wait_phase(task, JobPhase::Running));
  EXPECT_EQ(job(task).held.at(0).node, "n1");
  ASSERT_TRUE(wait_phase(trapping_, JobPhase::Running));
  EXPECT_EQ(job(trapping_).held.at(0).gres.at(0).count, 1);
}

void Conformance::reads_nodes() {
  const Node full = node("n3");
  EXPECT_THAT(nodes_, SizeIs(4));
  EXPECT_TRUE(full.is_usable()) << full.state;
  EXPECT_EQ(full.cpus, 32);
  EXPECT_EQ(full.cpus_held, 8);
  EXPECT_EQ(full.sockets, 2);
  EXPECT_EQ(full.memory_mib, 256'000);
  EXPECT_EQ(full.memory_held_mib, 8000);
  EXPECT_THAT(full.partitions, ElementsAre("main"));
  EXPECT_THAT(full.features, ElementsAre("a100"));
  EXPECT_THAT(full.gres, Contains(GresCount{"gpu", "a100", 8}));
  EXPECT_THAT(full.gres_held, Contains(GresCount{"gpu", "a100", 8, {0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(node("n1").state, "MIXED");
  cluster_->run({"scontrol", "update", "nodename=n2", "state=drain", "reason=test State=IDLE"});
  EXPECT_FALSE(node("n2").is_usable()) << node("n2").state;
  EXPECT_EQ(node("n2").reason, "test State=IDLE");
  const auto resumed = link_->resume_node("n2");
  ASSERT_TRUE(resumed) << resumed.error().text;
  // It is asked whether it is there, and answers soon.
  for (int tries = 0; tries < 300 && !node("n2").is_usable(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  EXPECT_TRUE(node("n2").is_usable()) << node("n2").state;
}

// Because a poll every second must cost nothing when nothing happens.
void Conformance::reads_what_does_not_change() {
  for (int tries = 0; tries < 100; ++tries) {
    const auto read = link_->jobs();
    ASSERT_TRUE(read) << read.error().text;
    if (!*read) return;
    jobs_ = **read;
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
  FAIL() << "every reading tells everything anew";
}

void Conformance::changes() {
  ASSERT_TRUE(link_->release(ref(later_)));
  ASSERT_TRUE(wait(later_, [](const Job& one) { return one.priority > 0; }));
  ASSERT_TRUE(link_->hold(ref(later_)));
  ASSERT_TRUE(wait(later_, [](const Job& one) { return one.priority == 0; }));
  ASSERT_TRUE(link_->set_time_limit(ref(gang_), 3601));
  ASSERT_TRUE(wait(gang_, [](const Job& one) { return one.time_limit == 3660; }));
  ASSERT_TRUE(link_->set_time_limit(ref(gang_), 0));
  ASSERT_TRUE(wait(gang_, [](const Job& one) { return one.time_limit == 0; }));
  const std::string comment = "waits: \"3\" jobs 'before' it | $(x)\t\\n \xc3\xa4";
  const auto commented = link_->set_admin_comment(ref(gang_), comment);
  ASSERT_TRUE(commented) << commented.error().text;
  ASSERT_TRUE(wait(gang_, [&](const Job& one) { return one.admin_comment == comment; }));
  EXPECT_EQ(job(gang_).comment, kHostile);  // the user's own is left alone
}

void Conformance::signals() {
  const auto noted = [&](std::string_view wanted) {
    for (int tries = 0; tries < 600; ++tries) {
      std::ifstream file(cluster_->path() + "/signals");
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find(wanted) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return false;
  };
  ASSERT_TRUE(noted("ready"));
  const auto to_script = link_->signal_script(ref(trapping_), SIGUSR2);
  ASSERT_TRUE(to_script) << to_script.error().text;
  EXPECT_TRUE(noted("script"));
  EXPECT_EQ(job(trapping_).phase, JobPhase::Running);  // which the other shell would not survive
  const auto to_all = link_->signal(ref(trapping_), SIGUSR1);
  ASSERT_TRUE(to_all) << to_all.error().text;
  EXPECT_TRUE(noted("child"));
}

void Conformance::requeues() {
  const RunKey before = job(trapping_).key;
  const auto requeued = link_->requeue_held(ref(trapping_));
  ASSERT_TRUE(requeued) << requeued.error().text;
  ASSERT_TRUE(wait(trapping_, [](const Job& one) {
    return one.phase == JobPhase::Pending && !one.completing && one.priority == 0;
  }));
  const Job waiting = job(trapping_);
  EXPECT_EQ(waiting.key.restarts, before.restarts + 1);
  EXPECT_GE(waiting.key.submitted, before.submitted);
  EXPECT_THAT(waiting.held, IsEmpty());
  EXPECT_EQ(waiting.reason, "job requeued in held state");
  // A node that did not hold its last run may have it at once.
  const auto placed = link_->place(ref(trapping_), {.nodes = {"n2"}, .begin_now = true});
  ASSERT_TRUE(placed) << placed.error().text;
  ASSERT_TRUE(wait_phase(trapping_, JobPhase::Running));
  EXPECT_EQ(job(trapping_).held.at(0).node, "n2");
  EXPECT_NE(job(trapping_).key, before);
}

void Conformance::suspends() {
  const auto suspended = link_->suspend(ref(gang_));
  ASSERT_TRUE(suspended) << suspended.error().text;
  ASSERT_TRUE(wait_phase(gang_, JobPhase::Suspended));
  EXPECT_EQ(job(gang_).gpus(), 16);  // it keeps them
  EXPECT_THAT(job(gang_).held, SizeIs(2));
  ASSERT_TRUE(link_->resume(ref(gang_)));
  ASSERT_TRUE(wait_phase(gang_, JobPhase::Running));
}

void Conformance::refuses() {
  const auto why = [](const Linked<void>& done) {
    EXPECT_FALSE(done);
    return done ? Refusal::Other : done.error().refusal;
  };
  EXPECT_EQ(why(link_->hold("99999")), Refusal::NoSuchJob);
  EXPECT_EQ(why(link_->place("99999", {.nodes = {"n1"}})), Refusal::NoSuchJob);
  EXPECT_FALSE(link_->place(ref(gang_), {.nodes = {"n1", "n2"}}));  // it runs on others
  EXPECT_EQ(why(link_->resume(ref(gang_))), Refusal::WrongState);
  EXPECT_EQ(why(link_->suspend(ref(later_))), Refusal::WrongState);
  EXPECT_EQ(why(link_->hold(ref(failing_))), Refusal::WrongState);
  EXPECT_EQ(why(link_->place(ref(later_), {.nodes = {"nowhere"}})), Refusal::Other);
  poll();
  EXPECT_EQ(job(later_).priority, 0U);  // what could not be placed is not released
  const auto cancelled = link_->cancel(ref(gang_));
  ASSERT_TRUE(cancelled) << cancelled.error().text;
  ASSERT_TRUE(wait_phase(gang_, JobPhase::Cancelled));
}

void Conformance::reads_the_rest() {
  const auto version = link_->version();
  ASSERT_TRUE(version) << version.error().text;
  EXPECT_GE(*version, (Version{22, 5, 0}));
  const auto partitions = link_->partitions();
  ASSERT_TRUE(partitions) << partitions.error().text;
  EXPECT_TRUE(partitions->at(0).is_up && partitions->at(0).is_default);
  EXPECT_THAT(partitions->at(0).nodes, ElementsAre("n1", "n2", "n3", "n4"));
  const auto switches = link_->topology();
  ASSERT_TRUE(switches) << switches.error().text;
  EXPECT_THAT(*switches, SizeIs(2));
  auto reservations = link_->reservations();
  ASSERT_TRUE(reservations) << reservations.error().text;
  EXPECT_THAT(*reservations, IsEmpty());
  cluster_->run({"scontrol", "create", "reservation", "reservationname=r1", "starttime=now+1hour",
                 "duration=60", "nodes=n1", "users=root", "flags=ignore_jobs"});
  reservations = link_->reservations();
  ASSERT_TRUE(reservations) << reservations.error().text;
  ASSERT_THAT(*reservations, SizeIs(1));
  EXPECT_THAT(reservations->at(0).nodes, ElementsAre("n1"));
  EXPECT_FALSE(reservations->at(0).is_active);
  const auto config = link_->config();
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->value("ClusterName"), "test");
  EXPECT_THAT(config->value("AuthInfo"), HasSubstr("cred_expire=5"));
}

void Conformance::survives_a_killed_controller() {
  cluster_->kill_controller();
  const auto read = link_->jobs();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().refusal, Refusal::Unreachable) << read.error().text;
  const auto held = link_->hold(ref(later_));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().refusal, Refusal::Unreachable) << held.error().text;
  cluster_->start_controller();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  Linked<std::optional<std::vector<Job>>> again = link_->jobs();
  while (!again && std::chrono::steady_clock::now() < end) {
    EXPECT_EQ(again.error().refusal, Refusal::Unreachable) << again.error().text;
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    again = link_->jobs();
  }
  ASSERT_TRUE(again) << again.error().text;
  ASSERT_TRUE(again->has_value()) << "a reading after a failure is whole";
  jobs_ = **again;
  EXPECT_EQ(job(array_).array_tasks, "1,3-4%2");
}

void Conformance::conform() {
  for (void (Conformance::*part)() :
       {&Conformance::submit_all, &Conformance::reads_what_waits,
        &Conformance::places_and_reads_what_runs, &Conformance::reads_nodes,
        &Conformance::reads_what_does_not_change, &Conformance::changes, &Conformance::signals,
        &Conformance::requeues, &Conformance::suspends, &Conformance::refuses,
        &Conformance::reads_the_rest, &Conformance::survives_a_killed_controller}) {
    (this->*part)();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Conformance, OfALink) { conform(); }

// Because advising needs no rights, and commanding does.
class WithoutRights : public Conformance {};
INSTANTIATE_TEST_SUITE_P(OnSlurm, WithoutRights,
                         testing::Combine(testing::Values("bookworm", "trixie", "forky"),
                                          testing::Values("Text")),
                         [](const auto& parameter) {
                           return std::string("On") + std::get<0>(parameter.param);
                         });
TEST_P(WithoutRights, EverythingIsReadAndNothingDone) {
  const std::uint32_t id = cluster_->submit({"--gres=gpu:1", "--wrap", "sleep 600"});
  const std::string folder = cluster_->path() + "/user";
  std::filesystem::create_directory(folder);
  for (const char* command : {"squeue", "scontrol", "scancel"}) {
    const std::string path = folder + '/' + command;
    std::ofstream(path) << "#!/bin/sh\nexec " << cluster_->commands() << "/slurm-in -u games "
                        << command << " \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::all);
  }
  TextLink user({.directory = folder});
  const auto read = user.jobs();
  ASSERT_TRUE(read) << read.error().text;
  ASSERT_THAT(**read, SizeIs(1));
  EXPECT_EQ((**read)[0].gpus(), 1);
  ASSERT_TRUE(user.nodes());
  ASSERT_TRUE(user.topology());
  for (const Linked<void>& done :
       {user.hold(ref(id)), user.place(ref(id), {.nodes = {"n1"}}), user.cancel(ref(id))}) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().refusal, Refusal::NotAllowed) << done.error().text;
  }
}

}  // namespace
}  // namespace berth::slurm
