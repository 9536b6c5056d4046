// Under a policy a real `berth serve` with four devices ends twelve mixed real jobs, and ends the
// same jobs with a kill -9 in the middle. In the normal suite eight policies whose mechanisms
// differ most; all of the registry with BERTH_EVERY_POLICY=1 (scripts/nightly).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "e2e/serve/served.h"
#include "policies/registry.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

using nlohmann::json;

std::vector<std::string> policies_to_try() {
  if (std::getenv("BERTH_EVERY_POLICY") == nullptr)
    return {"fifo",   "fair-share", "tiresias-l", "gandiva",
            "muri-l", "gavel-las",  "pollux",     "chronus"};
  std::vector<std::string> all;
  for (const PolicyEntry& entry : policy_registry()) all.push_back(entry.name);
  return all;
}

/// Jobs of all kinds for one scheduler. Scripts write one word per line into out/NAME: "start" when
/// an attempt begins, "TWICE" if another one is still alive, "end" before they leave well.
class Mixture {
 public:
  explicit Mixture(Served& served) : served_(served) {}

  void submit_all() {
    const json elastic{{"gpus", 4}, {"gpus_min", 1}, {"gpus_max", 4}};
    submit("small", script("small", "sleep 0.2"));
    submit("pair", script("pair", "sleep 0.3"), {{"gpus", 2}});
    submit("whole", script("whole", "sleep 0.2"), {{"gpus", 4}, {"priority", -1}});
    submit("firm", script("firm", "sleep 0.4"), {{"gpus", 3}, {"preemptible", false}});
    submit("stretchy", script("stretchy", "sleep 0.3"), elastic);
    submit("trainer", trainer("trainer", 12), {{"model", "resnet50"}});
    submit("grower", trainer("grower", 12), elastic);
    const std::int64_t in_an_hour = std::time(nullptr) + 3'600;
    submit("timely", script("timely", "sleep 0.3"), {{"gpus", 2}, {"deadline", in_an_hour}});
    // Fails once; code 75 says that the machine is to blame, so that every policy tries it again.
    submit("clumsy", script("clumsy", "[ $(grep -c start \"$out\") -gt 1 ] || exit 75"),
           {{"max_retries", 3}});
    submit("array", script("array-$BERTH_ARRAY_INDEX", "sleep 0.1"), {{"array", "1-3"}});
  }

  [[nodiscard]] std::size_t over() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(jobs_, [&](const auto& job) { return served_.is_over(job.first); }));
  }
  [[nodiscard]] std::size_t count() const noexcept { return jobs_.size(); }

  /// Whoever did not, with what is known of it.
  void expect_that_all_completed() const {
    for (const auto& [job, name] : jobs_)
      EXPECT_EQ(served_.state_of(job), "completed") << name << ": " << served_.view_of(job).dump();
    for (const char* name : {"small", "pair", "whole", "firm", "stretchy", "timely", "clumsy",
                             "array-1", "array-2", "array-3"}) {
      auto words = lines_by_word(served_.written_by(name));
      EXPECT_EQ(words["end"], 1) << name;
      EXPECT_EQ(words["TWICE"], 0) << name;
    }
    EXPECT_EQ(lines_by_word(served_.written_by("firm"))["start"], 1);  // nobody stopped it
    EXPECT_GE(lines_by_word(served_.written_by("clumsy"))["start"], 2);
  }

 private:
  [[nodiscard]] json script(const std::string& name, const std::string& work) const {
    return {{"script", fmt::format(R"sh(#!/bin/bash
out={0}/out/{1}
exec 9>> "$out.lock"
flock -n 9 || echo TWICE >> "$out"
echo start >> "$out"
{2}
echo end >> "$out"
)sh",
                                   served_.folder().path(), name, work)}};
  }
  /// Steps of 20 ms; goes on from its checkpoint.
  [[nodiscard]] json trainer(const std::string& name, int steps) const {
    return {{"command",
             {BERTH_TRAINER, "--epochs", "1", "--samples", std::to_string(4 * steps), "--batch",
              "4", "--workers", "1", "--device-ms", "20", "--checkpoint",
              served_.folder() / (name + ".ckpt")}}};
  }
  void submit(const std::string& name, json spec, const json& more = {}) {
    const std::string output = served_.folder() / ("out/" + name + ".%j.out");
    spec.update({{"name", name},
                 {"gpus", 1},
                 {"time_limit", 300},
                 {"workdir", served_.folder().path()},
                 {"output", output},
                 {"grace_seconds", 5}});
    if (!more.is_null()) spec.update(more);
    const auto reply = served_.ask("POST", "/api/v1/jobs", spec);
    ASSERT_TRUE(reply && reply->status == 201) << name << ": " << (reply ? reply->body : "");
    const json answer = json::parse(reply->body);
    const auto first = answer.at("job").get<std::uint64_t>();
    const auto count = answer.value("count", std::uint64_t{1});
    for (std::uint64_t i = 0; i < count; ++i) jobs_[first + i] = name;
  }

  Served& served_;
  std::map<std::uint64_t, std::string> jobs_;
};

/// Every attempt has at least a second: who thrashes ends its jobs all the same.
void configure(const Served& served, const std::string& policy) {
  std::ofstream(served.config()) << "cluster: 1x4\nmin_run: 1s\ntraining_answer: 1s\npolicy: "
                                 << policy << "\n";
}

class EveryPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, EndsTwelveMixedJobs) {
  Served served;
  configure(served, GetParam());
  ASSERT_TRUE(served.begin());
  Mixture jobs{served};
  jobs.submit_all();
  ASSERT_EQ(jobs.count(), 12U);
  EXPECT_TRUE(eventually([&] { return jobs.over() == jobs.count(); }));
  jobs.expect_that_all_completed();
}

TEST_P(EveryPolicy, EndsThemWithAKillInTheMiddle) {
  Served served;
  configure(served, GetParam());
  ASSERT_TRUE(served.begin());
  Mixture jobs{served};
  jobs.submit_all();
  ASSERT_TRUE(eventually([&] { return jobs.over() >= 4; }));
  EXPECT_LT(jobs.over(), jobs.count());
  served.kill_now();
  ASSERT_TRUE(served.begin());
  EXPECT_TRUE(eventually([&] { return jobs.over() == jobs.count(); }));
  jobs.expect_that_all_completed();
}

INSTANTIATE_TEST_SUITE_P(Live, EveryPolicy, ::testing::ValuesIn(policies_to_try()), kByName);

}  // namespace
}  // namespace berth::test
