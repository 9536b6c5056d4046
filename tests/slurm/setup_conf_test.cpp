// slurm.conf as Slurm reads it, and one line of ours in it; the script's texts.
#include "slurm/setup_conf.h"

#include <map>

#include <gtest/gtest.h>

#include "slurm/mark.h"
#include "slurm/setup_files.h"
#include "slurm/setup_lua.h"

namespace berth::slurm {
namespace {

using Files = std::map<std::string, std::string>;

ConfReader reader_of(const Files& files) {
  return [files](const std::string& path) -> Result<std::optional<std::string>> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
}

std::optional<std::string> value_in(const std::string& conf, const std::string& key) {
  return read_conf("/e/slurm.conf", reader_of({{"/e/slurm.conf", conf}}))->value(key);
}

TEST(SlurmConf, TheLastOneWinsAndKeysHaveNoCase) {
  EXPECT_EQ(value_in("JobSubmitPlugins=a\njobsubmitplugins=b,lua\n", "JobSubmitPlugins"), "b,lua");
  EXPECT_EQ(value_in("A=1 B=2 # C=3\n", "b"), "2");
  EXPECT_EQ(value_in("A=1 # B=2\n", "B"), std::nullopt);
  EXPECT_EQ(value_in("A = \"x y\" B=z\n", "A"), "x y");
  EXPECT_EQ(value_in("A = \"x y\" B=z\n", "B"), "z");
}

TEST(SlurmConf, LinesAreJoinedAtABackslashBeforeCommentsEnd) {
  EXPECT_EQ(value_in("SchedulerParameters=a,\\\nb,\\  \nc\n", "SchedulerParameters"), "a,b,c");
  // because Slurm joins first: the comment goes on over the next line
  EXPECT_EQ(value_in("# a comment \\\nA=1\n", "A"), std::nullopt);
  EXPECT_EQ(value_in("A=1\\", "A"), "1");
}

TEST(SlurmConf, IncludedFilesCountWhereTheyStand) {
  const Files files{
      {"/e/slurm.conf",
       "ClusterName=Big\nA=1\ninclude  b.conf # x\nInclude /s/%c.conf\nInclude gone\n"},
      {"/e/b.conf", "A=2\nB=2\n"},
      {"/s/big.conf", "B=3\n"}};
  const auto values = read_conf("/e/slurm.conf", reader_of(files));
  ASSERT_TRUE(values);
  EXPECT_EQ(values->value("A"), "2");
  EXPECT_EQ(values->value("B"), "3");
  EXPECT_EQ(values->missing, std::vector<std::string>{"/e/gone"});
  const auto without = read_conf("/e/slurm.conf", reader_of(files), "/e/b.conf");
  EXPECT_EQ(without->value("A"), "1");
}

TEST(SlurmConf, FilesThatIncludeEachOtherAreAnError) {
  EXPECT_FALSE(read_conf("/e/slurm.conf", reader_of({{"/e/slurm.conf", "Include slurm.conf\n"}})));
  EXPECT_FALSE(read_conf("/e/slurm.conf", reader_of({})));
}

TEST(SlurmConf, OurLineGoesInAndOutByteByByte) {
  for (const std::string conf :
       {"", "A=1", "A=1\n", "A=1\n\n", "A=1\\", "A=1\\\n", "A=1\\\n\n", "\n", "A=1\r\n"}) {
    const std::string added = addition_for(conf, "Include berth.conf");
    const Files files{{"/e/slurm.conf", conf + added}, {"/e/berth.conf", "X=1\n"}};
    EXPECT_EQ(read_conf("/e/slurm.conf", reader_of(files))->value("X"), "1") << conf;
    EXPECT_EQ(without_addition(conf + added, added), conf);
    EXPECT_EQ(without_addition(conf + added + "B=2\n", added), conf + "B=2\n");
    EXPECT_EQ(without_addition(conf, added), std::nullopt);
    EXPECT_EQ(without_addition(conf + added + added, added), std::nullopt);  // whose is which?
  }
  EXPECT_EQ(without_addition("#Include berth.conf\n", "Include berth.conf\n"), std::nullopt);
}

TEST(SlurmConf, ListsAreMergedNotReplaced) {
  EXPECT_EQ(with_item("", "lua"), "lua");
  EXPECT_EQ(with_item("all_partitions", "lua"), "all_partitions,lua");
  EXPECT_EQ(with_item("lua,throttle", "lua"), "lua,throttle");
  EXPECT_EQ(with_item("bf_continue,batch_sched_delay=5", "batch_sched_delay=0"),
            "bf_continue,batch_sched_delay=5");  // the site's own value stays
  EXPECT_FALSE(has_item("lua2", "lua"));
}

TEST(SetupDiff, IsThatOfDiff) {
  EXPECT_EQ(unified_diff("f", "a\nb\nc\n", "a\nc\n"),
            "--- f\n+++ f\n@@ -1,3 +1,2 @@\n a\n-b\n c\n");
  EXPECT_EQ(unified_diff("f", std::nullopt, "a\n"), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
  EXPECT_EQ(unified_diff("f", "a", "a\nb\n"),
            "--- f\n+++ f\n@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n");
  EXPECT_EQ(unified_diff("f", "a\n", "a\n"), "");
}

TEST(HoldMark, TellsWhatTheUserAskedFor) {
  EXPECT_FALSE(hold_mark_of(""));
  EXPECT_FALSE(hold_mark_of("berth=heldx xberth=held berth=probe;1"));
  EXPECT_TRUE(hold_mark_of("berth=held"));
  const auto mark = hold_mark_of("site7 berth=held;nodes=n[1-2],m=3;n=1-2;begin=1795003457");
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->nodes, "n[1-2],m=3");
  EXPECT_EQ(mark->node_count, "1-2");
  EXPECT_EQ(mark->begin, 1795003457);
  EXPECT_EQ(without_mark("site7 berth=held;n=1-2 more"), "site7 more");
  EXPECT_EQ(without_mark("berth=held"), "");
}

TEST(LuaScript, QuotesWhateverAPathHolds) {
  EXPECT_EQ(lua_quoted("/a\"b\\c\n1"), "\"/a\\\"b\\\\c\\0101\"");
  LuaGate gate;
  gate.heartbeat = "/run/\"x";
  gate.privileged_uids = {0, 7};
  gate.free_partitions = {"debug"};
  const std::string script = lua_script(gate);
  EXPECT_NE(script.find("local HEARTBEAT = \"/run/\\\"x\"\n"), std::string::npos);
  EXPECT_NE(script.find("local SITE = nil\n"), std::string::npos);
  EXPECT_NE(script.find("local PRIVILEGED = {[0] = true, [7] = true}\n"), std::string::npos);
  EXPECT_NE(script.find("local FREE_PARTITIONS = {[\"debug\"] = true}\n"), std::string::npos);
  EXPECT_NE(probe_mark(gate), probe_mark(LuaGate{}));  // another script, another mark
}

}  // namespace
}  // namespace berth::slurm
