// The real scheduler in ordinary and in bad circumstances.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fmt/format.h>

#include "api/raw_client.h"
#include "e2e/serve/served.h"

namespace berth::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(Serve, ASecondOneOnTheSameDirectoryIsRefused) {
  Served served;
  ASSERT_TRUE(served.begin());
  const Ran second = berth(served.folder(), {"serve", "--state-dir", served.state(), "--socket",
                                             served.folder() / "other.sock", "--cluster", "1x1"});
  EXPECT_EQ(second.exit, 1);
  EXPECT_NE(second.err.find("another"), std::string::npos) << second.err;
  EXPECT_TRUE(served.answers());
}

TEST(Serve, JobsGoOnWhileItIsStoppedAndAreAdopted) {
  Served served;
  ASSERT_TRUE(served.begin());
  const auto job = served.submit(served.job("long", "1.5", 2));
  ASSERT_TRUE(job);
  ASSERT_TRUE(eventually([&] { return lines_by_word(served.written_by("long"))["start"] == 1; }));
  EXPECT_EQ(served.stop(), 0);
  EXPECT_EQ(served.shims(), 1U);
  ASSERT_TRUE(served.begin());
  ASSERT_TRUE(eventually([&] { return served.is_over(*job); }));
  EXPECT_EQ(served.state_of(*job), "completed");
  EXPECT_EQ(lines_by_word(served.written_by("long"))["start"], 1);
}

TEST(Serve, ThePolicyChangesWhileJobsRunAndSurvivesARestart) {
  Served served;
  ASSERT_TRUE(served.begin());
  const auto job = served.submit(served.job("steady", "1", 2));
  ASSERT_TRUE(eventually([&] { return served.state_of(*job) == "running"; }));
  const auto policy = [&] {
    const auto reply = served.ask("GET", "/api/v1/cluster");
    return reply ? json::parse(reply->body).at("policy").get<std::string>() : "";
  };
  const auto set = served.ask("PUT", "/api/v1/policy", {{"policy", "srtf"}});
  ASSERT_TRUE(set);
  EXPECT_EQ(set->status, 200) << set->body;
  EXPECT_TRUE(eventually([&] { return policy() == "srtf"; }));
  EXPECT_EQ(served.ask("PUT", "/api/v1/policy", {{"policy", "no-such"}})->status / 100, 4);
  served.kill_now();
  ASSERT_TRUE(served.begin());
  EXPECT_TRUE(eventually([&] { return policy() == "srtf"; }));
  ASSERT_TRUE(eventually([&] { return served.is_over(*job); }));
  EXPECT_EQ(lines_by_word(served.written_by("steady"))["start"], 1);
}

TEST(Serve, ReadsItsConfigurationAgainUnlessItIsWrong) {
  Served served;
  ASSERT_TRUE(served.begin());
  const auto job = served.submit(served.job("calm", "1.5"));
  ASSERT_TRUE(eventually([&] { return served.state_of(*job) == "running"; }));
  std::ofstream(served.config()) << "cluster: 1x4\npolicy: [not a name\n";
  served.hang_up();
  EXPECT_TRUE(eventually(
      [&] { return served.log().find("the configuration is wrong") != std::string::npos; }));
  EXPECT_TRUE(served.answers());
  std::ofstream(served.config()) << "cluster: 1x4\npolicy: srtf\n";
  served.hang_up();
  EXPECT_TRUE(eventually([&] {
    const auto reply = served.ask("GET", "/api/v1/cluster");
    return reply && json::parse(reply->body).at("policy") == "srtf";
  }));
  ASSERT_TRUE(eventually([&] { return served.is_over(*job); }));
  EXPECT_EQ(served.state_of(*job), "completed");
  EXPECT_EQ(lines_by_word(served.written_by("calm"))["start"], 1);
}

// Both have had more than 1 GPU-second of service and stand in the lower queue, where whoever runs
// goes on. An engine that began anew would find out again, by stopping one for the other.
TEST(Serve, AConfigurationThatSaysTheSameStopsNobody) {
  const auto config = [](std::string_view more) {
    return fmt::format("cluster: 1x2\npolicy: tiresias-l\nset: {{thresholds: 1}}\n{}", more);
  };
  Served served;
  std::ofstream(served.config()) << config("min_run: 0\n");
  ASSERT_TRUE(served.begin());
  const auto count = [&](const std::string& what) {
    const std::string log = served.log();
    int found = 0;
    for (std::size_t at = log.find(what); at != std::string::npos; at = log.find(what, at + 1))
      ++found;
    return found;
  };
  const auto first = served.submit(served.job("first", "600", 2));
  ASSERT_TRUE(eventually([&] { return served.state_of(*first) == "running"; }));
  const auto second = served.submit(served.job("second", "600", 2));
  ASSERT_TRUE(first && second);
  // First the newcomer takes the devices of the one that has had its second, then it falls as well.
  ASSERT_TRUE(eventually([&] { return served.view_of(*first).value("preemptions", 0) == 1; }));
  ASSERT_TRUE(eventually([&] { return served.view_of(*second).value("preemptions", 0) == 1; }));
  ASSERT_TRUE(eventually([&] { return served.state_of(*first) == "running"; }));
  const int preempted = count("job preempted");
  int reloads = 0;
  for (const char* more : {"min_run: 0\n", "min_run: 0\nlog_level: debug\n", "min_run: 7s\n",
                           "min_run: 0\nmax_jobs: 7\n"}) {
    std::ofstream(served.config()) << config(more);
    served.hang_up();
    ++reloads;
    ASSERT_TRUE(eventually([&] { return count("the engine goes on: nothing") == reloads; }))
        << more;
  }
  // A pass that begins after all these has decided with what they left behind.
  ASSERT_EQ(
      served.ask("PUT", "/api/v1/shares", {{"kind", "user"}, {"name", "nobody"}, {"shares", 2}})
          ->status,
      200);
  EXPECT_EQ(count("job preempted"), preempted);
  EXPECT_EQ(served.state_of(*first), "running");
  EXPECT_EQ(count("a new engine takes over"), 0);
  // What an engine is made of is another matter.
  std::ofstream(served.config()) << config("min_run: 0\nplacement: first-fit\n");
  served.hang_up();
  EXPECT_TRUE(eventually([&] { return count("a new engine takes over") == 1; }));
}

/// Numbers of what this process has open beyond its three streams, and what they are.
std::map<int, std::string> descriptors_of(pid_t pid) {
  std::map<int, std::string> found;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    const int number = std::stoi(entry.path().filename().string());
    std::error_code ignored;  // it may be closed by now
    if (number > 2) found[number] = fs::read_symlink(entry.path(), ignored).string();
  }
  return found;
}

bool closes_on_exec(pid_t pid, int descriptor) {
  std::ifstream info(fmt::format("/proc/{}/fdinfo/{}", pid, descriptor));
  std::string key;
  std::string flags;
  while (info >> key && key != "flags:") std::getline(info, flags);
  if (!(info >> flags)) return true;  // it was closed meanwhile
  return (std::stoul(flags, nullptr, 8) & static_cast<unsigned long>(O_CLOEXEC)) != 0;
}

// What it listens on, who is connected, its journal: nothing of it reaches a program that it runs,
// or a job could answer in the scheduler's name and keep its port when it is gone.
TEST(Serve, NoProgramThatItRunsHasADescriptorOfIt) {
  Served served;
  std::ofstream(served.config()) << "cluster: 1x2\nlisten: 127.0.0.1:0\n";
  served.set_before([] { return ::close_range(3, ~0U, 0) == 0; });  // nothing of the test
  ASSERT_TRUE(served.begin());
  auto connected = testing::RawClient::unix_socket(served.socket());
  ASSERT_TRUE(connected.ask("GET /healthz HTTP/1.1\r\nHost: berth\r\n\r\n"));
  const auto job = served.submit(served.job("open", "600"));
  ASSERT_TRUE(job);
  ASSERT_TRUE(eventually([&] { return lines_by_word(served.written_by("open"))["start"] == 1; }));
  const auto own = descriptors_of(served.pid());
  EXPECT_GE(std::ranges::count_if(
                own, [](const auto& each) { return each.second.starts_with("socket:"); }),
            4);  // two listeners, training code, a connection
  for (const auto& [number, what] : own)
    EXPECT_TRUE(closes_on_exec(served.pid(), number)) << number << " is " << what;
  const pid_t program = served.view_of(*job).at("pid").get<pid_t>();
  for (const auto& [number, what] : descriptors_of(program))
    EXPECT_TRUE(what.starts_with(served.folder().path())) << number << " is " << what;  // its locks
}

TEST(Serve, EndsAJobThatForksAndIgnoresSignals) {
  Served served;
  ASSERT_TRUE(served.begin());
  const std::string pids = served.folder() / "pids";
  const std::string script = fmt::format(R"(#!/bin/bash
trap '' TERM INT HUP
setsid bash -c 'trap "" TERM INT HUP; echo $$ >> {0}; while :; do sleep 1; done' &
(bash -c 'trap "" TERM; echo $$ >> {0}; while :; do sleep 1; done' &)
echo $$ >> {0}
while :; do sleep 1; done
)",
                                         pids);
  const auto job = served.submit(
      {{"script", script}, {"workdir", served.folder().path()}, {"gpus", 4}, {"grace_seconds", 1}});
  ASSERT_TRUE(job);
  const auto who = [&] {
    std::vector<pid_t> found;
    std::ifstream in(pids);
    for (pid_t pid = 0; in >> pid;) found.push_back(pid);
    return found;
  };
  ASSERT_TRUE(eventually([&] { return who().size() == 3; }));
  const auto next = served.submit(served.job("next", "0.05", 4));  // waits for its devices
  EXPECT_EQ(served.ask("DELETE", fmt::format("/api/v1/jobs/{}", *job))->status / 100, 2);
  ASSERT_TRUE(eventually([&] { return served.is_over(*job); }));
  EXPECT_EQ(served.state_of(*job), "cancelled");
  EXPECT_EQ(served.view_of(*job).value("reason", "").find("cancelled by "), 0U);  // and by whom
  for (const pid_t pid : who()) EXPECT_NE(::kill(pid, 0), 0) << pid << " is left";
  ASSERT_TRUE(eventually([&] { return served.is_over(*next); }));
  EXPECT_EQ(served.state_of(*next), "completed");
}

TEST(Serve, NonsenseIsAnsweredAndHarmsNobody) {
  Served served;
  ASSERT_TRUE(served.begin());
  const auto job = served.submit(served.job("bystander", "0.5"));
  const auto status = [&](const std::string& bytes) {
    auto client = testing::RawClient::unix_socket(served.socket());
    const auto answer = client.ask(bytes);
    return answer ? answer->status : 0;
  };
  const auto post = [&](const std::string& body) {
    return status(
        fmt::format("POST /api/v1/jobs HTTP/1.1\r\nHost: b\r\nContent-Type: "
                    "application/json\r\nContent-Length: {}\r\n\r\n{}",
                    body.size(), body));
  };
  EXPECT_EQ(status("NONSENSE\r\n\r\n"), 400);
  EXPECT_EQ(status("GET /no/such HTTP/1.1\r\nHost: b\r\n\r\n"), 404);
  EXPECT_EQ(post("{"), 400);
  EXPECT_EQ(post("[]"), 400);
  EXPECT_EQ(post(std::string(64, '[')), 400);
  EXPECT_EQ(post(R"({"command":["true"],"workdir":"/","gpus":-3})"), 422);
  EXPECT_EQ(post(R"({"command":["true"],"workdir":"/","gpus":4000})"), 422);
  EXPECT_EQ(post(R"({"command":["true"],"workdir":"relative","gpus":1})"), 422);
  EXPECT_EQ(status(fmt::format("GET /{} HTTP/1.1\r\nHost: b\r\n\r\n", std::string(9000, 'x'))),
            414);
  EXPECT_EQ(status("POST /api/v1/jobs HTTP/1.1\r\nHost: b\r\nContent-Type: application/json\r\n"
                   "Content-Length: 99999999999\r\n\r\n"),
            413);
  // A program that does not exist is the job's own failure, told in words.
  const auto missing = served.submit(
      {{"command", {"/no/such/program"}}, {"workdir", served.folder().path()}, {"gpus", 1}});
  ASSERT_TRUE(missing);
  ASSERT_TRUE(eventually([&] { return served.is_over(*missing); }));
  EXPECT_EQ(served.state_of(*missing), "failed");
  ASSERT_TRUE(eventually([&] { return served.is_over(*job); }));
  EXPECT_EQ(served.state_of(*job), "completed");
}

/// A small disk in memory, gone with the test.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    fs::create_directory(path_);
    is_there_ = ::mount("berth-test", path_.c_str(), "tmpfs", 0, "size=140m,mode=0755") == 0;
  }
  ~SmallDisk() {
    if (is_there_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }
  /// Takes up to so many bytes; all there are if there are fewer.
  void fill(off_t bytes) const {
    const int file = ::open((path_ + "/filler").c_str(), O_CREAT | O_WRONLY, 0600);
    for (off_t step = bytes; step >= 4096; step /= 2) {
      off_t at = ::lseek(file, 0, SEEK_END);
      while (at + step <= bytes && ::posix_fallocate(file, at, step) == 0) at += step;
    }
    ::close(file);
  }
  void empty() const { fs::remove(path_ + "/filler"); }

 private:
  std::string path_;
  bool is_there_ = false;
};

TEST(Serve, AFullDiskRefusesNewJobsAndLosesNoEnd) {
  const TempFolder place;
  const SmallDisk disk(place / "disk");
  if (!disk.is_there()) GTEST_SKIP() << "needs root: a small disk";
  Served served{place / "disk/state"};
  ASSERT_TRUE(served.begin());
  const auto job = served.submit(served.job("first", "2"));
  ASSERT_TRUE(job);
  ASSERT_TRUE(eventually([&] { return served.state_of(*job) == "running"; }));
  disk.fill(off_t{30} << 20);  // less is left than what is kept for ends
  const auto refused = served.ask("POST", "/api/v1/jobs", served.job("second", "0.1"), "k2");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503) << refused->body;
  EXPECT_NE(refused->body.find("no space left"), std::string::npos) << refused->body;
  // Said once a minute, counted each time.
  EXPECT_EQ(served.ask("POST", "/api/v1/jobs", served.job("third", "0.1"))->status, 503);
  const std::string log = served.log(), said = "no space left for the journal";
  ASSERT_NE(log.find(said), std::string::npos) << log;
  EXPECT_EQ(log.find(said, log.find(said) + 1), std::string::npos) << log;
  EXPECT_NE(
      served.ask("GET", "/metrics")->body.find("berth_troubles_total{cause=\"journal-space\"} 2\n"),
      std::string::npos);
  ASSERT_TRUE(eventually([&] { return served.is_over(*job); }));
  EXPECT_EQ(served.state_of(*job), "completed");
  disk.empty();
  const auto second = served.submit(served.job("second", "0.1"), "k2");
  ASSERT_TRUE(second);
  EXPECT_TRUE(eventually([&] { return served.is_over(*second); }));
}

TEST(Serve, NotAByteLeftAndStillNothingIsLost) {
  const TempFolder place;
  const SmallDisk disk(place / "disk");
  if (!disk.is_there()) GTEST_SKIP() << "needs root: a small disk";
  Served served{place / "disk/state"};
  ASSERT_TRUE(served.begin());
  const auto job = served.submit(served.job("first", "1"));
  ASSERT_TRUE(job);
  ASSERT_TRUE(eventually([&] { return served.state_of(*job) == "running"; }));
  disk.fill(off_t{200} << 20);
  ASSERT_TRUE(eventually([&] { return served.shims() == 0; }));  // its record had its space
  // Whether the journal could take it or the scheduler had to leave: it is found afterwards.
  disk.empty();
  if (!eventually([&] { return !served.is_alive() || served.is_over(*job); })) FAIL();
  if (!served.is_alive()) {
    ASSERT_TRUE(served.begin());
  }
  ASSERT_TRUE(eventually([&] { return served.is_over(*job); })) << served.state_of(*job);
  EXPECT_EQ(served.state_of(*job), "completed");
  EXPECT_EQ(lines_by_word(served.written_by("first"))["start"], 1);
}

}  // namespace
}  // namespace berth::test
