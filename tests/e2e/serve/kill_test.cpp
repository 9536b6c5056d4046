// kill -9 of the real thing: at every named point of daemon and shim, and at any moment under the
// load of several clients. Nothing acknowledged is lost, nothing runs twice, every job ends.
//   BERTH_KILLS=N   so many random kills instead of the default
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "base/rng.h"
#include "e2e/serve/served.h"

namespace berth::test {
namespace {

using nlohmann::json;

/// What a client does: asks until it is told a number, always with the same key.
std::uint64_t submit_surely(Served& served, const json& spec, const std::string& key) {
  std::optional<std::uint64_t> job;
  EXPECT_TRUE(eventually([&] {
    if (!served.is_alive()) served.launch();
    return (job = served.submit(spec, key)).has_value();
  }));
  return job.value_or(0);
}

void expect_ran_once(const Served& served, const std::string& name) {
  auto words = lines_by_word(served.written_by(name));
  EXPECT_EQ(words["start"], 1) << name << ":\n" << served.written_by(name);
  EXPECT_EQ(words["end"], 1) << name << ":\n" << served.written_by(name);
  EXPECT_EQ(words["TWICE"] + words["SHARED"], 0) << served.written_by(name);
  EXPECT_EQ(served.folder().read("out/" + name + ".out"), "output of " + name + "\n");
}

/// A shim that died took its record with it: the job may have run again, never beside itself.
void expect_never_beside_itself(const Served& served, const std::string& name) {
  auto words = lines_by_word(served.written_by(name));
  EXPECT_GE(words["start"], 1) << name;
  EXPECT_GE(words["end"], 1) << name;
  EXPECT_EQ(words["TWICE"] + words["SHARED"], 0) << served.written_by(name);
}

/// How often each point is passed by a small workload.
std::map<std::string, int> points_of_a_calm_run() {
  Served served;
  EXPECT_TRUE(served.begin({{"BERTH_CRASH_COUNT", served.folder() / "points"}}));
  std::vector<std::uint64_t> jobs;
  for (int i = 0; i < 2; ++i)
    jobs.push_back(served.submit(served.job(fmt::format("calm{}", i), "0.05", 1 + i)).value_or(0));
  const auto cancelled = served.submit(served.job("cancelled", "60"));
  EXPECT_TRUE(eventually([&] { return served.state_of(*cancelled) == "running"; }));
  EXPECT_TRUE(served.ask("DELETE", fmt::format("/api/v1/jobs/{}", *cancelled)));
  jobs.push_back(*cancelled);
  for (const std::uint64_t job : jobs)
    EXPECT_TRUE(eventually([&] { return served.is_over(job); })) << job;
  EXPECT_EQ(served.stop(), 0);
  return lines_by_word(served.folder().read("points"));
}

TEST(ServeKilled, AtEveryPointOfTheDaemon) {
  const auto points = points_of_a_calm_run();
  EXPECT_GE(points.size(), 10U);
  Served served;
  int cycle = 0;
  for (const auto& [point, count] : points) {
    if (point.starts_with("shim.")) continue;
    for (const int at : std::set<int>{1, (count + 1) / 2}) {
      const std::string name = fmt::format("d{}", ++cycle), gone = name + "x";
      SCOPED_TRACE(fmt::format("{}:{}", point, at));
      static_cast<void>(served.begin({{"BERTH_CRASH_POINT", fmt::format("{}:{}", point, at)}}));
      const std::uint64_t job = submit_surely(served, served.job(name, "0.05", 2), name);
      const std::uint64_t other = submit_surely(served, served.job(gone, "60"), gone);
      static_cast<void>(eventually([&] {
        return !served.is_alive() || (served.is_over(job) && served.state_of(other) == "running");
      }));
      static_cast<void>(served.ask("DELETE", fmt::format("/api/v1/jobs/{}", other)));
      static_cast<void>(eventually([&] { return !served.is_alive() || served.is_over(other); }));
      served.kill_now();
      ASSERT_TRUE(served.begin());
      static_cast<void>(served.ask("DELETE", fmt::format("/api/v1/jobs/{}", other)));
      ASSERT_TRUE(eventually([&] { return served.is_over(job) && served.is_over(other); }))
          << served.state_of(job) << " " << served.state_of(other);
      EXPECT_EQ(served.state_of(job), "completed");
      expect_ran_once(served, name);
      served.kill_now();
      if (HasFailure()) return;
    }
  }
  fmt::print("serve: {} kills at named points of the daemon\n", served.crashes());
  EXPECT_GE(served.crashes(), 8);
}

TEST(ServeKilled, AtEveryPointOfTheShim) {
  Served served;
  int cycle = 0;
  for (const char* point :
       {"shim.claimed", "shim.started", "shim.exited", "shim.exit_written", "shim.exit_renamed"}) {
    const std::string name = fmt::format("s{}", ++cycle);
    SCOPED_TRACE(point);
    ASSERT_TRUE(served.begin({{"BERTH_CRASH_POINT", fmt::format("{}:1", point)}}));
    const std::uint64_t job = submit_surely(served, served.job(name, "0.05", 2), name);
    ASSERT_TRUE(eventually([&] {
      const auto reply = served.ask("GET", fmt::format("/api/v1/jobs/{}", job));
      return served.is_over(job) ||
             (reply && reply->status == 200 && json::parse(reply->body).value("attempts", 0) > 1);
    }));
    served.kill_now();
    ASSERT_TRUE(served.begin());
    ASSERT_TRUE(eventually([&] { return served.is_over(job); })) << served.state_of(job);
    EXPECT_EQ(served.state_of(job), "completed");
    expect_never_beside_itself(served, name);
    served.kill_now();
    if (HasFailure()) return;
  }
  fmt::print("serve: shims killed at {} named points\n", cycle);
}

/// Several clients submit until they are told to stop; each remembers what was acknowledged.
class Load {
 public:
  Load(const Served& served, int clients) {
    for (int i = 0; i < clients; ++i)
      threads_.emplace_back([this, &served, i] { work(served, i); });
  }
  std::map<std::string, std::uint64_t> stop() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return acknowledged_;
  }
  ~Load() { static_cast<void>(stop()); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  void work(const Served& served, int client) {
    for (int n = 0; !is_over_; ++n) {
      const std::string name = fmt::format("c{}-{}", client, n);
      const json spec = served.job(name, "0.1", 1 + n % 2);
      std::optional<std::uint64_t> job;
      while (!job && !is_over_) {
        job = served.submit(spec, name);
        std::this_thread::sleep_for(std::chrono::milliseconds(240));  // its pace, not a wait
      }
      if (!job) return;
      const std::lock_guard lock{mutex_};
      acknowledged_[name] = *job;
    }
  }
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> acknowledged_;
  std::vector<std::thread> threads_;
};

TEST(ServeKilled, AtAnyMomentUnderLoad) {
  const char* asked = std::getenv("BERTH_KILLS");
  const int kills = asked == nullptr ? 10 : std::atoi(asked);
  Rng rng{20};
  Served served;
  ASSERT_TRUE(served.begin());
  std::map<std::string, std::uint64_t> jobs;
  {
    Load load{served, 16};
    for (int i = 0; i < kills; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + rng.below(700)));  // any moment
      served.kill_now();
      ASSERT_TRUE(served.begin());
    }
    jobs = load.stop();
  }
  ASSERT_GT(jobs.size(), static_cast<std::size_t>(kills));
  std::set<std::uint64_t> numbers;
  for (const auto& [name, job] : jobs) {
    ASSERT_TRUE(numbers.insert(job).second) << "two keys, one job";
    ASSERT_TRUE(eventually([&] { return served.is_over(job); }))
        << name << " is " << served.state_of(job);
    ASSERT_EQ(served.state_of(job), "completed") << name;
    expect_ran_once(served, name);
    if (HasFailure()) return;
  }
  fmt::print("serve: {} random kills, {} jobs acknowledged, each ran once\n", kills, jobs.size());
  EXPECT_TRUE(served.folder().has("locks/0")) << "jobs do not know their devices";
  EXPECT_EQ(served.stop(), 0);
  EXPECT_TRUE(eventually([&] { return served.shims() == 0; }));
}

/// `berth submit` one after the other, as people and scripts type it; no key is given.
class Typists {
 public:
  Typists(const Served& served, int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this, &served, i] { type(served, i); });
  }
  ~Typists() { static_cast<void>(stop()); }
  Typists(const Typists&) = delete;
  Typists& operator=(const Typists&) = delete;

  struct Typed {
    std::string name;
    Ran ran;
  };
  std::vector<Typed> stop() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return std::move(typed_);
  }

 private:
  void type(const Served& served, int typist) {
    for (int n = 0; !is_over_; ++n) {
      const std::string name = fmt::format("t{}-{}", typist, n);
      const TempFolder own;
      const Ran ran =
          shell(own, fmt::format("cd /; BERTH_SOCKET='{}' $BERTH submit --export NONE --name {} "
                                 "--output /dev/null -- /bin/sh -c 'echo ran >> {}/out/{}'",
                                 served.socket(), name, served.folder().path(), name));
      const std::lock_guard lock{mutex_};
      typed_.push_back({name, ran});
    }
  }
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  std::vector<Typed> typed_;
  std::vector<std::thread> threads_;
};

TEST(ServeKilled, NoSubmitThatSomebodyTypesFailsAndNoneRunsTwice) {
  constexpr int kKills = 10;
  Rng rng{7};
  Served served;
  ASSERT_TRUE(served.begin());
  std::vector<Typists::Typed> typed;
  {
    Typists typists{served, 3};
    for (int i = 0; i < kKills; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50 + rng.below(400)));  // any moment
      if (i % 3 == 2)
        ASSERT_EQ(served.stop(), 0);  // the socket goes too
      else
        served.kill_now();
      std::this_thread::sleep_for(std::chrono::milliseconds(rng.below(500)));  // it stays away
      ASSERT_TRUE(served.begin());
    }
    typed = typists.stop();
  }
  ASSERT_GT(typed.size(), static_cast<std::size_t>(kKills));
  std::set<std::string> answers;
  for (const auto& [name, ran] : typed) {
    ASSERT_EQ(ran.exit, 0) << name << ": " << ran.err;
    EXPECT_TRUE(answers.insert(ran.out).second) << "told of two: " << ran.out;
    const std::uint64_t job = std::stoull(ran.out.substr(4));  // "job 12"
    ASSERT_TRUE(eventually([&] { return served.is_over(job); })) << served.state_of(job);
  }
  for (const auto& [name, ran] : typed)
    EXPECT_EQ(served.folder().read("out/" + name), "ran\n") << name << ": " << ran.out;
  const auto all = served.ask("GET", "/api/v1/jobs?state=all&limit=1");
  ASSERT_TRUE(all);
  EXPECT_EQ(json::parse(all->body)["total"], typed.size()) << "one job for each";
  EXPECT_EQ(served.stop(), 0);
}

}  // namespace
}  // namespace berth::test
