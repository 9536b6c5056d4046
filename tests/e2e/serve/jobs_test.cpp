// What a job of the real scheduler gets, and what is said of it, on machines as they are: run
// directories that are mounted noexec, a scheduler with limits of its own, jobs that turn against
// their shim, files that somebody removes.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "e2e/serve/served.h"
#include "exec/account.h"
#include "exec/user_limits.h"

namespace berth::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr unsigned kMountFlags = MS_NOEXEC | MS_NOSUID | MS_NODEV;

/// A file system of its own on the run directory, as Debian and Ubuntu mount /run. Nobody else sees
/// it, and it goes with the last process of the scheduler and its jobs.
bool mount_run_dir(const std::string& run_dir) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("berth-test", run_dir.c_str(), "tmpfs", kMountFlags, "size=8m,mode=0711") == 0;
}

/// Whether this machine lets us, tried in a process that goes.
bool can_mount() {
  const TempFolder place;
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(mount_run_dir(place.path()) ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// In the scheduler's own view of the file systems.
bool in_its_place(pid_t process, const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int place = ::open(fmt::format("/proc/{}/ns/mnt", process).c_str(), O_RDONLY);
    std::_Exit(::setns(place, CLONE_NEWNS) == 0 && body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class Jobs : public ::testing::Test {
 protected:
  std::uint64_t submit(const json& spec) {
    json whole = spec;
    if (!whole.contains("workdir")) whole["workdir"] = served.folder().path();
    if (!whole.contains("gpus")) whole["gpus"] = 1;
    const auto job = served.submit(whole);
    EXPECT_TRUE(job) << whole.dump();
    return job.value_or(0);
  }
  json ended(std::uint64_t job) {
    EXPECT_TRUE(eventually([&] { return served.is_over(job); })) << served.view_of(job).dump();
    return served.view_of(job);
  }
  std::string output_of(std::uint64_t job) const {
    return served.folder().read(fmt::format("berth-{}.out", job));
  }
  /// Everything its record says in words, of the job and of its attempts.
  std::string words_of(std::uint64_t job) const { return served.view_of(job).dump(); }
  std::string metrics() const {
    const auto reply = served.ask("GET", "/metrics");
    return reply ? reply->body : "";
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t seen = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++seen;
    return seen;
  }
  std::string run_dir() const { return served.state() + "/jobs"; }

  Served served;
};

class NoexecJobs : public Jobs {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "needs the right to mount a file system in a namespace";
    fs::create_directories(run_dir());
    served.set_before([this] { return mount_run_dir(run_dir()); });
    ASSERT_TRUE(served.begin());
  }
};

TEST_F(NoexecJobs, ScriptsOfEveryInterpreterRun) {
  struct Case {
    std::string script, output;
    std::vector<std::string> arguments = {};
  };
  std::vector<Case> cases{
      {"#!/bin/sh\ngrep -c ' '\"$(dirname \"$0\")\"' tmpfs [^ ]*noexec' /proc/self/mounts\n",
       "1\n"},  // it is where we think it is
      {"#!/bin/sh\necho \"$# $1,$2\"\n", "2 a b,c\n", {"a b", "c"}},
      {"#!/bin/bash -e\nfalse\necho not reached\n", ""},
      {"#! /bin/bash  \necho \"$(basename \"${BASH_SOURCE[0]}\")\" | cut -d. -f1\n", "script\n"},
      {"#!/usr/bin/env -S bash -e -u\necho \"$-\" | grep -c e.*u\n", "1\n"},
      {"#!/bin/cat\nas it is\n", "#!/bin/cat\nas it is\n"},
      {fmt::format("#!/bin/sh {}\n", std::string(0, ' ')) + "echo no end of line",
       "no end of line\n"},
      {fmt::format("#!{}/bin/sh\necho long\n", std::string(1000, '/')), "long\n"}};
  if (fs::exists("/usr/bin/perl"))
    cases.push_back({"#!/usr/bin/perl -w\nprint \"perl $ARGV[0]\\n\";\n", "perl x\n", {"x"}});
  if (fs::exists("/usr/bin/python3"))
    cases.push_back({"#!/usr/bin/python3\nimport sys\nprint('python', sys.argv[1:])\n",
                     "python ['x']\n",
                     {"x"}});
  for (const Case& each : cases) {
    SCOPED_TRACE(each.script.substr(0, 60));
    const auto job = submit({{"script", each.script}, {"command", each.arguments}});
    const json view = ended(job);
    EXPECT_EQ(view.at("state"), each.output.empty() ? "failed" : "completed") << view.dump();
    EXPECT_EQ(output_of(job), each.output);
  }
}

TEST_F(NoexecJobs, TheRecordAndTheOutputNameTheTrueCause) {
  const std::string folder = served.folder().path();
  const auto file = [&](const std::string& name, const std::string& text, unsigned mode) {
    static_cast<void>(served.folder().file(name, text));
    fs::permissions(folder + "/" + name, fs::perms(mode));
    return folder + "/" + name;
  };
  const std::string plain = file("plain", "echo hello\n", 0755);
  const std::string closed = file("closed", "#!/bin/sh\n", 0644);
  const std::string wants = file("wants", "#!/no/such/shell\n", 0755);
  const std::string windows = file("windows", "#!/bin/sh\r\n", 0755);
  struct Case {
    json spec;
    std::string why;
  };
  const auto script = [](const std::string& text) { return json{{"script", text}}; };
  const auto command = [](const std::vector<std::string>& words) {
    return json{{"command", words}};
  };
  const std::string on_noexec = run_dir() + "/tool";
  ASSERT_TRUE(in_its_place(served.pid(), [&] {
    std::ofstream(on_noexec) << "#!/bin/sh\necho no\n";
    return ::chmod(on_noexec.c_str(), 0755) == 0;
  }));
  const std::vector<Case> cases{
      {script("#!/no/such/shell -e\n"), "the script wants /no/such/shell, which does not exist"},
      {script("#!" + closed + "\n"),
       "the script wants " + closed + ", which is not executable (chmod +x it)"},
      {script("#!" + on_noexec + "\n"),
       "the script wants " + on_noexec + ", which lies on a file system that is mounted noexec"},
      {script("#!" + folder + "\n"), "the script wants " + folder + ", which is a directory"},
      {script("#!" + plain + "\n"), "the script wants " + plain +
                                        ", which is neither a program for this machine nor a "
                                        "script with a #! line"},
      {script("#!/bin/bash -e\r\necho\r\n"), "the script has Windows line ends"},
      {script("#! \n"), "the script's first line names no program after #!"},
      {command({on_noexec}), on_noexec + ": lies on a file system that is mounted noexec"},
      {command({plain}), plain + ": is neither a program for this machine nor a script"},
      {command({closed}), closed + ": is not executable (chmod +x it)"},
      {command({wants}), wants + ": wants /no/such/shell, which does not exist"},
      {command({windows}), windows + ": cannot be run: the script has Windows line ends"},
      {command({folder + "/missing"}), folder + "/missing: does not exist"},
      {command({"/bin/echo", std::string(140000, 'x')}), "is given too much: 1400"}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.why);
    const auto job = submit(each.spec);
    EXPECT_EQ(ended(job).at("state"), "failed");
    EXPECT_NE(words_of(job).find(json(each.why).dump().substr(1, each.why.size())),
              std::string::npos)
        << words_of(job).substr(0, 2000);
    EXPECT_NE(output_of(job).find("berth: "), std::string::npos);
    EXPECT_NE(output_of(job).find(each.why), std::string::npos) << output_of(job).substr(0, 500);
  }
  // What says nothing of how it is to be run is refused when it is submitted.
  EXPECT_FALSE(served.submit({{"script", "echo hello\n"}, {"workdir", folder}, {"gpus", 1}}));
}

class BadRunDirectory : public NoexecJobs {
 protected:
  /// Two jobs come to nothing for this reason, and the log says so once.
  std::vector<std::uint64_t> submit_two(const std::string& reason) {
    std::vector<std::uint64_t> jobs;
    for (int i = 0; i < 2; ++i) jobs.push_back(submit({{"command", {"true"}}}));
    for (const auto job : jobs) {
      const std::string end = fmt::format("attempt ended job={} outcome=not-started", job);
      EXPECT_TRUE(eventually([&] { return served.log().find(end) != std::string::npos; })) << job;
    }
    EXPECT_NE(served.log().find(reason), std::string::npos) << served.log();
    EXPECT_EQ(count(served.log(), "a job cannot be started cause=run-directory"), 1U);
    EXPECT_NE(metrics().find("berth_troubles_total{cause=\"run-directory\"} "), std::string::npos)
        << metrics();
    return jobs;
  }
};

TEST_F(BadRunDirectory, AFullOneIsLoggedOnceAndCountedAndJobsRunWhenThereIsRoom) {
  const std::string filler = run_dir() + "/filler";
  ASSERT_TRUE(in_its_place(served.pid(), [&] {
    std::ofstream out(filler);
    while (out << std::string(4096, 'x') << std::flush) {
    }
    return true;
  }));
  const auto jobs = submit_two("No space left on device");
  ASSERT_TRUE(in_its_place(served.pid(), [&] { return ::unlink(filler.c_str()) == 0; }));
  for (const auto job : jobs) EXPECT_EQ(ended(job).at("state"), "completed");
}

TEST_F(BadRunDirectory, AReadOnlyOneIsLoggedOnceAndCounted) {
  ASSERT_TRUE(in_its_place(served.pid(), [&] {
    return ::mount("berth-test", run_dir().c_str(), "tmpfs", kMountFlags | MS_REMOUNT | MS_RDONLY,
                   nullptr) == 0;
  }));
  static_cast<void>(submit_two("Read-only file system"));
}

// Not only the signal, which may come from anybody. Where no group limits memory the job is done.
TEST_F(Jobs, WhoRunsOutOfMemoryIsToldSo) {
  ASSERT_TRUE(served.begin());
  const auto job = submit({{"script",
                            "#!/bin/bash\ngrep -Eq '(memory|^0:).*/berth\\.' /proc/self/cgroup ||"
                            " exit 0\nulimit -v 2000000\nexec tail /dev/zero\n"},
                           {"memory_mib", 64}});
  const json end = ended(job);
  if (end.at("state") == "completed" || output_of(job).find("exhausted") != std::string::npos)
    GTEST_SKIP() << "memory is not limited here";
  EXPECT_EQ(end.at("state"), "out-of-memory");
  EXPECT_TRUE(end.at("reason").get<std::string>().starts_with(
      "out of memory: its limit is 64 MiB, it used up to 6"))
      << end.at("reason");
  EXPECT_NE(output_of(job).find("Detected oom_kill event: OUT OF MEMORY, its limit is 64 MiB"),
            std::string::npos)
      << output_of(job);
}

TEST_F(Jobs, TheSchedulersOwnValuesStayWithIt) {
  constexpr rlim_t kOurs = 700;
  rlimit now{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  served.set_before([&] {
    const rlimit lower{.rlim_cur = kOurs, .rlim_max = now.rlim_max};
    std::ofstream score("/proc/self/oom_score_adj");
    return ::setrlimit(RLIMIT_NOFILE, &lower) == 0 && (score << "300" << std::flush) &&
           ::setpriority(PRIO_PROCESS, 0, 5) == 0;
  });
  ASSERT_TRUE(served.begin());
  const auto job = submit({{"script",
                            "#!/bin/sh\ncat /proc/self/oom_score_adj\nulimit -Sn\nulimit -Hn\n"
                            "nice\numask\ngrep SigBlk /proc/self/status\n"}});
  EXPECT_EQ(ended(job).at("state"), "completed");
  const bool is_root = ::geteuid() == 0;
  FileLimits files{.soft = kOurs, .hard = now.rlim_max};  // who serves themselves keeps theirs
  if (is_root) {
    files = ordinary_file_limits(*find_account("root"));
    files.hard = std::min<std::uint64_t>(files.hard, now.rlim_max);  // where we may not raise it
    files.soft = std::min(files.soft, files.hard);
    EXPECT_NE(files.soft, kOurs);
  }
  const std::string text = output_of(job);
  EXPECT_EQ(text.substr(0, text.find("SigBlk")),
            fmt::format("0\n{}\n{}\n{}\n0022\n", files.soft, files.hard, is_root ? 0 : 5));
  EXPECT_NE(text.find("SigBlk:\t0000000000000000"), std::string::npos) << text;
}

TEST_F(Jobs, WhoIsDoneInTheGraceOfAPreemptionIsNotRunAgain) {
  ASSERT_TRUE(served.begin());
  const auto script = [&](const std::string& name, int code) {
    return fmt::format(
        "#!/bin/bash\ntrap 'echo warned >> {0}/{1}; exit {2}' TERM\necho start >> {0}/{1}\n"
        "[ -e {0}/go ] && exit 0\nwhile :; do sleep 0.02; done\n",
        served.folder().path(), name, code);
  };
  const auto done = submit({{"script", script("done", 0)}, {"grace_seconds", 30}});
  const auto again = submit({{"script", script("again", 143)}, {"grace_seconds", 30}});
  for (const char* name : {"done", "again"})
    ASSERT_TRUE(eventually([&] { return served.folder().has(name); }));
  ASSERT_TRUE(served.folder().has("done"));
  static_cast<void>(served.folder().file("go", ""));
  ASSERT_EQ(served.ask("POST", "/api/v1/nodes/n0/down", json::object())->status / 100, 2);
  EXPECT_EQ(ended(done).at("state"), "completed");
  ASSERT_TRUE(eventually([&] { return served.state_of(again) == "pending"; }));
  ASSERT_EQ(served.ask("POST", "/api/v1/nodes/n0/resume", json::object())->status / 100, 2);
  EXPECT_EQ(ended(again).at("state"), "completed");
  EXPECT_EQ(served.folder().read("done"), "start\nwarned\n");
  EXPECT_EQ(served.folder().read("again"), "start\nwarned\nstart\n");
}

class Traitor : public Jobs {
 protected:
  /// Leaves a process that has nothing of the job but an open file, and kills its shim.
  void leave_a_child_behind(const std::string& user = "") {
    ASSERT_TRUE(served.begin());
    const std::string folder = served.folder().path();
    json spec{{"script", fmt::format(R"(#!/bin/bash
exec 9>> {0}/lock
flock -n 9 || echo TWICE >> {0}/said
echo start >> {0}/said
[ $(grep -c start {0}/said) -gt 2 ] && exit 0
env -i setsid bash -c 'trap "" TERM HUP; echo $$ >> {0}/child; exec -a stray sleep 300' &
while [ ! -s {0}/child ]; do sleep 0.01; done
kill -9 $PPID
sleep 300
)",
                                     folder)}};
    if (!user.empty()) spec["user"] = user;
    const auto job = submit(spec);
    EXPECT_EQ(ended(job).at("state"), "completed") << served.folder().read("said");
    EXPECT_EQ(served.folder().read("said"), "start\nstart\nstart\n");  // never two at once
    std::ifstream children(folder + "/child");
    for (pid_t child = 0; children >> child;) {
      std::ifstream status(fmt::format("/proc/{}/stat", child));
      std::string line;
      std::getline(status, line);
      EXPECT_TRUE(line.empty() || line.find(") Z ") != std::string::npos) << line;
      if (!line.empty()) ::kill(child, SIGKILL);
    }
    EXPECT_NE(served.log().find("its shim was killed"), std::string::npos);
  }
};

TEST_F(Traitor, WhatItLeavesIsEndedBeforeTheJobRunsAgain) { leave_a_child_behind(); }

TEST_F(Traitor, AlsoUnderASchedulerThatIsNotRoots) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: another user";
  constexpr uid_t kSomebody = 47113;  // of whom the machine knows nothing
  const std::string folder = served.folder().path();
  const std::string may_run = fmt::format(
      "setpriv --reuid {0} --regid {0} --clear-groups test -x '{1}'", kSomebody, BERTH_PROGRAM);
  if (std::system(may_run.c_str()) != 0)
    GTEST_SKIP() << "the checkout is closed to other users (scripts/redteam tries it all the same)";
  for (const std::string& path : {folder, folder + "/out", folder + "/locks"})
    ASSERT_EQ(::chown(path.c_str(), kSomebody, kSomebody), 0);
  served.set_before([&] {
    return ::setgroups(0, nullptr) == 0 && ::setresgid(kSomebody, kSomebody, kSomebody) == 0 &&
           ::setresuid(kSomebody, kSomebody, kSomebody) == 0;
  });
  leave_a_child_behind(fmt::format("uid{}", kSomebody));
}

class Removed : public Jobs {
 protected:
  /// A job that has run for a while when its scheduler is killed and its files are removed.
  std::uint64_t run_and_remove() {
    EXPECT_TRUE(served.begin());
    const auto job = submit({{"script", fmt::format("#!/bin/sh\necho $$ > {}/pid\nexec sleep 300\n",
                                                    served.folder().path())},
                             {"gpus", 2},
                             {"requeue", false}});
    EXPECT_TRUE(eventually([&] { return served.state_of(job) == "running"; }));
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_TRUE(eventually([&] {
      return std::chrono::steady_clock::now() - begun > std::chrono::milliseconds(1200);
    }));
    EXPECT_TRUE(
        submit({{"command", {"true"}}}));  // the journal's last word is later than the start
    served.kill_now();
    fs::remove_all(run_dir());
    return job;
  }
};

TEST_F(Removed, AJobThatStillRunsIsChargedUntilItIsEnded) {
  const auto job = run_and_remove();
  ASSERT_TRUE(served.begin());
  const json view = ended(job);
  EXPECT_EQ(view.at("state"), "node-failed");
  EXPECT_EQ(words_of(job).find("never began"), std::string::npos) << words_of(job);
  EXPECT_NE(words_of(job).find("its files in the run directory are gone; it ran until its "
                               "processes were ended"),
            std::string::npos)
      << words_of(job);
  EXPECT_GE(view.at("gpu_seconds").get<double>(), 2.4) << view.dump();  // 2 devices, 1.2 s
}

TEST_F(Removed, OneThatHasGoneMeanwhileIsChargedAsFarAsIsKnown) {
  const auto job = run_and_remove();
  const pid_t pid = std::stoi(served.folder().read("pid"));
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return served.shims() == 0; }));
  fs::remove_all(run_dir());  // the shim has written its record into a new one
  ASSERT_TRUE(served.begin());
  const json view = ended(job);
  EXPECT_EQ(view.at("state"), "node-failed");
  EXPECT_NE(words_of(job).find("its files in the run directory are gone; how and when it ended is "
                               "not known"),
            std::string::npos)
      << words_of(job);
  EXPECT_GE(view.at("gpu_seconds").get<double>(), 2.4) << view.dump();
}

TEST_F(Jobs, DirectoriesHaveTheModesTheyShould) {
  const mode_t mask = ::umask(0);
  const bool begun = served.begin();
  ::umask(mask);
  ASSERT_TRUE(begun);
  const auto mode = [](const std::string& path) {
    struct stat found {};
    EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
    return found.st_mode & 07777U;
  };
  EXPECT_EQ(mode(served.state()), 0700U);
  EXPECT_EQ(mode(run_dir()), 0711U);
}

TEST_F(Jobs, ADirectoryThatWasThereKeepsItsMode) {
  const std::string shared = served.folder() / "shared";
  fs::create_directory(shared);
  fs::permissions(shared, fs::perms(01777));
  std::ofstream(served.config(), std::ios::app)
      << fmt::format("run_dir: {0}/jobs\nsocket: {0}/berth.sock\n", shared);
  served.launch();
  ASSERT_TRUE(eventually([&] { return fs::exists(shared + "/berth.sock"); }));
  EXPECT_EQ(fs::status(shared).permissions(), fs::perms(01777));
  EXPECT_EQ(served.stop(), 0);
}

}  // namespace
}  // namespace berth::test
