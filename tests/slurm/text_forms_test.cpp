// The small forms of Slurm's texts: lists of nodes, devices, times, versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "slurm/facts.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "slurm/times.h"

namespace berth::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> hosts(std::string_view list) {
  auto names = expand_hostlist(list);
  EXPECT_TRUE(names) << list << ": " << names.error().text();
  return names ? *names : std::vector<std::string>{};
}

TEST(Hostlist, IsExpandedAsItIsWritten) {
  EXPECT_THAT(hosts("n[1-3,07-09],login1"),
              ElementsAre("n1", "n2", "n3", "n07", "n08", "n09", "login1"));
  EXPECT_THAT(hosts("r[1-2]n[8-10]"),
              ElementsAre("r1n8", "r1n9", "r1n10", "r2n8", "r2n9", "r2n10"));
  EXPECT_THAT(hosts("gpu[098-101]x"), ElementsAre("gpu098x", "gpu099x", "gpu100x", "gpu101x"));
  EXPECT_THAT(hosts("a,b,,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(hosts("n[5]"), ElementsAre("n5"));
  EXPECT_THAT(hosts(""), IsEmpty());
  EXPECT_THAT(hosts("(null)"), IsEmpty());
}

TEST(Hostlist, SaysWhatIsWrong) {
  for (const char* list : {"n[1-3", "n1-3]", "n[]", "n[3-1]", "n[a-b]", "n[1-]", "n[1,,2]",
                           "n[99999999999999999999]"}) {
    const auto names = expand_hostlist(list);
    ASSERT_FALSE(names) << list;
    EXPECT_THAT(names.error().text(), HasSubstr(list));
  }
}

// Because one that stands for a billion names must not be made before it is counted.
TEST(Hostlist, IsBounded) {
  EXPECT_EQ(hosts("n[1-1000000]").size(), kMaxHosts);
  for (const char* list : {"n[1-1000001]", "n[0-999999999999999999]", "a[1-1001]b[1-1001]",
                           "a[0-99]b[0-99]c[0-99]d[0-99]e[0-99]", "n[1-1000000],m"}) {
    const auto names = expand_hostlist(list);
    ASSERT_FALSE(names) << list;
    EXPECT_THAT(names.error().text(), HasSubstr("more than 1000000 names"));
  }
}

TEST(Hostlist, IsCompressedToWhatExpandsToTheSameNames) {
  EXPECT_EQ(compress_hostlist({"n3", "n1", "n2", "n5"}), "n[1-3,5]");
  EXPECT_EQ(compress_hostlist({"n1", "login", "n2", "m7"}), "n[1-2],login,m7");
  EXPECT_EQ(compress_hostlist({"n08", "n09", "n10"}), "n[08-09],n10");
  EXPECT_EQ(compress_hostlist({"n1", "n1"}), "n1");
  EXPECT_EQ(compress_hostlist({"17", "18"}), "17,18");  // a name of digits has no beginning
  EXPECT_EQ(compress_hostlist({}), "");
  for (const char* list : {"n[1-3]", "n[007-009,011]", "r1n[1-2],r2n[1-2]", "x", "n[0-3]"})
    EXPECT_EQ(compress_hostlist(hosts(list)), list);
}

GresCount gres(std::string name, std::string type, std::int64_t count,
               std::vector<std::int32_t> indices = {}) {
  return {std::move(name), std::move(type), count, std::move(indices)};
}

TEST(Gres, IsReadInEveryDialect) {
  EXPECT_THAT(parse_gres("gres/gpu:a100:4"), ElementsAre(gres("gpu", "a100", 4)));
  EXPECT_THAT(parse_gres("gres:gpu:4"), ElementsAre(gres("gpu", "", 4)));  // 22.05
  EXPECT_THAT(parse_gres("gpu:v100:4(IDX:0-3)"), ElementsAre(gres("gpu", "v100", 4, {0, 1, 2, 3})));
  EXPECT_THAT(parse_gres("gpu:a100:3(IDX:0,2-3),shard:2(2/4,0/4)"),
              ElementsAre(gres("gpu", "a100", 3, {0, 2, 3}), gres("shard", "", 2, {0})));
  EXPECT_THAT(parse_gres("gpu:4(S:0-1)"), ElementsAre(gres("gpu", "", 4)));
  EXPECT_THAT(parse_gres("gpu:v100:0(IDX:N/A)"), ElementsAre(gres("gpu", "v100", 0)));
  EXPECT_THAT(parse_gres("shard:v100:4(-/4,4/4)"), ElementsAre(gres("shard", "v100", 4, {1})));
  EXPECT_THAT(parse_gres("cpu=8,gres/gpu=1"), ElementsAre(gres("gpu", "", 1)));
  EXPECT_THAT(parse_gres("gres/gpu:h100=2"), ElementsAre(gres("gpu", "h100", 2)));
  EXPECT_THAT(parse_gres("gpu"), ElementsAre(gres("gpu", "", 1)));
  EXPECT_THAT(parse_gres("gpu:tesla"), ElementsAre(gres("gpu", "tesla", 1)));
  EXPECT_THAT(parse_gres("lustre:no_consume:4K"), ElementsAre(gres("lustre", "", 4096)));
  EXPECT_THAT(parse_gres("gpu:nvidia_a100_1g.5gb:7"),
              ElementsAre(gres("gpu", "nvidia_a100_1g.5gb", 7)));
  for (const char* nothing : {"", "(null)", "N/A"}) EXPECT_THAT(parse_gres(nothing), IsEmpty());
}

TEST(Gres, SurvivesNonsense) {
  EXPECT_THAT(parse_gres(",,,"), IsEmpty());
  EXPECT_THAT(parse_gres("gpu:4(IDX:0-99999999)"), ElementsAre(gres("gpu", "", 4)));
  EXPECT_THAT(parse_gres("gpu:4(IDX:3-1,7)"), ElementsAre(gres("gpu", "", 4, {7})));
  EXPECT_THAT(parse_gres("gpu:4(IDX:0-3"), ElementsAre(gres("gpu", "", 4)));  // cut off
  // A count beyond every type is no count, and then the name of a type.
  EXPECT_EQ(parse_gres("gpu:99999999999999999999").front().count, 1);
  EXPECT_THAT(parse_gres("gres/gpu=-1"), IsEmpty());
}

TEST(Tres, IsLookedUpByName) {
  constexpr std::string_view kTres = "cpu=16,mem=16000M,node=2,gres/gpu=16,gres/gpu:a100=16";
  EXPECT_EQ(tres_count(kTres, "gres/gpu"), 16);
  EXPECT_EQ(tres_count(kTres, "cpu"), 16);
  EXPECT_EQ(tres_count(kTres, "gres/shard"), std::nullopt);
  EXPECT_EQ(tres_type(kTres, "gpu"), "a100");
  EXPECT_EQ(tres_type("cpu=1", "gpu"), "");
  EXPECT_EQ(tres_mebibytes(kTres), 16'000);
  EXPECT_EQ(parse_mebibytes("250G"), 256'000);
  EXPECT_EQ(parse_mebibytes("1.50T"), 1'572'864);
  EXPECT_EQ(parse_mebibytes("2048K"), 2);
  EXPECT_EQ(parse_mebibytes("77"), 77);
  EXPECT_EQ(parse_mebibytes("999999999999999P"), 0);
  EXPECT_EQ(parse_mebibytes("many"), 0);
}

TEST(Times, AreUnixSecondsOfUtc) {
  EXPECT_EQ(parse_time("1970-01-02T00:00:01"), 86'401);
  EXPECT_EQ(parse_time("2026-11-17T03:58:43"), 1'794'887'923);
  for (const char* none :
       {"N/A", "Unknown", "NONE", "None", "(null)", "", "2026-11-17", "2026-13-17T03:58:43",
        "2026-02-30T03:58:43", "2026-11-17T24:00:00", "2026-11-17T03:58:4x", "1900-01-01T00:00:00"})
    EXPECT_EQ(parse_time(none), 0) << none;
}

TEST(Times, SpansAreSeconds) {
  EXPECT_EQ(parse_span("1-02:03:04"), 93'784);  // 86400 + 2*3600 + 3*60 + 4
  EXPECT_EQ(parse_span("00:30:00"), 1800);
  EXPECT_EQ(parse_span("30:00"), 1800);  // squeue
  EXPECT_EQ(parse_span("45"), 2700);     // minutes
  EXPECT_EQ(parse_span("2-12"), 216'000);
  EXPECT_EQ(parse_span("365-00:00:00"), 31'536'000);
  for (const char* none :
       {"UNLIMITED", "INVALID", "NONE", "N/A", "", "1-", "99999999999-00:00:00", "1:2:3:4", "-1"})
    EXPECT_EQ(parse_span(none), 0) << none;
  EXPECT_EQ(limit_text(1800), "30");
  EXPECT_EQ(limit_text(61), "2");  // never less than was asked for
  EXPECT_EQ(limit_text(0), "UNLIMITED");
}

TEST(Versions, AreComparedByNumbers) {
  EXPECT_EQ(parse_version("slurm-wlm 22.05.8"), (Version{22, 5, 8}));
  EXPECT_EQ(parse_version("24.11.5"), (Version{24, 11, 5}));
  EXPECT_EQ(parse_version("slurm 26.05.0-0rc1"), (Version{26, 5, 0}));
  EXPECT_EQ(parse_version("31.02"), (Version{31, 2, 0}));
  EXPECT_EQ(parse_version("unknown"), std::nullopt);
  EXPECT_EQ(parse_version(""), std::nullopt);
  EXPECT_LT((Version{22, 5, 8}), (Version{24, 11, 5}));
  EXPECT_EQ(to_string(Version{22, 5, 8}), "22.05.8");
}

TEST(Jobs, CountTheirGpusHoweverTheyAsk) {
  Job job;
  job.min_nodes = 2;
  job.tasks = 8;
  EXPECT_EQ(job.gpus(), 0);
  job.per_node = {gres("gpu", "a100", 4)};
  EXPECT_EQ(job.gpus(), 8);  // 4 on each of 2 nodes
  EXPECT_EQ(job.gpu_type(), "a100");
  job.per_node = {};
  job.per_task = {gres("gpu", "", 1)};
  EXPECT_EQ(job.gpus(), 8);  // one for each of 8 tasks
  job.per_job = {gres("gpu", "", 8)};
  EXPECT_EQ(job.gpus(), 8);  // the same, said twice
  EXPECT_EQ(job.gpu_type(), "");
  job.held = {{.node = "n1", .gres = {gres("gpu", "v100", 3, {0, 1, 2})}},
              {.node = "n2", .gres = {gres("gpu", "v100", 3, {0, 1, 2})}}};
  EXPECT_EQ(job.gpus(), 6);  // what it has counts more than what it wanted
  EXPECT_EQ(job.gpu_type(), "v100");
  EXPECT_EQ(job.shards(), 0);
  job.per_node = {gres("gpu", "", INT64_MAX)};
  job.held = {};
  EXPECT_EQ(job.gpus(), INT32_MAX);  // absurd, but no overflow
}

TEST(Jobs, CountShardsApart) {
  Job job;
  job.per_node = {gres("shard", "", 2)};
  EXPECT_EQ(job.shards(), 2);
  EXPECT_EQ(job.gpus(), 0);
}

TEST(Nodes, AreUsableWhenNothingSpeaksAgainstIt) {
  const auto is_usable = [](const char* state) {
    return Node{.name = "n", .state = state}.is_usable();
  };
  for (const char* state : {"IDLE", "MIXED", "ALLOCATED", "MIXED+PLANNED", "IDLE+CLOUD",
                            "ALLOCATED+COMPLETING", "MIXED+DYNAMIC_NORM"})
    EXPECT_TRUE(is_usable(state)) << state;
  for (const char* state :
       {"DOWN", "DOWN*", "IDLE+DRAIN", "MIXED+DRAIN", "DOWN+DRAIN+INVALID_REG", "IDLE*",
        "IDLE+RESERVED", "IDLE+MAINT", "IDLE+POWERED_DOWN", "IDLE+CLOUD+POWERING_UP", "FUTURE",
        "UNKNOWN", "", "IDLE~", "MIXED+NOT_RESPONDING", "IDLE+REBOOT_ISSUED"})
    EXPECT_FALSE(is_usable(state)) << state;
}

}  // namespace
}  // namespace berth::slurm
