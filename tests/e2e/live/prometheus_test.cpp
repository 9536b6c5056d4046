// A real Prometheus reads what we write. Skips where it is not installed (Debian: prometheus).
#include <csignal>
#include <regex>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/http.h"
#include "e2e/live/served.h"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

/// The other side of a scrape, on a port it chose itself.
class Prometheus {
 public:
  explicit Prometheus(const std::string& config) {
    const std::string path = folder_.file("prometheus.yml", config);
    child_ = ::fork();
    if (child_ == 0) {
      const std::string file = "--config.file=" + path,
                        data = "--storage.tsdb.path=" + folder_ / "data";
      if (std::freopen((folder_ / "log").c_str(), "w", stderr) == nullptr) std::_Exit(126);
      ::execlp("prometheus", "prometheus", file.c_str(), data.c_str(),
               "--web.listen-address=127.0.0.1:0", nullptr);
      std::_Exit(127);
    }
    static const std::regex listens(R"re(Listening on.*address=127\.0\.0\.1:(\d+))re");
    static_cast<void>(eventually([&] {
      std::smatch found;
      const std::string log = folder_.read("log");
      if (std::regex_search(log, found, listens))
        port_ = static_cast<std::uint16_t>(std::stoi(found[1]));
      return port_ != 0;
    }));
    EXPECT_NE(port_, 0) << folder_.read("log");
  }
  ~Prometheus() {
    ::kill(child_, SIGTERM);
    ::waitpid(child_, nullptr, 0);
  }
  Prometheus(const Prometheus&) = delete;
  Prometheus& operator=(const Prometheus&) = delete;

  /// The values of an instant query, by the label `by`.
  [[nodiscard]] std::map<std::string, std::string> values(const std::string& query,
                                                          const std::string& by) const {
    client::Endpoint endpoint;
    endpoint.host = "127.0.0.1";
    endpoint.port = port_;
    client::HttpClient http{endpoint};
    const auto reply =
        http.send({.target = "/api/v1/query?query=" + client::percent_encoded(query)});
    std::map<std::string, std::string> found;
    if (!reply || reply->status != 200) return found;
    const json answer = json::parse(reply->body, nullptr, false);
    if (!answer.is_object() || answer.value("status", "") != "success") return found;
    for (const json& one : answer["data"]["result"])
      found[one["metric"].value(by, "")] = one["value"][1].get<std::string>();
    return found;
  }

 private:
  TempFolder folder_;
  int child_ = -1;
  std::uint16_t port_ = 0;
};

std::string scrape_of(std::uint16_t port, const std::string& token_file) {
  return "scrape_configs:\n"
         "  - job_name: berth\n"
         "    scrape_interval: 1s\n"
         "    authorization: {credentials_file: " +
         token_file +
         "}\n"
         "    static_configs: [{targets: ['127.0.0.1:" +
         std::to_string(port) + "']}]\n";
}

TEST(Metrics, AreScrapedByARealPrometheus) {
  if (!has_program("prometheus")) GTEST_SKIP() << "prometheus is not installed";
  const Served served;
  ASSERT_NE(served.port(), 0);
  const Ran token = served.run("token make prometheus");
  ASSERT_EQ(token.exit, 0) << token.err;
  const std::string token_file =
      served.folder().file("token", token.out.substr(0, token.out.find('\n')));
  EXPECT_EQ(served.run("submit --output /dev/null --gpus 2 -- sleep 300").exit, 0);
  EXPECT_EQ(served.run("submit --output /dev/null --hold -- true").exit, 0);
  EXPECT_EQ(served.run("submit --output /dev/null --gpus 4 -- true").exit, 0);

  const Prometheus prometheus{scrape_of(served.port(), token_file)};
  std::map<std::string, std::string> jobs;
  EXPECT_TRUE(eventually([&] {
    jobs = prometheus.values("berth_jobs", "state");
    return jobs["running"] == "1" && jobs["held"] == "1" && jobs["pending"] == "1";
  })) << testing::PrintToString(jobs);
  EXPECT_EQ(prometheus.values("berth_gpus", "state")["used"], "2");
  EXPECT_EQ(prometheus.values("up", "job")["berth"], "1");
}

TEST(Metrics, WithoutATokenAreRefused) {
  if (!has_program("prometheus")) GTEST_SKIP() << "prometheus is not installed";
  const Served served;
  ASSERT_NE(served.port(), 0);
  const std::string token_file = served.folder().file("token", "wrong");
  const Prometheus prometheus{scrape_of(served.port(), token_file)};
  EXPECT_TRUE(eventually([&] { return prometheus.values("up", "job")["berth"] == "0"; }));
  EXPECT_TRUE(prometheus.values("berth_jobs", "state").empty());
}

TEST(Metrics, PassPromtool) {
  if (!has_program("promtool")) GTEST_SKIP() << "promtool is not installed";
  const Served served;
  ASSERT_NE(served.port(), 0);
  EXPECT_EQ(served.run("submit --output /dev/null --wait -- true").exit, 0);
  client::Endpoint endpoint;
  endpoint.socket = served.folder() / "s";
  client::HttpClient http{endpoint};
  const auto text = http.send({.target = "/metrics"});
  ASSERT_TRUE(text && text->status == 200);
  served.folder().file("metrics", text->body);
  const Ran checked = shell(served.folder(), "promtool check metrics < metrics");
  EXPECT_EQ(checked.exit, 0) << checked.out << checked.err << text->body;
  EXPECT_THAT(text->body, HasSubstr("berth_jobs_ended_total{outcome=\"completed\"} 1"));
}

}  // namespace
}  // namespace berth::test
