// What people may ask for: arrays, dependencies, time limits, and the JSON form that is kept.
#include "model/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/job_spec_json.h"

namespace berth {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

JobSpec sleeper() {
  JobSpec spec;
  spec.command = {"sleep", "1"};
  return spec;
}

TEST(JobSpec, ArraysAreRangesStepsAndAThrottle) {
  const auto array = parse_array("0-9:3,20,20%2");
  ASSERT_TRUE(array);
  EXPECT_THAT(array->indices, ElementsAre(0, 3, 6, 9, 20));
  EXPECT_EQ(array->at_once, 2);
  EXPECT_EQ(to_text(*array), "0,3,6,9,20%2");
  EXPECT_EQ(to_text(*parse_array("1-4,7")), "1-4,7");
  for (const char* bad :
       {"", "a", "3-1", "1-", "-1", "1:2", "0-9:0", "1%0", "1%", "0-2000000000", "1,,2"})
    EXPECT_FALSE(parse_array(bad)) << bad;
}

TEST(JobSpec, DependenciesNameKindsAndJobs) {
  const auto all = parse_dependencies("afterok:12:13,singleton");
  ASSERT_TRUE(all);
  EXPECT_THAT(all->all, ElementsAre(Dependency{DependencyKind::AfterOk, 12},
                                    Dependency{DependencyKind::AfterOk, 13},
                                    Dependency{DependencyKind::Singleton, 0}));
  EXPECT_FALSE(all->any);
  EXPECT_TRUE(parse_dependencies("afterany:1?afterok:2")->any);
  for (const char* bad : {"", "afterok", "later:3", "afterok:x", "afterok:0", "singleton:3",
                          "afterok:1?afterok:2,after:3"})
    EXPECT_FALSE(parse_dependencies(bad)) << bad;
}

TEST(JobSpec, TimeLimitsAreWrittenInManyWays) {
  EXPECT_EQ(parse_time_limit("30"), 1'800);
  EXPECT_EQ(parse_time_limit("1:30"), 90);
  EXPECT_EQ(parse_time_limit("1:30:05"), 5'405);
  EXPECT_EQ(parse_time_limit("2-12"), 216'000);
  EXPECT_EQ(parse_time_limit("1-00:30"), 88'200);
  EXPECT_EQ(parse_time_limit("90s"), 90);
  EXPECT_EQ(parse_time_limit("1.5h"), 5'400);
  EXPECT_EQ(parse_time_limit("infinite"), 0);
  for (const char* bad : {"", "0", "-5", "1:2:3:4", "h", "1x", "1e99h", "nanh", "99999999999"})
    EXPECT_FALSE(parse_time_limit(bad)) << bad;
}

TEST(JobSpec, JsonKeepsEverythingAndOnlyWhatWasSaid) {
  JobSpec spec = sleeper();
  spec.env = {{"A", "1"}};
  spec.gpus = 4;
  spec.requeue_exit_code = 99;
  spec.dependencies = {{DependencyKind::AfterAny, 7}};
  spec.any_dependency = true;
  spec.array = *parse_array("0-3%2");
  spec.kind = JobKind::Debug;
  spec.open_mode = OpenMode::Append;
  spec.weight = 2.5;
  const auto json = to_json(spec);
  EXPECT_EQ(json.size(), 10U) << json.dump();
  const auto back = job_spec_from_json(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, spec);
}

TEST(JobSpec, JsonIsToldEverythingThatIsWrong) {
  const auto spec = job_spec_from_json(nlohmann::json::parse(
      R"({"gpu": 1, "gpus": "two", "array": "x", "memory_mib": 1e99, "env": {"A": 1}})"));
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().messages, SizeIs(5));
  EXPECT_THAT(spec.error().messages, Contains(HasSubstr("gpus")));
  EXPECT_THAT(spec.error().messages, Contains(HasSubstr("did you mean")));
  EXPECT_FALSE(job_spec_from_json(nlohmann::json::parse("[1]")));
}

TEST(JobSpec, WhatCannotBeRightAnywhereIsSaid) {
  EXPECT_THAT(problems(sleeper()), IsEmpty());
  EXPECT_THAT(problems(JobSpec{}), Contains(HasSubstr("nothing to run")));
  JobSpec spec = sleeper();
  spec.workdir = "here";
  spec.gpus = -1;
  spec.name = "a/b";
  spec.env = {{"A=B", ""}};
  EXPECT_THAT(problems(spec), SizeIs(4));
  spec = sleeper();
  spec.script = "echo";
  EXPECT_THAT(problems(spec), Contains(HasSubstr("#!")));
  spec = sleeper();
  spec.gpu_milli = 500;
  spec.gpus = 2;
  spec.gpus_min = 3;
  EXPECT_THAT(problems(spec), SizeIs(2));
  spec = sleeper();
  spec.name = "a\nb";
  spec.user = "root\x1b[2J";
  spec.deadline = -1;
  EXPECT_THAT(problems(spec), SizeIs(3));
}

// A job that is taken and can never be started is worse than one that is refused.
TEST(JobSpec, NamesOfFilesAreCheckedBeforeItIsTaken) {
  const auto faults = [](const std::string& pattern) {
    JobSpec spec = sleeper();
    spec.output = pattern;
    return problems(spec);
  };
  for (const char* fine : {"", "x", "%j", "%4j-%x.%%", "%A_%3a", "%J.%s", "/tmp/%u/%N-%n-%t-%b"})
    EXPECT_THAT(faults(fine), IsEmpty()) << fine;
  EXPECT_THAT(faults("%q"), ElementsAre(HasSubstr("output: unknown pattern %q (known: %j")));
  EXPECT_THAT(faults("%j%4"), ElementsAre(HasSubstr("lone %")));
  EXPECT_THAT(faults("%11j"), ElementsAre(HasSubstr("at most 10 digits")));
}

TEST(JobSpec, ArraysHaveAnEnd) {
  for (const char* large : {"0-10000", "0-2147483647", "0-9999,20000"})
    EXPECT_THAT(parse_array(large).error().text(), HasSubstr("more than 10000 jobs")) << large;
  EXPECT_EQ(parse_array("0-9999")->indices.size(), 10'000U);
  EXPECT_EQ(parse_array("0-2000000000:1000000")->indices.size(), 2'001U);
}

TEST(JobSpec, EveryFieldHasAMeaning) {
  for (const JobSpecField& field : job_spec_fields()) {
    EXPECT_FALSE(field.meaning.empty()) << field.key;
    EXPECT_FALSE(field.kind.empty()) << field.key;
  }
  EXPECT_GT(job_spec_fields().size(), 40U);
}

TEST(JobSpec, APolicySeesWhatItsUserAskedFor) {
  JobSpec spec = sleeper();
  spec.gpus = 4;
  spec.gpus_min = 1;
  spec.gpus_max = 8;
  spec.cpus = 6;
  spec.memory_mib = 512;
  spec.priority = 3;
  spec.weight = 2.5;
  spec.kind = JobKind::Debug;
  spec.preemptible = false;
  spec.iterations = 9;
  spec.batch_size = 32;
  spec.user = "alice";
  spec.study = "lr";
  spec.gpu_type = "a100|v100";
  spec.time_limit = 60;
  Names names;
  const JobRequest request = request_of(spec, 17, seconds_to_time(5), names);
  EXPECT_EQ(names.text(request.id), "17");
  EXPECT_EQ(request.submit, seconds_to_time(5));
  EXPECT_EQ(request.gpus, 4);
  EXPECT_EQ(request.gpus_min, 1);
  EXPECT_EQ(request.gpus_max, 8);
  EXPECT_EQ(request.gpu_milli, 1000);
  EXPECT_EQ(request.cpus_milli, 6000);
  EXPECT_EQ(request.memory_mib, 512);
  EXPECT_EQ(request.priority, 3);
  EXPECT_EQ(request.weight, 2.5F);
  EXPECT_EQ(request.kind, JobKind::Debug);
  EXPECT_FALSE(request.preemptible);
  EXPECT_EQ(request.iterations, 9);
  EXPECT_EQ(request.batch_size, 32);
  EXPECT_EQ(names.text(request.user), "alice");
  EXPECT_EQ(names.text(request.study), "lr");
  EXPECT_EQ(names.text(request.gpu_type), "a100|v100");
  EXPECT_EQ(said_duration(spec), std::chrono::seconds{60});
  spec.estimate = 30;
  EXPECT_EQ(said_duration(spec), std::chrono::seconds{30});
  spec.gpus = 0;  // cores alone
  EXPECT_EQ(request_of(spec, 17, {}, names).gpus, 1);
  EXPECT_EQ(request_of(spec, 17, {}, names).gpu_milli, 0);
}

}  // namespace
}  // namespace berth
