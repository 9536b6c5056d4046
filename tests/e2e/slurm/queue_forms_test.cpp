// squeue, sinfo and scancel in every form that Slurm documents, against a played scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/played_scheduler.h"

namespace berth::test::queue_forms_tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Squeue, HasEveryLetter) {
  PlayedScheduler scheduler;
  const std::string letters = "aABbcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ";
  for (const char letter : letters) {
    const bool is_known = letter != 's';  // Slurm has no such column either
    const Ran ran = scheduler.sh(std::string("squeue -h -j 12 -o '%") + letter + "|'");
    EXPECT_EQ(ran.exit, is_known ? 0 : 2) << letter << ran.err;
    EXPECT_EQ(ran.out.empty(), !is_known) << letter;
  }
  EXPECT_EQ(
      scheduler.sh("squeue -h -j 14 -o '%a|%B|%C|%E|%f|%h|%H|%k|%n|%O|%q|%v|%w|%W|%x|%X|%y|%z'")
          .out,
      "ann|n/a|1|(null)|(null)|OK|*|(null)||0|normal|(null)|(null)|(null)||N/A|0|*:*:*\n");
}

TEST(Squeue, HasEveryName) {
  PlayedScheduler scheduler;
  const Ran names = scheduler.sh("squeue --helpFormat");
  EXPECT_EQ(names.exit, 0);
  EXPECT_THAT(names.out, HasSubstr("tres-per-node"));
  EXPECT_EQ(scheduler
                .sh("squeue --helpFormat | tr -s ' ' '\\n' | grep -v '^$' | while read f; do "
                    "squeue -h -j 12 -O \"$f:|\" > /dev/null || echo \"$f\"; done")
                .out,
            "");
  EXPECT_EQ(
      scheduler.sh("squeue -h -j 12 -O 'JobID:|,tres-alloc:|,reasonlist:|,timeleft:,stdin:;'").out,
      "12|cpu=1,node=1,gres/gpu=2,gres/gpu:a100=2|n1|1:58:55/dev/null;\n");
  EXPECT_THAT(scheduler.sh("squeue -O jobbid").err, HasSubstr("jobid"));
}

TEST(Squeue, TellsSteps) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.sh("squeue -s");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out,
              HasSubstr("         STEPID     NAME PARTITION     USER      TIME NODELIST\n"));
  EXPECT_EQ(scheduler.sh("squeue -h -s -o '%i|%j|%u|%A|%N|%b'").out,
            "12.batch|batch|ann|1|n1|(null)\n12.0|train.py|ann|2|n1|gres/gpu:2\n");
  EXPECT_EQ(scheduler.sh("squeue -h --steps=12.0 -o %i").out, "12.0\n");
  EXPECT_EQ(scheduler.sh("squeue -h -s 12.0 -o %i").out, "12.0\n");
  EXPECT_EQ(scheduler.sh("squeue -h -s -O stepid:8,stepname,stepstate:9").out,
            "12.batchbatch               RUNNING\n12.0    train.py            RUNNING\n");
}

TEST(Squeue, TakesWhatHasNoMeaningHere) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("squeue -h -P -o %i | sort").out,
            scheduler.sh("squeue -h -o %i | sort").out);
  EXPECT_EQ(scheduler.sh("squeue -M test -h -j 12 -o %i").out, "CLUSTER: test\n12\n");
  EXPECT_EQ(scheduler.sh("squeue -M moon").exit, 1);
  EXPECT_EQ(scheduler.sh("squeue -h -q normal -j 12 -o %i").out, "12\n");
  EXPECT_EQ(scheduler.sh("squeue -h -q high -o %i").out, "");
  EXPECT_EQ(scheduler.sh("squeue -h -R maintenance -o %i").out, "");
  EXPECT_EQ(scheduler.sh("squeue -h -w n[1-2] -o %i").out, "12\n");
  EXPECT_EQ(scheduler.sh("squeue --yaml").exit, 2);
  EXPECT_THAT(scheduler.sh("squeue --start").out, HasSubstr("START_TIME  NODES SCHEDNODES"));
}

TEST(Squeue, SpeaksSlurmsJson) {
  PlayedScheduler scheduler;
  const json answer = json::parse(scheduler.sh("squeue --json").out);
  ASSERT_EQ(answer["jobs"].size(), 6U);  // one for each job of an array
  EXPECT_EQ(answer["errors"], json::array());
  EXPECT_EQ(answer["warnings"], json::array());
  EXPECT_EQ(answer["meta"]["plugin"]["data_parser"], "data_parser/v0.0.42");
  const auto job = [&](int number) {
    for (const json& one : answer["jobs"])
      if (one["job_id"] == number) return one;
    return json();
  };
  const json running = job(12);
  EXPECT_EQ(running["job_state"], json::array({"RUNNING"}));
  EXPECT_EQ(running["nodes"], "n1");
  EXPECT_EQ(running["user_name"], "ann");
  EXPECT_EQ(running["time_limit"], json::parse(R"({"set":true,"infinite":false,"number":120})"));
  EXPECT_EQ(running["gres_detail"], json::array({"gpu:a100:2(IDX:0-1)"}));
  EXPECT_EQ(running["tres_alloc_str"], "cpu=1,node=1,gres/gpu=2,gres/gpu:a100=2");
  EXPECT_EQ(running["exit_code"]["status"], json::array({"SUCCESS"}));
  EXPECT_EQ(running["array_job_id"]["number"], 0);
  EXPECT_EQ(job(13)["state_reason"], "Resources");
  EXPECT_EQ(job(13)["time_limit"]["infinite"], true);
  EXPECT_EQ(job(14)["hold"], true);
  EXPECT_EQ(job(21)["array_job_id"]["number"], 20);
  EXPECT_EQ(job(21)["array_task_id"]["number"], 5);
  EXPECT_EQ(scheduler.sh("squeue --json=v0.0.42").exit, 0);
  EXPECT_EQ(scheduler.sh("squeue --json=v0.0.38").exit, 2);
}

// Who is in no group is his own account, as %a shows.
TEST(Squeue, FindsTheJobsOfAnAccount) {
  PlayedScheduler scheduler;
  scheduler.set_job(
      {{"number", 14},
       {"spec", {{"name", "later"}, {"user", "ann"}, {"queue", "gpu"}, {"group", "ml"}}}});
  EXPECT_EQ(scheduler.sh("squeue -h -A ann -o '%A %a'").out, "12 ann\n");
  EXPECT_EQ(scheduler.sh("squeue -h -A ml,ann -S i -o '%A %a'").out, "12 ann\n14 ml\n");
  EXPECT_EQ(scheduler.sh("scancel -A ann").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", "/api/v1/jobs/actions")["ids"], json::array({12}));
}

TEST(Squeue, AJobOfAGridIsCalledByItsParameters) {
  PlayedScheduler scheduler;
  const json spec = {{"name", "train"},
                     {"user", "ann"},
                     {"queue", "gpu"},
                     {"array", "0-1"},
                     {"grid", {"lr=0.1,0.01", "seed=3"}}};
  scheduler.set_job({{"number", 12}, {"array", 12}, {"array_index", 0}, {"spec", spec}});
  EXPECT_EQ(scheduler.sh("squeue -h -j 12_0 -o '%i %j'").out, "12_0 train lr=0.1 seed=3\n");
  EXPECT_EQ(scheduler.sh("sacct -X -n -P -j 12_0 -o jobname").out, "train lr=0.1 seed=3\n");
  EXPECT_THAT(scheduler.sh("scontrol show job 12_0").out,
              HasSubstr("JobName=train lr=0.1 seed=3\n"));
}

TEST(Squeue, SaysWhatIsWrongInSlurmsWords) {
  PlayedScheduler scheduler;
  Ran ran = scheduler.sh("squeue -h -u nosuch");
  EXPECT_EQ(ran.exit, 0);  // as Slurm's
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "squeue: error: Invalid user: nosuch\n");
  EXPECT_EQ(scheduler.sh("squeue -h -u ann -o %i").err, "");  // known by her jobs alone
  ran = scheduler.sh("sacct -u nosuch");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_EQ(ran.err, "sacct: error: Invalid user id: nosuch\n");
  for (const char* command : {"squeue -t nonsense", "sacct -s nonsense", "scancel -t nonsense"}) {
    ran = scheduler.sh(command);
    EXPECT_EQ(ran.exit, 2) << command;
    EXPECT_THAT(ran.err, HasSubstr("error: Invalid job state specified: nonsense\n"));
    EXPECT_THAT(ran.err, HasSubstr("include: pending,running,suspended,completing,completed,"));
  }
  ran = scheduler.sh("sinfo -t idle,nonsense");
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("sinfo: error: Bad state string: \"nonsense\"\n"));
  EXPECT_EQ(scheduler.sh("sinfo -h -t IDLE,maint -p day -o %N").out, "n2\n");
}

TEST(Squeue, TellsEveryColumnAtOnce) {
  PlayedScheduler scheduler;
  const std::string out = scheduler.sh("squeue -j 12 -o %all").out;
  EXPECT_THAT(out, testing::StartsWith("ACCOUNT|"));
  EXPECT_THAT(out, HasSubstr("|NODELIST(REASON)|"));
  EXPECT_THAT(out, HasSubstr("\nann|"));
  EXPECT_THAT(scheduler.sh("sinfo -o %all").out, HasSubstr("|PARTITION|"));
}

TEST(Squeue, SortsAsAsked) {
  PlayedScheduler scheduler;
  scheduler.set_job(
      {{"number", 14},
       {"spec", {{"name", "later"}, {"user", "ann"}, {"queue", "gpu"}, {"priority", 7}}}});
  EXPECT_EQ(scheduler.sh("squeue -h -o %A").out, "14\n13\n20\n12\n");  // by state, then priority
  EXPECT_EQ(scheduler.sh("squeue -h -S i -o %A").out, "12\n13\n14\n20\n");
  EXPECT_EQ(scheduler.sh("squeue -h -S -u,i -o %A").out, "13\n20\n12\n14\n");
  EXPECT_EQ(scheduler.sh("SQUEUE_SORT=-i squeue -h -o %A").out, "20\n14\n13\n12\n");
}

TEST(Sinfo, HasEveryLetterAndName) {
  PlayedScheduler scheduler;
  for (const char letter : std::string("aAbBcCdDeEfFgGhHiIlLmMnNoOpPrRsStTuUvVwXYzZ")) {
    const Ran ran = scheduler.sh(std::string("sinfo -h -o '%") + letter + "|'");
    EXPECT_EQ(ran.exit, 0) << letter << ran.err;
    EXPECT_FALSE(ran.out.empty()) << letter;
  }
  EXPECT_EQ(scheduler
                .sh("sinfo --helpFormat | tr -s ' ' '\\n' | grep -v '^$' | while read f; do "
                    "sinfo -h -O \"$f:|\" > /dev/null || echo \"$f\"; done")
                .out,
            "");
  EXPECT_EQ(scheduler.sh("sinfo -h -N -p gpu -O nodelist:4,gres:12,gresused:24,statecompact").out,
            "n1  gpu:a100:4  gpu:a100:2(IDX:0-1)     mix\n"
            "n2  gpu:a100:4  gpu:a100:0(IDX:N/A)     idle\n"
            "n3  gpu:v100:4  gpu:v100:0(IDX:N/A)     drain\n");
  EXPECT_EQ(scheduler.sh("sinfo -o '%!'").exit, 2);
}

TEST(Sinfo, TakesTheUsualOptions) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("sinfo -T").out, "No reservations in the system\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -d -p day").out, "day          up 1-00:00:00      0    n/a\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -r -p day -o %D").out, "3\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -e -p day -o %N").out, "n1\nn2\nn3\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -p day -S -t -o '%t %N'").out, "mix n1\nidle n2\ndrain n3\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -n n[1-2] -p day -o %N").out, "n[1-2]\n");
  EXPECT_THAT(scheduler.sh("sinfo -N -l").out,
              HasSubstr("NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY"));
  EXPECT_EQ(scheduler.sh("timeout 5 sinfo -h -i 0.1 -p day -o %N | head -n 2").out,
            "n[1-3]\nn[1-3]\n");
}

// A draining node is neither free nor forgotten.
TEST(Sinfo, ADrainingNodeSaysSo) {
  PlayedScheduler scheduler;
  scheduler.first = [](const Asked& asked) -> Told {
    if (!asked.path().ends_with("/nodes")) return {.status = 0};
    return {.body = R"({"nodes":[
      {"name":"n1","state":"draining","reason":"fan","type":"a100","gpus":4,"gpus_used":2,"cpus":16,
       "cpus_used":8,"memory_mib":65536,"devices":[[12],[12],[],[]]},
      {"name":"n2","state":"draining","reason":"fan","type":"a100","gpus":4,"gpus_used":0,"cpus":16,
       "cpus_used":16,"memory_mib":65536,"devices":[[],[],[],[]]},
      {"name":"n3","state":"drained","reason":"fan","type":"a100","gpus":4,"gpus_used":0,"cpus":16,
       "cpus_used":0,"memory_mib":65536,"devices":[[],[],[],[]]}]})"};
  };
  EXPECT_EQ(scheduler.sh("sinfo -h -N -p day -o '%N %t %T'").out,
            "n1 drng draining\nn2 drng draining\nn3 drain drained\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -p day -t drng -o %N").out, "n[1-2]\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -p day -t drained -o %N").out, "n3\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -p day -t drain -o '%D %t'").out, "2 drng\n1 drain\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -p day -o %C").out, "24/0/24/48\n");
  EXPECT_THAT(scheduler.sh("scontrol show node n1").out, HasSubstr("State=MIXED+DRAIN"));
  EXPECT_THAT(scheduler.sh("scontrol show node n2").out, HasSubstr("State=ALLOCATED+DRAIN"));
  EXPECT_THAT(scheduler.sh("scontrol show node n3").out, HasSubstr("State=IDLE+DRAIN"));
}

TEST(Sinfo, APartitionTellsItsDefaultTime) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("sinfo -h -n n1 -o '%R %L'").out, "gpu n/a\nday 1:00:00\n");
  EXPECT_THAT(scheduler.sh("scontrol show partition day").out, HasSubstr("DefaultTime=01:00:00 "));
  EXPECT_THAT(scheduler.sh("scontrol show partition gpu").out, HasSubstr("DefaultTime=NONE "));
}

TEST(Sinfo, SpeaksSlurmsJson) {
  PlayedScheduler scheduler;
  const json answer = json::parse(scheduler.sh("sinfo --json -p day").out);
  ASSERT_EQ(answer["sinfo"].size(), 3U);
  const json& first = answer["sinfo"][0];
  EXPECT_EQ(first["nodes"]["nodes"], json::array({"n1"}));
  EXPECT_EQ(first["node"]["state"], json::array({"MIXED"}));
  EXPECT_EQ(first["gres"]["used"], "gpu:a100:2(IDX:0-1)");
  EXPECT_EQ(first["cpus"]["idle"], 8);
  EXPECT_EQ(first["partition"]["name"], "day");
  EXPECT_EQ(first["partition"]["maximums"]["time"]["number"], 1'440);
  EXPECT_EQ(first["partition"]["defaults"]["time"]["number"], 60);
  EXPECT_EQ(answer["sinfo"][2]["node"]["state"], json::array({"IDLE", "DRAIN"}));
}

constexpr auto kActions = "/api/v1/jobs/actions";

TEST(Scancel, SignalsTheShellAlone) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("scancel -b -s USR1 12").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions),
            json::parse(R"({"verb":"signal","ids":[12],"signal":10,"shell_only":true})"));
  EXPECT_EQ(scheduler.sh("scancel 12.batch").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions),
            json::parse(R"({"verb":"signal","ids":[12],"signal":15,"shell_only":true})"));
}

TEST(Scancel, NamesSteps) {
  PlayedScheduler scheduler;
  Ran ran = scheduler.sh("scancel 12.7");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_EQ(ran.err, "scancel: Kill job error on job step id 12.7: Invalid job id specified\n");
  ran = scheduler.sh("scancel 12.0");  // its process is not here
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("not on this machine"));
  ran = scheduler.sh("scancel 9.0");
  EXPECT_THAT(ran.err, HasSubstr("already completing or completed"));
  EXPECT_EQ(scheduler.sent("POST", kActions), nullptr);
}

TEST(Scancel, AsksBeforeEachAndChoosesByNode) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.sh("printf 'n\\ny\\n' | scancel -i -u ann");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("Cancel job_id=12 name=train partition=gpu [y/n]? "));
  EXPECT_EQ(scheduler.sent("POST", kActions), json::parse(R"({"verb":"cancel","ids":[14]})"));
  EXPECT_EQ(scheduler.sh("scancel -w n1").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions), json::parse(R"({"verb":"cancel","ids":[12]})"));
}

TEST(Scancel, TouchesNothingOfAnotherQosOrReservation) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("scancel -q high").exit, 0);
  EXPECT_EQ(scheduler.sh("scancel -R maintenance -u ann").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions), nullptr);
  EXPECT_EQ(scheduler.sh("scancel -H --ctld -f 12").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions), json::parse(R"({"verb":"cancel","ids":[12]})"));
}

}  // namespace
}  // namespace berth::test::queue_forms_tests
