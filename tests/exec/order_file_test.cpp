// Launch orders and exit records as bytes: what goes in comes out, and damage is seen.
#include <gtest/gtest.h>

#include "exec/fields.h"
#include "exec/order_file.h"

namespace berth {
namespace {

ShimOrder example() {
  ShimOrder shim;
  LaunchOrder& order = shim.order;
  order.job = 18'446'744'073'709'551'615U;
  order.attempt = {3, 17};
  order.script = std::string("#!/bin/sh\necho \0 zero\n", 21);
  order.command = {"", "a b", "line\nbreak", "sum 16:0123456789abcdef\n"};
  order.workdir = "/home/ann";
  order.env = {{"A", ""}, {"B", "x=y"}, {"C", "\n"}};
  order.input = "/dev/null";
  order.output = "/o/%t";
  order.error = "/e";
  order.append_output = true;
  order.tasks = 8;
  order.uid = 1000;
  order.gid = 1001;
  order.groups = {1001, 44};
  order.cores = {0, 2, 191};
  order.grant = "{\"devices\":[1]}\n";
  order.memory_mib = 1024;
  order.time_limit = 3600;
  order.warn_seconds = 60;
  order.warn_signal = 10;
  order.warn_shell = true;
  order.grace_seconds = 5;
  shim.cgroups = {"/sys/fs/cgroup/x"};
  return shim;
}

TEST(OrderFile, ComesBackAsItWas) {
  const ShimOrder shim = example();
  const auto read = decode_order(encode_order(shim));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->order.job, shim.order.job);
  EXPECT_EQ(read->order.attempt, shim.order.attempt);
  EXPECT_EQ(read->order.script, shim.order.script);
  EXPECT_EQ(read->order.command, shim.order.command);
  EXPECT_EQ(read->order.env, shim.order.env);
  EXPECT_EQ(read->order.groups, shim.order.groups);
  EXPECT_EQ(read->order.cores, shim.order.cores);
  EXPECT_EQ(read->order.grant, shim.order.grant);
  EXPECT_EQ(read->order.tasks, 8);
  EXPECT_TRUE(read->order.warn_shell);
  EXPECT_EQ(read->cgroups, shim.cgroups);
  EXPECT_EQ(encode_order(*read), encode_order(shim));
}

TEST(OrderFile, EveryCutAndEveryFlippedBitIsSeen) {
  const std::string good = encode_order(example());
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode_order(std::string_view(good).substr(0, size))) << size;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_order(bad)) << bit;
  }
  EXPECT_FALSE(decode_order(good + "x"));
}

TEST(OrderFile, RefusesWhatNobodyCouldCarryOut) {
  const auto with = [](const char* name, std::string_view value) {
    FieldWriter out("order");
    out.add("attempt", std::string_view("1.1"));
    out.add("arg", std::string_view("true"));
    out.add(name, value);
    return decode_order(std::move(out).finish());
  };
  EXPECT_TRUE(with("tasks", "1"));
  EXPECT_TRUE(with("from_the_future", "anything"));  // a newer version's: skipped
  for (const auto& [name, value] : std::vector<std::pair<const char*, std::string_view>>{
           {"tasks", "0"},
           {"tasks", "4097"},
           {"tasks", "one"},
           {"uid", "-1"},
           {"uid", "4294967295"},
           {"warn_signal", "0"},
           {"warn_signal", "65"},
           {"cores", "1,,2"},
           {"cores", "-1"},
           {"cores", "8192"},
           {"env", "no equals"},
           {"env", "=x"},
           {"attempt", "0.1"},
           {"attempt", "1"},
           {"workdir", std::string_view("a\0b", 3)},
           {"grace_seconds", "-1"},
           {"append", "2"},
           {"time_limit", "9223372036854775807"}})
    EXPECT_FALSE(with(name, value)) << name << "=" << value;
  FieldWriter empty("order");
  empty.add("attempt", std::string_view("1.1"));
  EXPECT_EQ(decode_order(std::move(empty).finish()).error().text(), "it names no program");
}

TEST(ExitFile, ComesBackAsItWas) {
  ExitRecord record;
  record.job = 17;
  record.attempt = {3, 18};
  record.exit_code = 255;
  record.signal = 9;
  record.timed_out = true;
  record.stopped = Stopped::Killed;
  record.was_started = false;
  record.why = "ends\nhere";
  record.boot_id = "b";
  record.begun_clock = 1;
  record.ended_clock = 2;
  record.cpu_seconds = 1.5;
  record.max_rss_kib = 4096;
  const std::string bytes = encode_exit(record);
  const auto read = decode_exit(bytes);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(encode_exit(*read), bytes);
  EXPECT_EQ(read->why, record.why);
  EXPECT_EQ(read->stopped, Stopped::Killed);
  EXPECT_DOUBLE_EQ(read->cpu_seconds, 1.5);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_exit(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(decode_exit(encode_order(example())));
}

TEST(AttemptName, IsReadBackOnlyAsWritten) {
  EXPECT_EQ(attempt_name({3, 17}), "3.17");
  EXPECT_EQ(attempt_named("3.17"), (AttemptId{3, 17}));
  for (const char* bad :
       {"", "3", "3.", ".3", "0.1", "3.17.tmp", "-1.1", "3. 1", "99999999999999999999.1"})
    EXPECT_FALSE(attempt_named(bad)) << bad;
}

}  // namespace
}  // namespace berth
