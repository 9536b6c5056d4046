// Training code that speaks the protocol badly: floods, nonsense, lines that never end, requests
// that nobody answers. The scheduler goes on, the jobs go on, and who does not answer is treated as
// one that says nothing.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include <unistd.h>

#include <fmt/format.h>

#include "e2e/serve/served.h"

namespace berth::test {
namespace {

using nlohmann::json;

/// Says hello, then what the mode is about, for ever; writes a line whenever it was cut off.
constexpr const char* kBadCode = R"py(#!/usr/bin/env python3
import json, os, socket, sys, time
mode, out = MODE, open(OUT, "a", buffering=1)
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["BERTH_TRAINING_SOCKET"])
    hello = {"type": "hello", "v": 1, "job": int(os.environ["BERTH_JOB_ID"]),
             "token": os.environ["BERTH_TRAINING_TOKEN"], "resizes": True}
    s.sendall((json.dumps(hello) + "\n").encode())
    return s
s = connect()
print("start", file=out)
def say(text):
    global s
    try:
        s.sendall(text)
    except OSError:
        print("cut", file=out)
        time.sleep(0.05)
        s = connect()
nonsense = [b'{"type":"report","iteration":NaN}\n', b'{"type":"report","iteration":-5}\n',
            b'{"type":"report","iteration":1e308,"loss":-1e308,"seconds":-3}\n',
            b'{"type":"report","iteration":100}\n', b'{"type":"report","iteration":3}\n',
            b'{"type":"resized","id":77,"done":true}\n', b'[]\n', b'\xff\xfe\n',
            b'{"type":"checkpointed","iteration":-1,"path":"/"}\n']
step = 0
while True:
    step += 1
    if mode == "flood":
        say(b'{"type":"report","iteration":%d,"loss":1}\n' % step * 1000)
    elif mode == "nonsense":
        say(nonsense[step % len(nonsense)])
        time.sleep(0.01)
    elif mode == "endless":
        say(b"x" * 65536)
    else:  # reports well, hears nothing
        say(b'{"type":"report","iteration":%d,"seconds":0.05,"loss":1}\n' % step)
        time.sleep(0.05)
)py";

json bad_job(const Served& served, const std::string& mode) {
  std::string code = kBadCode;
  const auto put = [&](const std::string& word, const std::string& value) {
    code.replace(code.find(word), word.size(), "\"" + value + "\"");
  };
  put("MODE", mode);
  put("OUT", served.folder() / ("out/" + mode));
  return {{"script", code},
          {"name", mode},
          {"gpus", 1},
          {"workdir", served.folder().path()},
          {"output", served.folder() / ("out/" + mode + ".out")},
          {"grace_seconds", 1}};
}

double processor_seconds(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

TEST(BadTraining, CostsTheSchedulerLittleAndTheJobNothing) {
  Served served;
  std::ofstream(served.config()) << "cluster: 1x4\npolicy: fifo-skip\n";
  ASSERT_TRUE(served.begin());
  std::vector<std::uint64_t> jobs;
  for (const char* mode : {"flood", "nonsense", "endless"}) {
    const auto job = served.submit(bad_job(served, mode));
    ASSERT_TRUE(job);
    jobs.push_back(*job);
  }
  const auto cuts = [&](const std::string& mode) {
    return lines_by_word(served.written_by(mode))["cut"];
  };
  // Ten times each: then whoever floods has had its second more than once.
  const double before = processor_seconds(served.pid());
  const auto begun = std::chrono::steady_clock::now();
  for (const char* mode : {"flood", "endless"})
    ASSERT_TRUE(eventually([&] { return cuts(mode) >= 10; })) << mode;
  ASSERT_TRUE(eventually([&] { return cuts("nonsense") >= 1; }));
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
  const double spent = processor_seconds(served.pid()) - before;
  EXPECT_LT(spent, 0.25 + 0.5 * passed.count());
  for (const std::uint64_t job : jobs) {
    EXPECT_EQ(served.state_of(job), "running");
    EXPECT_EQ(served.view_of(job).value("attempts", 1), 1);
  }
  // Each is named once, however often it was cut off.
  for (const std::uint64_t job : jobs) {
    const std::string said = fmt::format("a job reports what makes no sense job={} ", job);
    const std::string log = served.log();
    ASSERT_NE(log.find(said), std::string::npos) << job;
    EXPECT_EQ(log.find(said), log.rfind(said)) << job;
  }
  EXPECT_NE(served.log().find("cut off: more than"), std::string::npos);
  const auto quick = served.submit(served.job("quick", "0.1"));
  ASSERT_TRUE(quick);
  EXPECT_TRUE(eventually([&] { return served.is_over(*quick); }));
}

TEST(BadTraining, ACheckpointThatNeverComesIsLoggedAndNotWaitedFor) {
  Served served;
  std::ofstream(served.config()) << "cluster: 1x1\npolicy: priority\nset: {preempt_classes: all}\n"
                                    "min_run: 0\ntraining_answer: 1s\nmax_user_priority: 9\n";
  ASSERT_TRUE(served.begin());
  const auto silent = served.submit(bad_job(served, "silent"));
  ASSERT_TRUE(silent);
  ASSERT_TRUE(eventually([&] { return served.view_of(*silent)["training"].is_object(); }));
  json urgent = served.job("urgent", "0.1");
  urgent["priority"] = 9;
  const auto job = served.submit(urgent);
  ASSERT_TRUE(job);
  ASSERT_TRUE(eventually([&] { return served.is_over(*job); }));
  EXPECT_EQ(served.state_of(*job), "completed");
  const std::string log = served.log();
  const std::string said = "code that was asked to save and leave is still there";
  const std::size_t first = log.find(said);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find(said, first + 1), std::string::npos);
  EXPECT_TRUE(eventually([&] {
    return lines_by_word(served.written_by("silent"))["start"] == 2;  // goes on afterwards
  }));
}

}  // namespace
}  // namespace berth::test
