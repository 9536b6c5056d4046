// Nobody shuts out anybody else: by what they hold, by what they send half, by what they ask.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <fstream>

#include "api/fair_workers.h"
#include "api/server_fixture.h"

namespace berth {
namespace {

using namespace std::chrono_literals;
using api::CallerClass;
using api::ConnectionLimiter;
using api::ConnectionLimits;
using api::Holder;

// --- the rules, without sockets

struct Someone final : api::LimitedConnection {
  bool waits = true;
  [[nodiscard]] bool is_waiting() const noexcept override { return waits; }
};

class Doors : public ::testing::Test {
 protected:
  /// "in", "refused: CAUSE", or who gave way to it.
  std::string come(const Holder& holder, const std::string& name, bool waits = true) {
    const ConnectionLimiter::Answer answer = limiter.ask(holder, now);
    if (!answer.may_enter) return "refused: " + std::string(answer.cause);
    std::string said = "in";
    if (answer.gives_way) {
      said = fmt::format("for {}: {}", names.at(answer.gives_way.get()), answer.cause);
      limiter.leave(answer.gives_way);
    }
    const auto connection = std::make_shared<Someone>();
    connection->waits = waits;
    names[connection.get()] = name;
    kept.push_back(connection);
    limiter.enter(connection, holder, now);
    return said;
  }
  ConnectionLimiter limiter{ConnectionLimits{.strangers = 4,
                                             .of_one_address = 3,
                                             .users = 4,
                                             .of_one_user = 3,
                                             .admins = 2,
                                             .of_one_admin = 2}};
  ConnectionLimiter::Clock::time_point now{};
  std::map<api::LimitedConnection*, std::string> names;
  std::vector<std::shared_ptr<api::LimitedConnection>> kept;
  const Holder near{CallerClass::Strangers, "near"}, far{CallerClass::Strangers, "far"};
  const Holder ann{CallerClass::Users, "ann"}, bob{CallerClass::Users, "bob"},
      cy{CallerClass::Users, "cy"};
  const Holder root{CallerClass::Admins, "root"};
};

TEST_F(Doors, AStrangerIsNeverRefusedTheOldestGoes) {
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(come(near, name), "in");
  EXPECT_EQ(come(near, "d"), "for a: address");
  EXPECT_EQ(come(far, "e"), "in");
  EXPECT_EQ(come(far, "f"), "for b: strangers") << "because near has more";
  EXPECT_EQ(come({CallerClass::Strangers, "third"}, "g"), "for e: strangers")
      << "far and near have two";
}

TEST_F(Doors, RoomsDoNotTakeEachOthersPlaces) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(come(near, "n").find("refused"), std::string::npos);
    static_cast<void>(come(ann, "a", false));
  }
  EXPECT_EQ(come(bob, "b"), "in");
  EXPECT_EQ(come(root, "r"), "in");
}

TEST_F(Doors, AUserAtHisLimitIsRefusedUnlessHeLeftSomethingLyingAbout) {
  EXPECT_EQ(come(ann, "busy", false), "in");
  EXPECT_EQ(come(ann, "idle"), "in");
  EXPECT_EQ(come(ann, "young"), "in");
  EXPECT_EQ(come(ann, "x"), "refused: user") << "because a burst is told that it is one";
  now += 2s;
  EXPECT_EQ(come(ann, "y"), "for idle: user");
}

TEST_F(Doors, WhoHasMostGivesWayToWhoHasFewer) {
  for (const char* name : {"a1", "a2", "a3"}) EXPECT_EQ(come(ann, name, false), "in");
  EXPECT_EQ(come(bob, "b1"), "in");
  EXPECT_EQ(come(cy, "c1"), "for a1: users");
  EXPECT_EQ(come(bob, "b2"), "for a2: users");
  EXPECT_EQ(come(bob, "b3"), "refused: users") << "because nobody has more than bob";
}

TEST_F(Doors, LoopbackIsOneAddressAndSoIsANetworkOfSix) {
  const auto name = [](const char* address) { return api::stranger_at(address).name; };
  for (const char* address : {"127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.9"})
    EXPECT_EQ(name(address), "loopback") << address;
  EXPECT_EQ(name("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(name("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(name("2001:db8:1:2:3::4"), "2001:db8:1:2::/64");
  EXPECT_EQ(name("fe80::5%eth0"), "fe80::/64");
}

TEST_F(Doors, LimitsFitIntoTheDescriptorsThereAre) {
  const ConnectionLimits all = api::fitted({}, 65'536);
  EXPECT_EQ(all.users, ConnectionLimits{}.users);
  const ConnectionLimits few = api::fitted({}, 1'024);
  EXPECT_LE(few.strangers + few.users + few.admins, 768U);
  EXPECT_LE(few.of_one_user, few.users / 2);
  EXPECT_GE(few.admins, 32U);
}

// --- workers

TEST(FairWorkers, WhoAsksMuchWaitsBehindItself) {
  std::mutex mutex;
  std::condition_variable changed;
  bool may_go = false;
  std::atomic<int> stuck = 0;
  std::vector<std::string> done;
  {
    api::FairWorkers workers(4);
    using Right = api::FairWorkers::Right;
    const auto block = [&] {
      ++stuck;
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return may_go; });
    };
    for (int i = 0; i < 50; ++i) workers.post("ann", Right::Common, block);
    const auto note = [&](const char* name) {
      return [&, name] {
        const std::lock_guard lock(mutex);
        done.emplace_back(name);
        changed.notify_all();
      };
    };
    workers.post("bob", Right::Common, note("bob"));
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 20s, [&] { return done.size() == 1; }));
    EXPECT_LE(stuck, 2) << "because ann has half of the threads at most";
    lock.unlock();
    for (const char* name : {"cy", "dan"}) {
      for (int i = 0; i < 5; ++i) workers.post(name, Right::Common, block);
    }
    workers.post("root", Right::Admin, note("root"));
    lock.lock();
    ASSERT_TRUE(changed.wait_for(lock, 20s, [&] { return done.size() == 2; }))
        << "because a thread is the admins' alone";
    may_go = true;
    lock.unlock();
    changed.notify_all();
  }
  EXPECT_EQ(done, (std::vector<std::string>{"bob", "root"}));
}

// --- with sockets

/// Connects from an address of its own choice; the descriptor, or -1.
int connect_from(const std::string& from, std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{}, there{};
  here.sin_family = there.sin_family = AF_INET;
  ::inet_pton(AF_INET, from.c_str(), &here.sin_addr);
  ::inet_pton(AF_INET, "127.0.0.1", &there.sin_addr);
  there.sin_port = htons(port);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
      ::connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0)
    return fd;
  ::close(fd);
  return -1;
}

int connect_local(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un there{};
  there.sun_family = AF_UNIX;
  path.copy(there.sun_path, sizeof there.sun_path - 1);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0)
    return fd;
  ::close(fd);
  return -1;
}

class Crowd {
 public:
  ~Crowd() {
    for (const int fd : all_) ::close(fd);
  }
  void add(int fd) {
    ASSERT_GE(fd, 0);
    all_.push_back(fd);
    constexpr std::string_view kHalf = "GET /api/v1/jobs HTTP/1.1\r\nHost: he";
    static_cast<void>(::send(fd, kHalf.data(), kHalf.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }

 private:
  std::vector<int> all_;
};

class CrowdedServer : public testing::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    log_file_ = folder_ / "log";
    log_fd_ = ::open(log_file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log_ = std::make_unique<Logger>(Logger::Options{.fd = log_fd_});
    options_.log = log_.get();
    service_.add_peer(::getuid(), {"alice", ::getuid(), ::getgid(), Role::User});
  }
  void TearDown() override {
    ServerTest::TearDown();
    ::close(log_fd_);
  }
  /// Answered within a second, as a person would call answered.
  void expect_quick(testing::RawClient client, const std::string& token) {
    const auto begun = std::chrono::steady_clock::now();
    const auto answer = client.ask(request("GET", "/api/v1/jobs", token));
    ASSERT_TRUE(answer) << token;
    EXPECT_EQ(answer->status, 200) << token << " " << answer->body;
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 1s) << token;
  }
  [[nodiscard]] std::string logged() const {
    std::ifstream file(log_file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static int lines_with(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++count;
    return count;
  }
  std::filesystem::path log_file_;
  int log_fd_ = -1;
  std::unique_ptr<Logger> log_;
};

TEST_F(CrowdedServer, HalfSentRequestsFromManyAddressesShutNobodyOut) {
  start();
  Crowd crowd;
  for (int address = 2; address <= 6; ++address) {
    for (int i = 0; i < 256; ++i)
      crowd.add(connect_from(fmt::format("127.0.0.{}", address), bound_.port));
  }
  for (const char* token : {"root", "alice", "bob", "olga"}) expect_quick(tcp(), token);
  expect_quick(local(), "");
  const std::string metrics = ask("GET", "/metrics").body;
  EXPECT_NE(metrics.find("berth_api_cut_connections_total{cause=\"address\"} "), std::string::npos)
      << metrics;
  EXPECT_EQ(lines_with(logged(), "cause=address"), 1) << logged();
}

TEST_F(CrowdedServer, AThousandConnectionsOfOneUserAreThatUsersTrouble) {
  start();
  Crowd crowd;
  for (int i = 0; i < 1'000; ++i) crowd.add(connect_local(bound_.unix_path));
  // alice holds all she may: her next is refused, and answered so; others do not notice.
  const auto refused = local().read_answer();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  for (const char* token : {"root", "bob", "olga"}) expect_quick(tcp(), token);
  service_.add_peer(::getuid(), {"root", 0, 0, Role::Admin});
  expect_quick(local(), "");
  const std::string metrics = ask("GET", "/metrics", "bob").body;
  EXPECT_NE(metrics.find("berth_api_refused_connections_total{cause=\"user\"} 74"),
            std::string::npos)
      << "1000 + 1 - 256 = 745\n"
      << metrics;
  EXPECT_EQ(lines_with(logged(), "cause=user"), 1) << logged();
}

TEST_F(CrowdedServer, AStreamCountsAsItsUsers) {
  options_.limits.connections.of_one_user = 3;
  start();
  std::vector<testing::RawClient> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(tcp());
    streams.back().send(request("GET", "/api/v1/events", "alice"));
    EXPECT_NE(streams.back().read_until("\r\n\r\n"), "");
  }
  const auto refused = tcp().ask(request("GET", "/api/v1/whoami", "alice"));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(ask("GET", "/api/v1/whoami", "bob").status, 200);
  streams.pop_back();
  EXPECT_TRUE(comes_true([&] { return ask("GET", "/api/v1/whoami", "alice").status == 200; }));
}

TEST_F(CrowdedServer, BodiesOfOneUserDoNotFillTheMemoryOfAll) {
  options_.limits.body_bytes_of_one = 16U << 20U;
  start();
  const std::string half =
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n"
      "Content-Type: application/json\r\nContent-Length: 8000000\r\nExpect: 100-continue\r\n\r\n";
  const auto begin = [&](const std::string& token) {
    testing::RawClient client = tcp();
    std::string head = half;
    client.send(head.replace(head.find("{}"), 2, token));
    return client;
  };
  std::vector<testing::RawClient> uploads;
  for (int i = 0; i < 2; ++i) {
    uploads.push_back(begin("alice"));
    EXPECT_NE(uploads.back().read_until("100 Continue\r\n\r\n"), "");
  }
  EXPECT_NE(begin("alice").read_until(" 503 "), "") << "because 24 MB are more than 16 MiB";
  testing::RawClient other = begin("bob");
  EXPECT_NE(other.read_until("100 Continue"), "");
  uploads.pop_back();
  EXPECT_TRUE(comes_true([&] {
    testing::RawClient again = tcp();
    again.send(request("POST", "/api/v1/jobs", "alice", std::string(8'000'000, ' ') + "[1]"));
    const auto answer = again.read_answer();
    return answer && answer->status == 400;
  })) << "because what is given up is given back";
}

TEST_F(CrowdedServer, WhoSaysNothingAtFirstIsNotWaitedForAsLongAsAKnownClient) {
  options_.limits.header_time = 1s;
  start();
  testing::RawClient silent = tcp();
  testing::RawClient known = tcp();
  EXPECT_EQ(known.ask(request("GET", "/healthz", "")).value().status, 200);
  EXPECT_TRUE(silent.is_closed_by_peer());
  EXPECT_EQ(known.ask(request("GET", "/healthz", "")).value().status, 200);
}

// Out of descriptors the server neither stops to listen nor runs in circles: who is idle makes
// room.
TEST_F(CrowdedServer, AProcessWithoutDescriptorsServesAgainWhenThereAreSome) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "the undefined-behaviour sanitizer takes what it cannot open a pipe for as broken";
#endif
  start();
  testing::RawClient idle = local();
  EXPECT_EQ(idle.ask(request("GET", "/healthz", "")).value().status, 200);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(client, 0);
  const rlimit few{.rlim_cur = 300, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> all;
  for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.push_back(fd);
  EXPECT_EQ(errno, EMFILE);
  const auto begun = std::chrono::steady_clock::now();
  sockaddr_un there{};
  there.sun_family = AF_UNIX;
  bound_.unix_path.copy(there.sun_path, sizeof there.sun_path - 1);
  EXPECT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  const std::string question = request("GET", "/healthz", "");
  EXPECT_GT(::send(client, question.data(), question.size(), MSG_NOSIGNAL), 0);
  std::array<char, 64> answer{};
  EXPECT_GT(::read(client, answer.data(), answer.size() - 1), 0);
  EXPECT_TRUE(std::string_view(answer.data()).starts_with("HTTP/1.1 200")) << answer.data();
  ::close(client);
  for (const int fd : all) ::close(fd);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(idle.is_closed_by_peer());
  EXPECT_EQ(lines_with(logged(), "cause=descriptors"), 1) << logged();
  const auto took = std::chrono::steady_clock::now() - begun;
  const std::string metrics = ask("GET", "/metrics").body;
  constexpr std::string_view kName = "berth_api_refused_connections_total{cause=\"descriptors\"} ";
  const std::size_t at = metrics.find(kName);
  ASSERT_NE(at, std::string::npos) << metrics;
  EXPECT_LE(std::stod(metrics.substr(at + kName.size())), took / 100ms + 2)
      << "because it tries again ten times a second";
}

}  // namespace
}  // namespace berth
