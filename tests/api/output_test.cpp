// Output files through the API: ranges, growth, and nobody else's files.
#include <gtest/gtest.h>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "api/owned_file.h"
#include "api/server_fixture.h"

namespace berth {
namespace {

using testing::RawClient;

/// Jobs belong to the user who runs the tests: files are opened with that user's rights.
class Output : public testing::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    const passwd* const me = ::getpwuid(::getuid());
    ASSERT_NE(me, nullptr);
    service_.add_token("me", {me->pw_name, me->pw_uid, me->pw_gid, Role::User});
    start();
    job_ = submit("me");
    file_ = folder_ / "out.txt";
    service_.set_output(job_, file_, folder_ / "err.txt");
  }
  void write(const std::string& text) { std::ofstream(file_, std::ios::app) << text << std::flush; }
  [[nodiscard]] std::string path(const std::string& query = "") const {
    return fmt::format("/api/v1/jobs/{}/output{}", job_, query);
  }

  JobNumber job_ = 0;
  std::filesystem::path file_;
};

TEST_F(Output, RangesOfAFile) {
  EXPECT_EQ(ask("GET", path(), "me").status, 404) << "because nothing is written yet";
  write("0123456789");
  std::ofstream(folder_ / "err.txt") << "oops";
  const auto all = ask("GET", path(), "me");
  EXPECT_EQ(all.body, "0123456789");
  EXPECT_EQ(all.header("berth-next-offset"), "10");
  EXPECT_EQ(all.header("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(ask("GET", path("?offset=7"), "me").body, "789");
  EXPECT_EQ(ask("GET", path("?offset=-3"), "me").body, "789");
  EXPECT_EQ(ask("GET", path("?offset=2&limit=3"), "me").body, "234");
  EXPECT_EQ(ask("GET", path("?offset=99"), "me").body, "");
  EXPECT_EQ(ask("GET", path("?stream=err"), "me").body, "oops");
  EXPECT_EQ(ask("GET", path("?stream=both"), "me").status, 400);
  EXPECT_EQ(ask("GET", path("?follow=1&limit=3"), "me").status, 400);
}

TEST_F(Output, LargeFilesComeWholeAndKeepTheConnection) {
  std::string large;
  while (large.size() < 1'000'000) large += fmt::format("line {}\n", large.size());
  write(large);
  RawClient client = tcp();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(client.ask(request("GET", path(), "me")).value().body, large);
}

TEST_F(Output, FollowsUntilTheJobIsOver) {
  RawClient client = tcp();
  client.send(request("GET", path("?follow=1"), "me"));
  EXPECT_NE(client.read_until("\r\n\r\n").find("200 OK"), std::string::npos)
      << "because a file that is not there yet may come";
  service_.run(job_);
  write("first\n");
  EXPECT_NE(client.read_until("first\n"), "");
  std::filesystem::resize_file(file_, 0);  // the next attempt begins anew
  write("again\n");
  EXPECT_NE(client.read_until("again\n"), "");
  std::filesystem::remove(file_);
  write("another\n");
  EXPECT_NE(client.read_until("another\n"), "");
  write("last\n");
  service_.finish(job_, LiveState::Completed);
  EXPECT_NE(client.read_until("last\n"), "");
  EXPECT_NE(client.read_until("0\r\n\r\n"), "");
}

TEST_F(Output, IsForTheOwnerAndForOperators) {
  write("secret");
  EXPECT_EQ(ask("GET", path(), "alice").status, 403);
  EXPECT_EQ(ask("GET", path("?follow=1"), "alice").status, 403);
  EXPECT_EQ(ask("GET", path(), "olga").body, "secret");
}

TEST_F(Output, OnlyRegularFilesAreRead) {
  service_.set_output(job_, "/dev/zero");
  EXPECT_EQ(ask("GET", path(), "me").status, 409);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  service_.set_output(job_, file_);
  EXPECT_EQ(ask("GET", path(), "me").status, 409) << "because a FIFO would block a thread";
  service_.set_output(job_, "/proc/self/fd/0");
  EXPECT_EQ(ask("GET", path(), "me").status, 403);
  service_.set_output(job_, "relative");
  EXPECT_EQ(ask("GET", path(), "me").status, 404);
}

TEST_F(Output, OfAnotherUserIsOpenedWithTheirRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can take another identity";
  ASSERT_NE(::getpwnam("nobody"), nullptr);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  write("of root");
  ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  service_.add_token("nobody", {"nobody", 65'534, 65'534, Role::User});
  job_ = submit("nobody");
  service_.set_output(job_, file_);
  EXPECT_EQ(ask("GET", path(), "nobody").status, 403) << "because nobody cannot read it";
  std::filesystem::create_symlink(file_, folder_ / "link");
  service_.set_output(job_, folder_ / "link");
  EXPECT_EQ(ask("GET", path(), "nobody").status, 403);
  EXPECT_EQ(ask("GET", path(), "root").status, 403) << "because the owner's right counts";
  service_.set_output(job_, "/etc/shadow");
  EXPECT_EQ(ask("GET", path(), "nobody").status, 403);
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  service_.set_output(job_, file_);
  EXPECT_EQ(ask("GET", path(), "nobody").body, "of root");
  // The thread has its own identity back: root's files can be read for root's job.
  ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  for (int i = 0; i < 8; ++i) {
    const auto file = api::open_as_owner(file_, "root");
    EXPECT_TRUE(file);
  }
}

}  // namespace
}  // namespace berth
