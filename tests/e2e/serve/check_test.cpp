// `berth serve --check` and a start give the same answer, and a start that is refused has written
// nothing.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>

#include <fmt/format.h>

#include "e2e/serve/served.h"

namespace berth::test::check_tests {
namespace {

class ServeCheck : public ::testing::Test {
 protected:
  /// What both say of this configuration; the start must not get as far as serving.
  std::string refusal(const std::string& config) {
    const std::string file = folder.file(
        "serve.yaml",
        fmt::format("state_dir: {0}/state\ncluster: 1x1\n{1}\n", folder.path(), config));
    const Ran check = berth(folder, {"serve", "--config", file, "--check"});
    const Ran start = berth(folder, {"serve", "--config", file});
    EXPECT_NE(check.exit, 0) << config << "\n" << check.out;
    EXPECT_EQ(check.exit, start.exit) << config;
    EXPECT_EQ(check.err, start.err) << config;
    EXPECT_FALSE(folder.has("state/berth.db")) << config << ": the journal was begun";
    return check.err;
  }
  void expect(const std::string& config, const std::string& part) {
    const std::string said = refusal(config);
    EXPECT_NE(said.find(part), std::string::npos) << config << "\n" << said;
  }
  void make_certificate() {
    const Ran made = shell(folder,
                           "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
                           "-nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem");
    ASSERT_EQ(made.exit, 0) << made.err;
  }
  TempFolder folder;
};

TEST_F(ServeCheck, RefusesWhatAStartRefuses) {
  expect("listen: 0.0.0.0:0", "tokens would travel readable");
  expect("listen: somewhere:0", "is not an address");
  expect("listen: 127.0.0.1:port", "is not HOST:PORT");
  expect("tls: {certificate: cert.pem}", "both needed");
  expect("listen: 127.0.0.1:0\ntls: {certificate: none.pem, key: none.key}", "none.pem");
  expect("placement: nowhere", "nowhere");
  expect("estimator: dice", "dice");
  expect("cpu: some", "some");
  expect("policy: best", "best");
  expect("log_level: loud", "loud");
  expect("log_format: verse", "verse");
  expect("socket: /" + std::string(120, 'x'), "at most 107");
  folder.file("plain", "");
  expect("socket: " + folder / "plain", "is no socket");
  expect("run_dir: " + folder / "plain/below/jobs", "is no directory");
  expect("groups: [some]", "unix, table and any");
  expect("users: {ann: [vision]}", "a user has groups");
}

TEST_F(ServeCheck, RefusesAKeyThatIsMissingOrAnothers) {
  make_certificate();
  expect("listen: 0.0.0.0:0\ntls: {certificate: cert.pem, key: gone.pem}", "gone.pem");
  folder.file("key.pem", "no key");
  expect("listen: 0.0.0.0:0\ntls: {certificate: cert.pem, key: key.pem}", "key.pem");
}

TEST_F(ServeCheck, WarnsOfAKeyThatEverybodyCanRead) {
  make_certificate();
  const std::string file = folder.file(
      "serve.yaml", fmt::format("state_dir: {0}/state\ncluster: 1x1\nlisten: 127.0.0.1:0\n"
                                "tls: {{certificate: {0}/cert.pem, key: {0}/key.pem}}\n",
                                folder.path()));
  ASSERT_EQ(::chmod((folder / "key.pem").c_str(), 0644), 0);
  const Ran open = berth(folder, {"serve", "--config", file, "--check"});
  EXPECT_EQ(open.exit, 0) << open.err;
  EXPECT_NE(open.err.find("can read this key"), std::string::npos) << open.err;
  ASSERT_EQ(::chmod((folder / "key.pem").c_str(), 0600), 0);
  const Ran closed = berth(folder, {"serve", "--config", file, "--check"});
  EXPECT_EQ(closed.exit, 0) << closed.err;
  EXPECT_EQ(closed.err, "");
}

// A life that never served would still count as one, and its number would be used up.
TEST(Serve, WhereSomebodyListensNoLifeBegins) {
  Served served;
  ASSERT_TRUE(served.begin());
  const TempFolder other;
  const Ran second = berth(other, {"serve", "--state-dir", other / "state", "--socket",
                                   served.socket(), "--cluster", "1x1"});
  EXPECT_EQ(second.exit, 1);
  EXPECT_NE(second.err.find("another scheduler listens there"), std::string::npos) << second.err;
  EXPECT_EQ(second.err.find("a new life begins"), std::string::npos) << second.err;
  EXPECT_FALSE(other.has("state/berth.db"));
  EXPECT_TRUE(served.answers());
}

}  // namespace
}  // namespace berth::test::check_tests
