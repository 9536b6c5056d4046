// Real training jobs under a real `berth serve` that get more and fewer devices while they train,
// in place or by stop and start, also when the scheduler is killed in the middle: whatever happens
// to them, they learn what they would have learned undisturbed.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "e2e/serve/served.h"
#include "project_paths.h"

namespace berth::test {
namespace {

using nlohmann::json;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 4096> bytes{};
  for (std::size_t got = 0; (got = ::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;)
    text.append(bytes.data(), got);
  return ::pclose(pipe) == 0 ? text : "";
}

std::string line_in(const std::string& text, const std::string& prefix) {
  std::istringstream lines(text);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(prefix)) found = line;
  }
  return found;
}

/// One device, then two, then four while nobody else is there: Pollux gives a job twice what it has
/// had, a round after the other.
class Resized : public testing::Test {
 protected:
  Resized() { configure("training_answer: 20s\nmin_run: 0\n"); }
  void configure(const std::string& more) {
    static_cast<void>(served_.folder().file(
        "serve.yaml", "cluster: 1x4\npolicy: pollux\nset: {interval: 1, restart: 0}\n" + more));
  }
  void begin(const Served::Environment& environment = {}) {
    ASSERT_TRUE(served_.begin(environment));
  }
  [[nodiscard]] std::string out() const { return served_.folder().read("out/train.out"); }
  [[nodiscard]] bool says(const std::string& text) const {
    return out().find(text) != std::string::npos;
  }
  std::uint64_t submit(json command, json more = {}) {
    json spec{{"command", std::move(command)},
              {"workdir", served_.folder() / "out"},
              {"output", "train.out"},
              {"open_mode", "append"},
              {"gpus", 4},
              {"elastic", true},
              {"estimate", 1000}};
    if (!more.is_null()) spec.update(more);
    return served_.submit(spec).value_or(0);
  }
  /// Two devices, for half a second.
  std::uint64_t submit_rival() {
    json spec = served_.job("rival", "0.5", 2);
    spec["estimate"] = 1;
    return served_.submit(spec).value_or(0);
  }
  [[nodiscard]] double iterations_of(std::uint64_t job) const {
    const json view = served_.view_of(job);
    return view.contains("training") && view["training"].is_object()
               ? view["training"].value("iterations", 0.0)
               : 0.0;
  }
  void expect_over(std::uint64_t job) {
    EXPECT_TRUE(eventually([&] { return served_.is_over(job); })) << out();
    EXPECT_EQ(served_.state_of(job), "completed") << out();
  }
  void expect_rival_was_alone(std::uint64_t rival) {
    expect_over(rival);
    auto words = lines_by_word(served_.written_by("rival"));
    EXPECT_EQ(words["end"], 1);
    EXPECT_EQ(words["TWICE"] + words["SHARED"], 0) << served_.written_by("rival");
  }

  Served served_;
};

json trainer(const std::string& in_place = "yes") {
  return {BERTH_TRAINER, "--epochs", "18",           "--samples", "1024",       "--batch", "32",
          "--device-ms", "30",       "--checkpoint", "last.ckpt", "--in-place", in_place};
}

/// The same samples, undisturbed.
std::string undisturbed_loss() {
  static const std::string loss =
      line_in(output_of(BERTH_TRAINER " --epochs 18 --samples 1024 --batch 32"), "loss");
  return loss;
}

TEST_F(Resized, InPlaceAndLearnsTheSameToTheLastBit) {
  begin();
  const std::uint64_t job = submit(trainer());
  ASSERT_TRUE(eventually([&] { return says("goes on with 4 devices"); })) << out();
  EXPECT_TRUE(says("begins with 1 devices")) << out();
  EXPECT_TRUE(says("goes on with 2 devices")) << out();
  EXPECT_EQ(served_.view_of(job)["granted"], 4) << served_.view_of(job).dump(2);
  const std::uint64_t rival = submit_rival();
  expect_rival_was_alone(rival);
  const std::string after = out().substr(out().find("goes on with 4 devices") + 20);
  EXPECT_NE(after.find("goes on with"), std::string::npos) << out();
  expect_over(job);
  EXPECT_EQ(line_in(out(), "loss"), undisturbed_loss());
  EXPECT_EQ(served_.view_of(job)["attempts"], 1);
  EXPECT_FALSE(says("continues")) << out();
}

TEST_F(Resized, ByStopAndStartWhereTheCodeCannotInPlace) {
  begin();
  const std::uint64_t job = submit(trainer("no"));
  ASSERT_TRUE(eventually([&] { return says("begins with 4 devices"); })) << out();
  EXPECT_TRUE(says("begins with 2 devices")) << out();
  const std::uint64_t rival = submit_rival();
  expect_rival_was_alone(rival);
  expect_over(job);
  EXPECT_EQ(line_in(out(), "loss"), undisturbed_loss());
  EXPECT_GE(served_.view_of(job)["attempts"], 3);
}

/// The second growth is on record, and nobody was asked.
TEST_F(Resized, TheSchedulerDiesBeforeItAsks) {
  begin({{"BERTH_CRASH_POINT", "supervisor.asking:2"}});
  const std::uint64_t job = submit(trainer());
  ASSERT_TRUE(eventually([&] { return !served_.is_alive(); }));
  EXPECT_TRUE(says("goes on with 2 devices")) << out();
  EXPECT_FALSE(says("goes on with 4 devices")) << out();
  begin();
  ASSERT_TRUE(eventually([&] { return says("goes on with 4 devices"); })) << out();
  expect_over(job);
  EXPECT_EQ(line_in(out(), "loss"), undisturbed_loss());
  EXPECT_EQ(served_.view_of(job)["attempts"], 1);
}

/// It has left two devices, and nobody has written that down: they stay its own until it has
/// answered again.
TEST_F(Resized, TheSchedulerDiesWithTheAnswer) {
  begin({{"BERTH_CRASH_POINT", "supervisor.answered:3"}});
  const std::uint64_t job = submit(trainer());
  ASSERT_TRUE(eventually([&] { return says("goes on with 4 devices"); })) << out();
  const std::uint64_t rival = submit_rival();
  ASSERT_TRUE(eventually([&] { return !served_.is_alive(); })) << out();
  begin();
  expect_rival_was_alone(rival);
  expect_over(job);
  EXPECT_EQ(line_in(out(), "loss"), undisturbed_loss());
  EXPECT_EQ(served_.view_of(job)["attempts"], 1);
}

TEST_F(Resized, ARigidJobIsLeftAlone) {
  begin();
  const std::uint64_t job = submit(trainer(), {{"elastic", false}, {"gpus", 2}});
  ASSERT_TRUE(eventually([&] { return says("begins with"); })) << out();
  const std::uint64_t rival = submit_rival();
  expect_rival_was_alone(rival);
  expect_over(job);
  EXPECT_TRUE(says("begins with 2 devices")) << out();
  EXPECT_FALSE(says("goes on")) << out();
  EXPECT_EQ(served_.view_of(job)["attempts"], 1);
}

TEST_F(Resized, ProcessesOfAGangAreAsManyAsItsDevices) {
  begin();
  const std::uint64_t job =
      submit({"/bin/sh", "-c",
              "echo rank $RANK of $WORLD_SIZE, $BERTH_TASKS tasks on $CUDA_VISIBLE_DEVICES; "
              "[ $WORLD_SIZE = 4 ] && exit 0; sleep 60"},
             {{"tasks", 4}, {"grace_seconds", 1}});
  expect_over(job);
  EXPECT_TRUE(says("rank 0 of 1, 1 tasks on 0\n")) << out();
  EXPECT_TRUE(says(" of 2, 2 tasks on 0,1\n"))
      << out();  // one may have been stopped before it spoke
  EXPECT_TRUE(says("rank 3 of 4, 4 tasks on 0,1,2,3\n")) << out();
}

/// Holds devices until it is let go.
class Guest {
 public:
  Guest(Served& served, std::string name, int gpus) : served_(served), name_(std::move(name)) {
    const std::string file = served.folder() / ("out/" + name_);
    job_ = served
               .submit({{"command",
                         {"/bin/sh", "-c", "while [ ! -e " + file + " ]; do sleep 0.05; done"}},
                        {"workdir", served.folder() / "out"},
                        {"gpus", gpus},
                        {"estimate", 1000}})
               .value_or(0);
    EXPECT_TRUE(eventually([&] { return served_.state_of(job_) == "running"; })) << name_;
  }
  void let_go() {
    static_cast<void>(served_.folder().file("out/" + name_, ""));
    EXPECT_TRUE(eventually([&] { return served_.is_over(job_); })) << name_;
  }

 private:
  Served& served_;
  std::string name_;
  std::uint64_t job_ = 0;
};

// It has said that it can, and then hears nothing: it is warned, killed and started anew.
TEST_F(Resized, CodeThatDoesNotAnswerIsStoppedAndStarted) {
  configure("training_answer: 1s\nmin_run: 0\n");
  begin();
  Guest three{served_, "three", 3};
  const std::uint64_t job = submit(trainer(), {{"grace_seconds", 1}});
  ASSERT_TRUE(eventually([&] { return iterations_of(job) > 2; })) << out();
  const auto pid = served_.view_of(job).value("pid", 0);
  ASSERT_GT(pid, 0);
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  three.let_go();
  expect_over(job);
  EXPECT_EQ(served_.view_of(job)["attempts"], 2);
  EXPECT_FALSE(says("goes on with 2")) << out();
  EXPECT_EQ(line_in(out(), "loss"), undisturbed_loss());
  EXPECT_NE(served_.log().find("has not answered for 1 s"), std::string::npos);
}

/// The rules that hold for preemptions hold for a size as well.
TEST_F(Resized, NotBeforeItHasRunLongEnoughAndNeverIfItMayNotBePreempted) {
  configure("training_answer: 20s\nmin_run: 1h\n");
  begin();
  Guest two{served_, "two", 2};
  json brief = trainer();
  brief[2] = "5";
  const std::uint64_t job = submit(brief, {{"gpus", 2}});
  const std::uint64_t kept =
      submit({"/bin/sh", "-c", "sleep 1; echo kept $BERTH_GPUS"},
             {{"gpus", 1}, {"gpus_max", 4}, {"preemptible", false}, {"output", "kept.out"}});
  ASSERT_TRUE(eventually([&] { return iterations_of(job) > 2; })) << out();
  two.let_go();
  expect_over(kept);
  EXPECT_EQ(served_.folder().read("out/kept.out"), "kept 1\n");
  expect_over(job);
  EXPECT_FALSE(says("goes on")) << out();
  EXPECT_EQ(served_.view_of(job)["attempts"], 1);
}

// torchrun begins with as many workers as there are devices; they share each batch. Guests leave
// one after the other, each time once the training has got on: no growth comes too early to be
// seen.
TEST_F(Resized, PyTorchUnderTorchrunLearnsTheSame) {
  if (output_of("/usr/bin/python3 -c 'import torch; print(1)' 2>/dev/null").empty())
    GTEST_SKIP() << "SKIP: no python3 with torch here (apt install python3-torch)";
  const std::string train = BERTH_SOURCE_DIR
      "/examples/pytorch/train.py --epochs 6 --samples 512 --dropout 0 --checkpoint ";
  const std::string alone = "cd " + (served_.folder() / "out") +
                            " && PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 /usr/bin/python3 " +
                            train + "alone.pt";
  const std::string expected = line_in(output_of(alone), "loss");
  ASSERT_NE(expected, "");
  begin();
  Guest one{served_, "one", 1};
  Guest two{served_, "two", 2};
  // Some versions of torchrun read "0", their own default, as no value at all.
  const std::uint64_t job =
      submit({"/bin/sh", "-c",
              "export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1; exec /usr/bin/python3 -m "
              "torch.distributed.run --standalone --redirects 9:1 --tee 9:1 "
              "--nproc_per_node=$BERTH_GPUS " +
                  train + "last.pt --pause 0.15"},
             {{"grace_seconds", 20}});
  const auto gets_on = [&] {
    const double before = iterations_of(job);
    return eventually([&] { return iterations_of(job) > before + 2; });
  };
  ASSERT_TRUE(eventually([&] { return iterations_of(job) > 2; })) << out();
  one.let_go();
  ASSERT_TRUE(eventually([&] { return says("with 2 workers"); })) << out();
  ASSERT_TRUE(gets_on()) << out();
  two.let_go();
  ASSERT_TRUE(eventually([&] { return says("with 4 workers"); })) << out();
  ASSERT_TRUE(gets_on()) << out();
  expect_rival_was_alone(submit_rival());
  expect_over(job);
  const std::string after = out().substr(out().find("with 4 workers"));
  EXPECT_NE(after.find("continues"), std::string::npos) << out();
  ASSERT_NE(line_in(out(), "loss"), "") << out();
  const double loss = std::atof(line_in(out(), "loss").substr(5).c_str());
  EXPECT_NEAR(loss, std::atof(expected.substr(5).c_str()), 0.01 * loss) << out();
}

}  // namespace
}  // namespace berth::test
