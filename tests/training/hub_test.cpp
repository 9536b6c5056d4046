// The hub as training code meets it: over its socket.
#include "training/hub.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/temporary_directory.h"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

class Client {
 public:
  explicit Client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    is_connected_ =
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  [[nodiscard]] bool is_connected() const { return is_connected_; }
  bool send(const std::string& line) {
    const std::string text = line + "\n";
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  bool send(const Json& json) { return send(json.dump()); }
  /// The next line; discarded if the hub hangs up or says nothing for 10 s.
  Json receive() {
    for (;;) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        const std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Json::parse(line, nullptr, false);
      }
      if (!read_more()) return Json(Json::value_t::discarded);
    }
  }
  [[nodiscard]] bool is_hung_up() {
    while (read_more()) {
    }
    return is_hung_up_;
  }

 private:
  bool read_more() {
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, 10'000) != 1) return false;
    char bytes[4096];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (got <= 0) {
      is_hung_up_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  Descriptor socket_;
  bool is_connected_ = false;
  bool is_hung_up_ = false;
  std::string buffer_;
};

Json hello(JobNumber job, const std::string& token, int rank = 0) {
  return {{"type", "hello"}, {"v", 1}, {"job", job}, {"token", token}, {"rank", rank}};
}
Json report(std::int64_t iteration, double loss = 1) {
  return {{"type", "report"}, {"iteration", iteration}, {"loss", loss}, {"batch", 8}};
}

class Hub : public testing::Test {
 protected:
  void open(HubOptions options = {}) {
    options.path = path();
    HubCalls calls{.expected = [this](JobNumber job) -> std::optional<ExpectedAttempt> {
                     const std::lock_guard lock{mutex_};
                     const auto found = expected_.find(job);
                     if (found == expected_.end()) return std::nullopt;
                     return found->second;
                   },
                   .changed =
                       [this](JobNumber job, const TrainingFigures& figures) {
                         const std::lock_guard lock{mutex_};
                         news_[job].push_back(figures);
                         heard_.notify_all();
                       },
                   .resized =
                       [this](JobNumber, const Resized& answer) {
                         const std::lock_guard lock{mutex_};
                         answers_.emplace_back(answer.id, answer.done);
                       },
                   .learned = {}};
    auto opened = TrainingHub::open(options, std::move(calls));
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    hub_ = *std::move(opened);
  }
  [[nodiscard]] std::string path() const { return directory_.path() + "/training.sock"; }
  void expect(JobNumber job, const std::string& token, std::uint32_t uid = ::getuid()) {
    const std::lock_guard lock{mutex_};
    expected_[job].token = token;
    expected_[job].uid = uid;
  }
  bool wait_for_iteration(JobNumber job, double iteration) {
    std::unique_lock lock{mutex_};
    return heard_.wait_for(lock, 20s, [&] {
      return !news_[job].empty() && news_[job].back().iterations == iteration;
    });
  }
  Client greeted(JobNumber job, const std::string& token, int rank = 0) {
    Client client{path()};
    client.send(hello(job, token, rank));
    EXPECT_EQ(client.receive().value("type", ""), "welcome");
    return client;
  }

  TemporaryDirectory directory_;
  std::mutex mutex_;
  std::condition_variable heard_;
  std::map<JobNumber, ExpectedAttempt> expected_;
  std::map<JobNumber, std::vector<TrainingFigures>> news_;
  std::vector<std::pair<std::uint64_t, bool>> answers_;
  std::unique_ptr<TrainingHub> hub_;
};

TEST_F(Hub, HearsAJobAndTellsItItsTerms) {
  open();
  expect(5, "secret");
  hub_->tell(5, {.sub_steps = 2, .cores_milli = 3000});  // before it is there
  Client client{path()};
  ASSERT_TRUE(client.send(hello(5, "secret")));
  EXPECT_EQ(client.receive().value("type", ""), "welcome");
  EXPECT_EQ(client.receive(), (Json{{"type", "terms"}, {"sub_steps", 2}, {"cores", 3.0}}));
  client.send(report(10, 0.5));
  ASSERT_TRUE(wait_for_iteration(5, 10));
  EXPECT_EQ(hub_->view(5)->loss, 0.5);
  hub_->tell(5, {.sub_steps = 4});
  EXPECT_EQ(client.receive().value("sub_steps", 0), 4);
  hub_->ask_checkpoint(5, 12, AfterCheckpoint::Stop);
  EXPECT_EQ(client.receive(),
            (Json{{"type", "checkpoint"}, {"deadline_seconds", 12.0}, {"stop", true}}));
  hub_->announce_size(5, 2);
  EXPECT_EQ(client.receive().value("gpus", 0), 2);
  client.send(Json{{"type", "checkpointed"}, {"iteration", 10}});
  client.send(Json{{"type", "bye"}});
  EXPECT_TRUE(client.is_hung_up());
  EXPECT_EQ(hub_->view(5)->checkpoint_iteration, 10);
}

TEST_F(Hub, AsksForAnotherSizeUntilItIsAnswered) {
  open();
  expect(5, "secret");
  {
    const std::lock_guard lock{mutex_};
    expected_[5].devices = {1, 3};
  }
  Client silent = greeted(5, "secret", 1);
  EXPECT_TRUE(hub_->is_listening(5));
  EXPECT_FALSE(hub_->can_resize(5));
  Json able = hello(5, "secret");
  able["resizes"] = true;
  auto client = std::make_unique<Client>(path());
  client->send(able);
  EXPECT_EQ(client->receive().value("type", ""), "welcome");
  // What it has, so that it can make that true.
  const Json held = client->receive();
  EXPECT_EQ(held.value("id", -1), 0);
  EXPECT_EQ(held.value("devices", std::vector<int>{}), (std::vector<int>{1, 3}));
  client->send(Json{{"type", "resized"}, {"id", 0}, {"done", true}});
  EXPECT_TRUE(hub_->can_resize(5));
  hub_->ask_resize(5, {.id = 77, .devices = {1}, .cores = {}, .deadline_seconds = 5});
  EXPECT_EQ(client->receive().value("id", 0), 77);
  client = std::make_unique<Client>(path());  // it lost the connection and comes again
  client->send(able);
  EXPECT_EQ(client->receive().value("type", ""), "welcome");
  const Json again = client->receive();
  EXPECT_EQ(again.value("id", 0), 77);
  EXPECT_EQ(again.value("devices", std::vector<int>{}), std::vector<int>{1});
  client->send(Json{{"type", "resized"}, {"id", 76}, {"done", true}});  // of another question
  client->send(Json{{"type", "resized"}, {"id", 77}, {"done", true}});
  client->send(Json{{"type", "resized"}, {"id", 77}, {"done", false}});  // it has answered
  client->send(report(3, 0.5));
  ASSERT_TRUE(wait_for_iteration(5, 3));
  const std::lock_guard lock{mutex_};
  EXPECT_EQ(answers_, (std::vector<std::pair<std::uint64_t, bool>>{{77, true}}));
}

TEST_F(Hub, RefusesWhoeverMayNotSpeak) {
  open();
  expect(5, "secret");
  for (const Json& words : {hello(5, "wrong!"), hello(5, ""), hello(6, "secret"),
                            Json{{"type", "hello"}, {"v", 9}, {"job", 5}, {"token", "secret"}}}) {
    Client client{path()};
    client.send(words);
    EXPECT_EQ(client.receive().value("type", ""), "error") << words;
    EXPECT_TRUE(client.is_hung_up()) << words;
  }
  EXPECT_FALSE(hub_->view(5).has_value());
}

TEST_F(Hub, AnotherUserMayNotSpeakEvenWithTheToken) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root: a peer of another user is made";
  open();
  expect(5, "secret", 12'345);
  EXPECT_EQ(greeted(5, "secret").is_connected(), true);  // root may
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(23'456) != 0) ::_exit(3);
    Client client{path()};
    client.send(hello(5, "secret"));
    ::_exit(client.receive().value("type", "") == "error" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Hub, AnswersNonsenseAndGoesOn) {
  open();
  expect(5, "secret");
  Client client{path()};
  client.send(report(1));
  EXPECT_EQ(client.receive().value("why", ""), "say hello first");
  client.send(std::string("not json at all"));
  EXPECT_EQ(client.receive().value("why", ""), "not JSON");
  client.send(hello(5, "secret"));
  EXPECT_EQ(client.receive().value("type", ""), "welcome");
  client.send(std::string(R"({"type":"report","iteration":"many"})"));
  EXPECT_EQ(client.receive().value("type", ""), "error");
  client.send(report(3));
  EXPECT_TRUE(wait_for_iteration(5, 3));
}

TEST_F(Hub, DropsALineThatNeverEndsAndAFlood) {
  open();
  expect(5, "secret");
  Client endless{path()};
  const std::string piece(60'000, 'x');
  EXPECT_TRUE(endless.is_connected());
  endless.send(piece);
  EXPECT_TRUE(endless.is_hung_up());
  Client flood = greeted(5, "secret");
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += report(i).dump() + "\n";
  flood.send(lines);
  EXPECT_TRUE(flood.is_hung_up());
}

TEST_F(Hub, DropsAPeerThatDoesNotListen) {
  open();
  expect(5, "secret");
  Client deaf = greeted(5, "secret");
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  for (int i = 0; hub_->connections() == 1; ++i) {  // it never reads: its buffers fill
    hub_->tell(5, {.sub_steps = 1 + i % 1000});
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_EQ(hub_->connections(), 0U);
}

TEST_F(Hub, TakesSoManyConnectionsAndNoMore) {
  open({.path = {}, .most_connections = 3});
  expect(5, "secret");
  std::vector<Client> clients;
  for (int rank = 0; rank < 3; ++rank) clients.push_back(greeted(5, "secret", rank));
  Client late{path()};
  EXPECT_EQ(late.receive().value("why", ""), "too many connections");
  EXPECT_TRUE(late.is_hung_up());
}

TEST_F(Hub, DropsWhoeverNeverSaysHello) {
  open({.path = {}, .hello_seconds = 0.05});
  Client client{path()};
  EXPECT_TRUE(client.is_hung_up());
}

TEST_F(Hub, APhaseIsToldAndAnAttemptBeginsWithTraining) {
  open();
  expect(5, "secret");
  Client client = greeted(5, "secret");
  EXPECT_EQ(hub_->phase(5), Phase::Training);
  const auto told = [&] {
    const auto until = std::chrono::steady_clock::now() + 20s;
    std::vector<std::pair<JobNumber, Phase>> phases;
    while (phases.empty() && std::chrono::steady_clock::now() < until) {
      phases = hub_->take_phases();
      if (phases.empty()) std::this_thread::sleep_for(5ms);
    }
    return phases;
  };
  using Phases = std::vector<std::pair<JobNumber, Phase>>;
  client.send(Json{{"type", "phase"}, {"phase", "validation"}});
  EXPECT_EQ(told(), (Phases{{5, Phase::Validation}}));
  EXPECT_EQ(hub_->phase(5), Phase::Validation);
  client.send(Json{{"type", "phase"}, {"phase", "lunch"}});
  EXPECT_EQ(client.receive().value("type", ""), "error");
  client.send(Json{{"type", "phase"}, {"phase", "training"}});
  EXPECT_EQ(told(), (Phases{{5, Phase::Training}}));

  client.send(Json{{"type", "phase"}, {"phase", "validation"}});
  EXPECT_EQ(told(), (Phases{{5, Phase::Validation}}));
  expect(5, "another");
  Client next = greeted(5, "another");
  next.send(report(1, 0.5));
  EXPECT_EQ(told(), (Phases{{5, Phase::Training}}));
}

TEST_F(Hub, TheLowestRankThatReportsCounts) {
  open();
  expect(5, "secret");
  Client second = greeted(5, "secret", 1);
  second.send(report(7));
  ASSERT_TRUE(wait_for_iteration(5, 7));
  Client first = greeted(5, "secret", 0);
  first.send(report(8));
  ASSERT_TRUE(wait_for_iteration(5, 8));
  second.send(report(100));
  first.send(report(9));
  ASSERT_TRUE(wait_for_iteration(5, 9));
  EXPECT_EQ(hub_->view(5)->iterations, 9);
}

TEST_F(Hub, AnOldAttemptMayNotSpeakForTheNewOne) {
  open();
  expect(5, "first");
  Client old = greeted(5, "first");
  old.send(report(50));
  ASSERT_TRUE(wait_for_iteration(5, 50));
  expect(5, "second");
  Client late{path()};
  late.send(hello(5, "first"));
  EXPECT_EQ(late.receive().value("type", ""), "error");
  Client now = greeted(5, "second");
  now.send(report(40));  // from its checkpoint
  EXPECT_TRUE(wait_for_iteration(5, 40));
}

TEST_F(Hub, ANewHubTakesTheSocketOver) {
  open();
  hub_.reset();
  EXPECT_FALSE(std::filesystem::exists(path()));
  open();
  expect(5, "secret");
  Client client = greeted(5, "secret");
  EXPECT_TRUE(client.is_connected());
}

TEST_F(Hub, NewsComeAtMostOnceASecondAndTheLastOneDoes) {
  open();
  expect(5, "secret");
  Client client = greeted(5, "secret");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= 100; ++i) client.send(report(i));
  ASSERT_TRUE(wait_for_iteration(5, 100));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::lock_guard lock{mutex_};
  EXPECT_LE(static_cast<double>(news_[5].size()), seconds + 2);
}

TEST_F(Hub, DoesNothingWhileNobodySpeaks) {
  open();
  expect(5, "secret");
  Client client = greeted(5, "secret");
  client.send(report(1));
  ASSERT_TRUE(wait_for_iteration(5, 1));
  const auto cpu = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double before = cpu();
  pollfd nothing{-1, 0, 0};
  ::poll(&nothing, 1, 1500);  // an interval to measure over, not a wait for anything
  EXPECT_LT(cpu() - before, 0.015);
}

TEST_F(Hub, APathThatIsTooLongOrTakenIsAnError) {
  EXPECT_FALSE(TrainingHub::open({.path = "/" + std::string(200, 'x')}, {}).has_value());
  const std::string file = directory_.path() + "/file";
  { std::unique_ptr<FILE, int (*)(FILE*)> made{std::fopen(file.c_str(), "w"), &std::fclose}; }
  EXPECT_FALSE(TrainingHub::open({.path = file}, {}).has_value());
  EXPECT_TRUE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace berth::test
