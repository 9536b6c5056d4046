// The link by a program, against programs that are scripts of ours: the lines that are exchanged, and
// what happens when the program dies, hangs, lies or is of another version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "slurm/link_lines.h"
#include "slurm/open_link.h"
#include "slurm/program_link.h"
#include "support/temporary_directory.h"

namespace berth::slurm {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A job as the program tells it: 16 GPUs on two nodes, with a name of every kind of byte.
const std::string kJobRow =
    "job\t7\t2\t1795000811\t5\t3\t1000\talice\tteam\tmain\tnormal\ta\\tb\\nc\\\\d\t1\tNone\t\t42\t1"
    "\t0"
    "\t1795000812\t1795000813\t1795000913\t30\t2\t2\t2\t16\t\tgres/gpu:a100:8\tcpu=8\t\tcpu=16"
    "\tcpu=16,mem=16000M\tn[3-4]\tn[3-4]\tn1\ta100\tafterok:1\tr1\t1\tnote\twhy\t768"
    "\tgpu:a100:8(IDX:0-7)\tgpu:a100:8(IDX:0-7)";

Result<Job> read_job(const std::string& line) {
  Row row;
  row.read(line);
  return job_of(row);
}

TEST(LinkLines, AnyByteArrivesAsItIs) {
  const std::string odd = "a\tb\nc\\d\re\x1f\xff";
  const std::string line = encode_line({"1", odd, "", "x"});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  Row row;
  row.read(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_EQ(row.size(), 4U);
  EXPECT_EQ(row[1], odd);
  EXPECT_EQ(row[2], "");
  EXPECT_EQ(row[9], "");
}

TEST(LinkLines, AJobWithEverything) {
  const auto job = read_job(kJobRow);
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->key, (RunKey{7, 2, 1'795'000'811}));
  EXPECT_EQ(job->array, 5U);
  EXPECT_EQ(job->array_tasks, "3");
  EXPECT_EQ(job->name, "a\tb\nc\\d");
  EXPECT_EQ(job->phase, JobPhase::Running);
  EXPECT_EQ(job->reason, "");
  EXPECT_FALSE(job->may_requeue);
  EXPECT_EQ(job->time_limit, 1800);
  EXPECT_EQ(job->gpus(), 16);
  EXPECT_EQ(job->ended, 0);  // when it would have to end is no end
  ASSERT_EQ(job->held.size(), 2U);
  EXPECT_EQ(job->held[1].node, "n4");
  EXPECT_EQ(job->held[1].gres.at(0).indices.size(), 8U);
  EXPECT_THAT(job->excluded_nodes, ElementsAre("n1"));
  EXPECT_TRUE(job->exclusive);
  EXPECT_EQ(job->exit_code, 3);
  EXPECT_EQ(job->admin_comment, "why");
}

TEST(LinkLines, StatesHaveMarks) {
  const auto with_state = [](const std::string& state) {
    std::string line = kJobRow;
    line.replace(line.find("\t1\tNone"), 2, "\t" + state);
    const auto job = read_job(line);
    EXPECT_TRUE(job) << job.error().text();
    return job ? *job : Job{};
  };
  EXPECT_TRUE(with_state("32768").completing);  // PENDING|COMPLETING: requeued, not yet ended
  EXPECT_EQ(with_state("32768").phase, JobPhase::Pending);
  EXPECT_EQ(with_state("32768").held.size(), 2U);
  EXPECT_TRUE(with_state("16385").configuring);
  EXPECT_EQ(with_state("4").phase, JobPhase::Cancelled);
  EXPECT_THAT(with_state("4").held, IsEmpty());
  EXPECT_GT(with_state("4").ended, 0);
  EXPECT_EQ(with_state("77").phase, JobPhase::Unknown);
  EXPECT_EQ(with_state("").phase, JobPhase::Unknown);
}

TEST(LinkLines, WhatIsMissingIsAnErrorAndWhatIsNewIsPassedOver) {
  EXPECT_FALSE(read_job("job"));
  EXPECT_FALSE(read_job("job\t7\t2"));
  EXPECT_FALSE(read_job("job\t0" + kJobRow.substr(5)));
  EXPECT_FALSE(read_job("job\t-1" + kJobRow.substr(5)));
  EXPECT_TRUE(read_job(kJobRow + "\tmore\tand more"));
  std::string bad_nodes = kJobRow;
  bad_nodes.replace(bad_nodes.find("n[3-4]"), 6, "n[1-9999999999]");
  EXPECT_FALSE(read_job(bad_nodes));
}

class ProgramLinkTest : public testing::Test {
 protected:
  /// A program of shell: `answers` is a `case` on the verb ($2), with the request's number in $1.
  ProgramLink link(const std::string& answers, const std::string& before = "") {
    const std::string path = folder_.path() + "/link";
    std::ofstream(path)
        << "#!/bin/bash\necho started >> " << folder_.path() << "/log\n"
        << before << "\nwhile IFS= read -r line; do IFS=$'\\t' read -ra w <<<\"$line\"\n"
        << "printf '%s\\n' \"$line\" >> " << folder_.path() << "/log\n"
        << "end() { printf '.\\t%s\\t%s\\t%s\\n' \"${w[0]}\" \"${1:-0}\" \"${2:-ok}\"; }\n"
        << "case ${w[1]} in\n"
        << answers << "\n"
        << "hello) printf 'link\\t1\\t42\\t24.11.5\\n'; end;;\n*) end 22 bad;;\nesac; done\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return ProgramLink({.command = {path},
                        .deadline = milliseconds{2000},
                        .shortest_pause = milliseconds{300},
                        .longest_pause = milliseconds{5000}});
  }
  std::string log() {
    std::ifstream file(folder_.path() + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t starts() {
    const std::string text = log();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("started\n", at)) != std::string::npos; ++at) ++count;
    return count;
  }
  berth::test::TemporaryDirectory folder_;
};

TEST_F(ProgramLinkTest, AsksForWhatIsNewAndIsToldNothing) {
  ProgramLink slurm = link("jobs) if [ \"${w[2]}\" = 0 ]; then printf 'at\\t17\\n'; cat <<'E'\n" +
                           kJobRow + "\nE\nelse echo same; fi; end;;");
  const auto first = slurm.jobs();
  ASSERT_TRUE(first) << first.error().text;
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ((*first)->size(), 1U);
  const auto second = slurm.jobs();
  ASSERT_TRUE(second) << second.error().text;
  EXPECT_FALSE(second->has_value());
  EXPECT_THAT(log(), HasSubstr("\tjobs\t17\n"));
  EXPECT_EQ(starts(), 1U);
}

TEST_F(ProgramLinkTest, PlacesByOneRequest) {
  ProgramLink slurm = link("place) end;;");
  const auto placed = slurm.place(
      "7_2", {.nodes = {"n3", "n4"}, .tasks = 2, .cpus = 16, .begin_now = true, .qos = "berth"});
  ASSERT_TRUE(placed) << placed.error().text;
  EXPECT_THAT(log(), HasSubstr("\tplace\t7_2\tn[3-4]\t2\t2\t16\t1\tberth\n"));
  EXPECT_FALSE(slurm.place("7", {.nodes = {}}));
  EXPECT_FALSE(slurm.hold("7\n8"));
}

TEST_F(ProgramLinkTest, TellsWhyByItsWords) {
  ProgramLink slurm = link(
      "hold) end 2017 'Invalid job id specified';;\nsuspend) end 2073 'Job is no longer pending "
      "execution';;\ncancel) end 2002 'Access/permission denied';;");
  EXPECT_EQ(slurm.hold("7").error().refusal, Refusal::NoSuchJob);
  EXPECT_EQ(slurm.suspend("7").error().refusal, Refusal::WrongState);
  EXPECT_EQ(slurm.cancel("7").error().refusal, Refusal::NotAllowed);
  EXPECT_EQ(slurm.release("7").error().text, "link: release 7: bad");
  EXPECT_EQ(starts(), 1U);
}

// Because libslurm reads slurm.conf once, and by then another host may be the controller.
TEST_F(ProgramLinkTest, IsStartedAnewWhenSlurmIsNotReached) {
  ProgramLink slurm =
      link("hold) end 1800 'Unable to contact slurm controller (connect failure)';;");
  EXPECT_EQ(slurm.hold("7").error().refusal, Refusal::Unreachable);
  EXPECT_EQ(slurm.hold("7").error().refusal, Refusal::Unreachable);
  EXPECT_EQ(starts(), 2U);
}

TEST_F(ProgramLinkTest, AReadingIsAskedAgainWhenItsProgramDied) {
  ProgramLink slurm = link("jobs) [ -e " + folder_.path() + "/once ] || { touch " + folder_.path() +
                           "/once; exit 1; }; printf 'at\\t17\\n'; end;;");
  const auto read = slurm.jobs();
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_TRUE(read->has_value());
  EXPECT_EQ(starts(), 2U);
}

// Because it may have been carried out.
TEST_F(ProgramLinkTest, ACommandIsNotAskedAgain) {
  ProgramLink slurm = link("hold) echo fatal: bad slurm.conf >&2; exit 1;;\nrelease) end;;");
  const auto held = slurm.hold("7");
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().refusal, Refusal::Unreachable);
  EXPECT_THAT(held.error().text, HasSubstr("it has ended: fatal: bad slurm.conf"));
  EXPECT_EQ(starts(), 1U);
  const auto early = slurm.release("7");
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().text, HasSubstr("is started again in"));
  std::this_thread::sleep_for(milliseconds{350});
  EXPECT_TRUE(slurm.release("7"));
  EXPECT_EQ(starts(), 2U);
}

TEST_F(ProgramLinkTest, AProgramThatDiesAtOnceIsNotStartedAllTheTime) {
  ProgramLink slurm = link("", "echo 'slurm_init: no slurm.conf' >&2; exit 1");
  for (int tries = 0; tries < 50; ++tries) {
    const auto read = slurm.jobs();
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().refusal, Refusal::Unreachable);
    if (tries == 0) {
      EXPECT_THAT(read.error().text, HasSubstr("no slurm.conf"));
    }
  }
  EXPECT_LE(starts(), 3U);
}

TEST_F(ProgramLinkTest, AHangingProgramIsKilled) {
  ProgramLink slurm = link("hold) sleep 300;;");
  const auto held = slurm.hold("7");
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().refusal, Refusal::Unreachable);
  EXPECT_THAT(held.error().text, HasSubstr("no answer in 2000 ms"));
}

TEST_F(ProgramLinkTest, ComplaintsDoNotFillUp) {
  ProgramLink slurm = link("hold) head -c 3000000 /dev/zero | tr '\\0' x >&2; end;;");
  const auto held = slurm.hold("7");
  EXPECT_TRUE(held) << held.error().text;
}

TEST_F(ProgramLinkTest, AnotherProtocolIsRefusedWithARemedy) {
  ProgramLink slurm = link("hello) printf 'link\\t9\\t42\\t24.11.5\\n'; end 93 no;;");
  const auto held = slurm.hold("7");
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().refusal, Refusal::Other);
  EXPECT_THAT(held.error().text, HasSubstr("speaks protocol 9 where Berth speaks 1"));
}

TEST_F(ProgramLinkTest, OneBadRowSpoilsTheReadingAndNotTheNext) {
  ProgramLink slurm = link("jobs) printf 'at\\t17\\njob\\t1\\n'; end;;\nhold) end;;");
  const auto read = slurm.jobs();
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().text, HasSubstr("a job has 2 fields where at least 42 belong"));
  EXPECT_TRUE(slurm.hold("7"));
  EXPECT_EQ(starts(), 1U);
}

TEST_F(ProgramLinkTest, TextIsOpenedWhereNoProgramWorks) {
  const auto text = open_link({.directory = folder_.path(), .program = {folder_.path() + "/none"}});
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(text->kind, LinkKind::Text);
  EXPECT_THAT(text->note, HasSubstr("none"));
  const auto demanded =
      open_link({.kind = LinkKind::Program, .program = {folder_.path() + "/none"}});
  ASSERT_FALSE(demanded);
  EXPECT_THAT(demanded.error().text(), HasSubstr("scripts/build-slurm-link"));
  (void)link("");
  const auto program = open_link({.program = {folder_.path() + "/link"}});
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->kind, LinkKind::Program);
  EXPECT_THAT(program->note, HasSubstr("Slurm 24.11.5"));
}

}  // namespace
}  // namespace berth::slurm
