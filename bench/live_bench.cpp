// The live scheduler as people meet it: a real `berth serve` with its journal on a disk, asked
// through its API by clients of this process, all on the cores of this machine. Prints a table with
// the target beside each figure; with --slurm DIR (a folder with `up` and `down`) the same commands
// against a real Slurm. Exits with 1 if a target is missed.
//   live_bench [--quick] [--dir DIR] [--slurm DIR] [--only WORD]
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "live_commands.h"
#include "live_server.h"
#include "live_table.h"

namespace {

using namespace berth;
using namespace berth::bench;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using client::HttpClient;
using nlohmann::json;

constexpr int kClients = 16;

struct Options {
  bool quick = false;
  std::string dir, slurm, only;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string job_body(const std::string& name) {
  return fmt::format(
      R"({{"command":["python3","train.py","--epochs","90"],"workdir":"/tmp","name":"{}","gpus":1}})",
      name);
}

/// One device, and a job that keeps it: everything else waits.
void occupy(HttpClient& http) {
  static_cast<void>(
      ask(http, post("/api/v1/jobs",
                     R"({"command":["/bin/sleep","900"],"workdir":"/tmp","output":"/dev/null"})")));
}
/// Nothing of a benchmark runs on. The device is taken out of service first, so that none of those
/// that wait starts when its job is gone.
void clear_up(HttpClient& http) {
  static_cast<void>(ask(http, post("/api/v1/nodes/n0/drain", R"({"reason":"benchmark"})")));
  static_cast<void>(ask(http, post("/api/v1/jobs/1/cancel", "{}")));
  while (json::parse(ask(http, get("/api/v1/cluster"))).value("running", 1) != 0)
    std::this_thread::sleep_for(10ms);
}
void queue_up(HttpClient& http, int jobs) {
  for (int first = 0; first < jobs; first += 10'000) {
    json body = json::parse(job_body("queued"));
    body["array"] = fmt::format("0-{}", std::min(10'000, jobs - first) - 1);
    static_cast<void>(ask(http, post("/api/v1/jobs", body.dump())));
  }
}

class LiveBench {
 public:
  explicit LiveBench(Options options) : options_(std::move(options)) {}

  void run() {
    const std::vector<std::pair<std::string, std::function<void()>>> parts{
        {"submit", [this] { submits(); }},   {"api", [this] { api_with_a_queue(); }},
        {"pass", [this] { passes(); }},      {"start", [this] { starts(); }},
        {"restart", [this] { restarts(); }}, {"idle", [this] { idle(); }},
        {"commands", [this] { commands(); }}};
    for (const auto& [name, part] : parts)
      if (options_.only.empty() || options_.only == name) part();
  }
  [[nodiscard]] const FigureTable& table() const noexcept { return table_; }

 private:
  [[nodiscard]] std::string fresh_directory() {
    return fmt::format("{}/{}", options_.dir, ++directories_);
  }

  /// On a machine that does other work as well the clock says little, processor time more.
  void add_cpu(const LiveServer& server, double before, std::size_t count) {
    table_.plain("  the scheduler's processor time for each",
                 1e3 * (server.cpu_seconds() - before) / static_cast<double>(count), "ms");
  }

  void submits() {
    LiveServer server{fresh_directory(), {"--cluster", "1x1:cpu"}};
    HttpClient http{server.endpoint()};
    occupy(http);
    std::vector<std::vector<double>> times(kClients);
    std::vector<std::thread> threads;
    const double cpu = server.cpu_seconds();
    const auto begin = Clock::now();
    const auto end = begin + (options_.quick ? 2s : 8s);
    for (auto& mine : times) {
      threads.emplace_back([&mine, &server, end] {
        HttpClient client{server.endpoint()};
        const auto request = post("/api/v1/jobs", job_body("burst"));
        while (Clock::now() < end) {
          const auto before = Clock::now();
          static_cast<void>(ask(client, request));
          mine.push_back(1e3 * seconds_since(before));
        }
      });
    }
    for (auto& thread : threads) thread.join();
    const double took = seconds_since(begin);
    std::vector<double> all;
    for (const auto& mine : times) all.insert(all.end(), mine.begin(), mine.end());
    table_.at_least("durable submits, 16 clients", static_cast<double>(all.size()) / took, "/s",
                    2'000);
    table_.plain("  of these: p99", quantile(all, 0.99), "ms");
    add_cpu(server, cpu, all.size());
    clear_up(http);
  }

  void api_with_a_queue() {
    LiveServer server{fresh_directory(), {"--cluster", "1x1:cpu"}};
    HttpClient http{server.endpoint()};
    occupy(http);
    const int jobs = options_.quick ? 5'000 : 50'000;
    queue_up(http, jobs);
    const auto measure = [&](const std::string& name,
                             const std::function<client::HttpRequest(int)>& request) {
      std::vector<double> times;
      const double cpu = server.cpu_seconds();
      for (int i = 0; i < (options_.quick ? 100 : 500); ++i) {
        const auto before = Clock::now();
        static_cast<void>(ask(http, request(i)));
        times.push_back(1e3 * seconds_since(before));
      }
      table_.below(fmt::format("{}, {} queued: p99", name, jobs), quantile(times, 0.99), "ms", 20);
      table_.plain("  the same: median", quantile(times, 0.5), "ms");
      add_cpu(server, cpu, times.size());
    };
    measure("GET /jobs (a page of 100)", [](int) { return get("/api/v1/jobs?limit=100"); });
    measure("GET /jobs from the middle",
            [jobs](int) { return get(fmt::format("/api/v1/jobs?limit=100&after={}", jobs / 2)); });
    measure("GET /jobs/{n}",
            [jobs](int i) { return get(fmt::format("/api/v1/jobs/{}", 2 + (i * 97) % jobs)); });
    measure("POST /jobs", [](int) { return post("/api/v1/jobs", job_body("one")); });
    table_.plain("  resident then", server.resident_mib(), "MiB");
    clear_up(http);
  }

  void passes() {
    LiveServer server{fresh_directory(), {"--cluster", "1x1:cpu"}};
    HttpClient http{server.endpoint()};
    occupy(http);
    queue_up(http, 10'000);
    const auto passes = [&] { return json::parse(ask(http, get("/api/v1/cluster"))); };
    const auto submit_one = [&] {
      const auto before = passes().value("passes", std::uint64_t{0});
      static_cast<void>(ask(http, post("/api/v1/jobs", job_body("one"))));
      json after = passes();
      for (; after.value("passes", std::uint64_t{0}) <= before; after = passes())
        std::this_thread::sleep_for(1ms);
      return 1e3 * after.value("last_pass_seconds", 0.0);
    };
    static_cast<void>(submit_one());
    table_.plain("pass in which 10,000 arrive", 1e3 * passes().value("worst_pass_seconds", 0.0),
                 "ms");
    for (const std::string policy : {"easy", "srtf", "tiresias-l", "fair-share"}) {
      client::HttpRequest change = post("/api/v1/policy", json{{"policy", policy}}.dump());
      change.method = "PUT";
      static_cast<void>(ask(http, change));
      static_cast<void>(submit_one());  // a new engine hears of everybody
      std::vector<double> times;
      for (int i = 0; i < (options_.quick ? 10 : 50); ++i) times.push_back(submit_one());
      table_.below(fmt::format("pass at 10,000 queued, {}: median", policy), quantile(times, 0.5),
                   "ms", 10);
      table_.plain("  the same: worst", quantile(times, 1), "ms");
    }
    clear_up(http);
  }

  void starts() {
    // Devices to spare: the end of the job before is not part of it.
    LiveServer server{fresh_directory(), {"--cluster", "1x8:cpu"}};
    HttpClient http{server.endpoint()};
    std::vector<double> times;
    const double cpu = server.cpu_seconds();
    for (int i = 0; i < (options_.quick ? 20 : 100); ++i) {
      const std::string output = fmt::format("{}/start-{}.out", options_.dir, i);
      const json body{
          {"command", {BERTH_FIRST_INSTRUCTION}}, {"workdir", "/tmp"}, {"output", output}};
      times.push_back(millis_to_first_instruction(
          output, [&] { static_cast<void>(ask(http, post("/api/v1/jobs", body.dump()))); }));
    }
    table_.below("submit to first instruction: median", quantile(times, 0.5), "ms", 20);
    table_.plain("  the same: p95", quantile(times, 0.95), "ms");
    add_cpu(server, cpu, times.size());
  }

  void restarts() {
    const std::string directory = fresh_directory();
    const int finished = options_.quick ? 10'000 : 100'000;
    const int queued = options_.quick ? 1'000 : 10'000;
    {
      LiveServer server{directory, {"--cluster", "1x1:cpu"}};
      HttpClient http{server.endpoint(), 120s};
      occupy(http);
      // Half at a time: a user may not have more than 100,000. Job 1 runs.
      const json some{{"verb", "cancel"}, {"state", "pending"}};
      for (int half = 0; half < 2; ++half) {
        queue_up(http, finished / 2);
        while (json::parse(ask(http, get("/api/v1/cluster"))).value("pending", 1) != 0)
          static_cast<void>(ask(http, post("/api/v1/jobs/actions", some.dump())));
      }
      queue_up(http, queued);
      clear_up(http);
    }
    const auto begin = Clock::now();
    const LiveServer again{directory, {"--cluster", "1x1:cpu"}};
    HttpClient http{again.endpoint()};
    const json cluster = json::parse(ask(http, get("/api/v1/cluster")));
    if (cluster.value("pending", 0) != queued) give_up("jobs were lost over the restart");
    while (json::parse(ask(http, get("/api/v1/cluster"))).value("passes", 0) == 0)
      std::this_thread::sleep_for(1ms);
    table_.below(
        fmt::format("restart, {} finished and {} queued, to the first pass", finished, queued),
        seconds_since(begin), "s", 3);
    table_.plain("  resident then", again.resident_mib(), "MiB");
  }

  void idle() {
    const LiveServer server{fresh_directory(), {"--cluster", "1x8:cpu"}};
    std::this_thread::sleep_for(2s);  // what belongs to the start
    const double before = server.cpu_seconds();
    const double span = options_.quick ? 5 : 30;
    std::this_thread::sleep_for(std::chrono::duration<double>(span));
    table_.below("idle: processor", 100 * (server.cpu_seconds() - before) / span, "%", 0.1);
    table_.below("idle: resident", server.resident_mib(), "MiB", 50);
  }

  void commands() {
    LiveServer server{fresh_directory(), {"--cluster", "1x4:cpu"}};
    const CommandBench ours{{.sbatch = berth_sbatch(options_.dir),
                             .environment = {{"BERTH_SOCKET", server.socket()}},
                             .directory = options_.dir,
                             .submits = options_.quick ? 80 : 400,
                             .starts = options_.quick ? 5 : 20}};
    add_commands("sbatch by berth", ours.run());
    server.stop();
    if (options_.slurm.empty()) return;
    const SlurmCluster slurm{options_.slurm, options_.dir + "/slurm"};
    if (!slurm.is_up()) {
      std::fprintf(stderr, "live_bench: no Slurm came up from %s: left out\n",
                   options_.slurm.c_str());
      return;
    }
    const CommandBench theirs{{.sbatch = "sbatch",
                               .environment = {{"SLURM_CONF", slurm.conf()}},
                               .directory = options_.dir,
                               .submits = options_.quick ? 80 : 400,
                               .starts = options_.quick ? 5 : 20}};
    add_commands("sbatch by Slurm", theirs.run());
  }
  void add_commands(const std::string& name, const CommandFigures& figures) {
    table_.plain(name + ": submits, 16 shells", figures.submits_per_second, "/s");
    table_.plain(name + ": command, one after the other", figures.submit_millis, "ms");
    table_.plain(name + ": to first instruction, median", figures.start_millis, "ms");
  }

  Options options_;
  FigureTable table_;
  int directories_ = 0;
};

Options options_from(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--quick") {
      options.quick = true;
    } else if (word == "--dir" && has_value) {
      options.dir = argv[++i];
    } else if (word == "--slurm" && has_value) {
      options.slurm = argv[++i];
    } else if (word == "--only" && has_value) {
      options.only = argv[++i];
    } else {
      std::fprintf(stderr, "live_bench [--quick] [--dir DIR] [--slurm DIR] [--only WORD]\n");
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = options_from(argc, argv);
  std::string root = (options.dir.empty() ? std::filesystem::temp_directory_path()
                                          : std::filesystem::path(options.dir)) /
                     "live-bench-XXXXXX";
  if (::mkdtemp(root.data()) == nullptr) return 1;
  options.dir = root;
  double load[3] = {};
  if (::getloadavg(load, 3) != 3) load[0] = 0;
  LiveBench bench{options};
  bench.run();
  fmt::print("{}\n{} cores; load when it began {:.1f}\n", bench.table().text(),
             std::thread::hardware_concurrency(), load[0]);
  std::error_code ignored;
  std::filesystem::remove_all(root, ignored);
  return bench.table().all_met() ? 0 : 1;
}
