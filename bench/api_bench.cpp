// How many durable submits a second pass through HTTP when the store costs nothing: 16 clients on
// connections that stay open, against the fake service with its group commit. Then how long a page
// of 1,000 jobs takes among 50,000. Exits with 1 if fewer than 10,000 submits a second pass.
//   api_bench [SECONDS]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "api/server.h"
#include "support/fake_service.h"

namespace {

using namespace berth;
using Clock = std::chrono::steady_clock;

constexpr int kClients = 16;

/// Says a request and reads the whole answer; its length is in its header.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      std::abort();
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(socket_); }

  /// The status.
  int ask(const std::string& request) {
    if (::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) < 0) std::abort();
    std::size_t wanted = std::string::npos;
    while (answer_.size() < wanted) {
      const ssize_t count = ::recv(socket_, bytes_.data(), bytes_.size(), 0);
      if (count <= 0) std::abort();
      answer_.append(bytes_.data(), static_cast<std::size_t>(count));
      const std::size_t end = answer_.find("\r\n\r\n");
      if (wanted == std::string::npos && end != std::string::npos) {
        const std::size_t length = answer_.find("Content-Length: ");
        wanted = end + 4 + std::strtoul(answer_.c_str() + length + 16, nullptr, 10);
      }
    }
    const int status = std::atoi(answer_.c_str() + 9);
    answer_.erase(0, wanted);
    return status;
  }

 private:
  int socket_;
  std::string answer_;
  std::array<char, 65'536> bytes_{};
};

std::string submit_request() {
  const std::string body =
      R"({"command":["python3","train.py","--epochs","90"],"workdir":"/home/alice/project",)"
      R"("name":"train","gpus":4,"cpus":16,"time_limit":86400})";
  return fmt::format(
      "POST /api/v1/jobs HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer alice\r\n"
      "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

struct Measured {
  double per_second = 0;
  double cpu_us = 0;  // of the whole process, clients included, for one request
  double p50_ms = 0, p99_ms = 0;
};

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

template <class Ask>
Measured measure(int clients, double seconds, std::uint16_t port, Ask ask) {
  std::vector<std::vector<double>> times(static_cast<std::size_t>(clients));
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  const double cpu_begin = cpu_seconds();
  const auto end = begin + std::chrono::duration<double>(seconds);
  for (auto& mine : times) {
    threads.emplace_back([&mine, end, port, &ask] {
      Client client(port);
      for (auto now = Clock::now(); now < end;) {
        ask(client);
        const auto after = Clock::now();
        mine.push_back(std::chrono::duration<double, std::milli>(after - now).count());
        now = after;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  std::vector<double> all;
  for (const auto& mine : times) all.insert(all.end(), mine.begin(), mine.end());
  std::ranges::sort(all);
  const auto count = static_cast<double>(all.size());
  const double cpu_us = (cpu_seconds() - cpu_begin) * 1e6 / count;
  return {count / took, cpu_us, all[all.size() / 2], all[all.size() * 99 / 100]};
}

void expect(int status, int wanted) {
  if (status == wanted) return;
  std::fprintf(stderr, "status %d, expected %d\n", status, wanted);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  testing::FakeService service;
  service.keep_events(0);
  service.add_token("alice", {"alice", 1'000, 1'000, Role::User});
  api::ServerOptions options;
  options.tcp = api::TcpAddress{};
  options.api.requests_per_second = 0;
  api::Server server(service, options);
  const auto bound = server.start();
  if (!bound) {
    std::fprintf(stderr, "%s\n", bound.error().text().c_str());
    return 2;
  }
  const std::string submit = submit_request();
  const Measured submits = measure(kClients, seconds, bound->port,
                                   [&](Client& client) { expect(client.ask(submit), 201); });
  fmt::print(
      "submits, {} clients: {:.0f}/s, p50 {:.2f} ms, p99 {:.2f} ms, {:.0f} us of CPU each, {:.1f} "
      "per commit\n",
      kClients, submits.per_second, submits.p50_ms, submits.p99_ms, submits.cpu_us,
      static_cast<double>(service.job_count()) / static_cast<double>(service.commits()));

  const std::string page =
      "GET /api/v1/jobs?limit=1000 HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer alice\r\n\r\n";
  const std::string one =
      "GET /api/v1/jobs/1 HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer alice\r\n\r\n";
  const std::string jobs = fmt::format("{} jobs", service.job_count());
  for (const auto& question : {std::pair{"page of 1,000", page}, {"one job", one}}) {
    const Measured reads = measure(1, seconds / 2, bound->port, [&](Client& client) {
      expect(client.ask(question.second), 200);
    });
    fmt::print("{} of {}: {:.0f}/s, p50 {:.2f} ms, p99 {:.2f} ms, {:.0f} us of CPU each\n",
               question.first, jobs, reads.per_second, reads.p50_ms, reads.p99_ms, reads.cpu_us);
  }
  return submits.per_second >= 10'000 ? 0 : 1;
}
