// A real `berth serve` and people who type anything: every route, every key, any value, from
// several connections at once, against jobs in every state. The scheduler must not end, and
// afterwards does what it is there for.
//   BERTH_REQUESTS=N  so many requests instead of the default; BERTH_FIRST_SEED=S others
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "base/rng.h"
#include "e2e/serve/served.h"
#include "model/job_spec_json.h"
#include "policies/registry.h"

namespace berth::test::absurd_tests {
namespace {

using nlohmann::json;

constexpr std::uint64_t kDefaultRequests = 4'000;
constexpr int kConnections = 4;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// What people type, good and bad.
class Typist {
 public:
  Typist(Rng rng, const Served& served) : rng_(rng), folder_(served.folder().path()) {}

  client::HttpRequest request() {
    switch (rng_.below(16)) {
      case 0:
      case 1:
      case 2: return submit();
      case 3:
      case 4:
      case 5:
      case 6: return {.method = "PATCH", .target = job(), .body = text(changes())};
      case 7:
      case 8:
      case 9: return act();
      case 10: return act_on_many();
      case 11: return look();
      case 12: return node();
      case 13: return one_in(4) ? policy() : share();
      case 14: return one_in(8) ? token() : look();
      default: return anything();
    }
  }

 private:
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }
  template <class T>
  T pick(std::initializer_list<T> all) {
    return *(all.begin() + static_cast<std::ptrdiff_t>(rng_.below(all.size())));
  }

  std::int64_t whole() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    switch (rng_.below(4)) {
      case 0: return pick<std::int64_t>({0, -1, 1, 2, 3, 4, 5, 64, 65, 255, 256, 1000, 1001});
      case 1:
        return pick<std::int64_t>({std::int64_t{1} << 31U, (std::int64_t{1} << 31U) - 1,
                                   -(std::int64_t{1} << 31U), kMost, -kMost - 1, 1'000'000,
                                   1'000'001, 2'000'000'000, 3'200'000'000, 100'000'000'000});
      case 2: return static_cast<std::int64_t>(rng_.below(8));
      default: return static_cast<std::int64_t>(rng_.next());
    }
  }
  std::string words() {
    switch (rng_.below(12)) {
      case 0: return "";
      case 1: return "/";
      case 2: return std::string(1, '\0') + "x";
      case 3: return "a\nb\x1b[2J";
      case 4: return std::string(1 + rng_.below(5'000), 'x');
      case 5: return "Größe ☃ \U0001F6A2";
      case 6: return pick({"%", "%j%x%%", "%99999999j", "%q", "../../no/such/place"});
      case 7:
        return pick({"afterok:1", "afterany:0", "after:99999999999999999999", "singleton",
                     "afterok:1,afterok:2?", "afterok"});
      case 8: return pick({"0-9", "0-9:0", "1-2147483647", "9-0", "0-3%0", "0-3%1", "-1"});
      case 9: return pick({"NaN", "inf", "-0", "1e999", "0x10", "90s", "infinite"});
      case 10: return fmt::format("afterok:{}", number());
      default: return fmt::format("w{}", rng_.below(4));
    }
  }
  json value(int depth = 0) {
    switch (rng_.below(depth > 2 ? 6 : 9)) {
      case 0:
      case 1:
      case 2: return whole();
      case 3: return pick({0.0, -0.0, 0.5, -1.5, 1e-300, 1e300, 1e18, 1e-7, 1e7});
      case 4: return words();
      case 5: return pick({json(nullptr), json(true), json(false)});
      case 6: return json{{words(), value(depth + 1)}};
      case 7: return json::array({value(depth + 1), value(depth + 1)});
      default: return json::array();
    }
  }
  /// What each key of a job usually is, near its edges.
  json likely(std::string_view kind) {
    if (kind == "integer") return whole();
    if (kind == "boolean") return one_in(2);
    if (kind == "number") return pick({0.0, 1.0, -1.0, 1e-6, 1e6, 1e7});
    if (kind == "list") return json::array({"true", words()});
    if (kind == "map") return json{{words(), words()}};
    return words();
  }
  json any_key(json spec, std::size_t count) {
    const auto& fields = job_spec_fields();
    for (std::size_t i = 0; i < count; ++i) {
      const JobSpecField& field = fields[rng_.below(fields.size())];
      spec[std::string(field.key)] = one_in(3) ? value() : likely(field.kind);
    }
    if (one_in(50)) spec[words()] = value();
    return spec;
  }
  json changes() { return one_in(40) ? value() : any_key(json::object(), 1 + rng_.below(3)); }

  /// Mostly JSON.
  std::string text(const json& body) {
    std::string text = body.dump(-1, ' ', one_in(2), json::error_handler_t::replace);
    if (!one_in(60)) return text;
    switch (rng_.below(4)) {
      case 0: return text.substr(0, rng_.below(text.size() + 1));
      case 1: text[rng_.below(text.size())] = static_cast<char>(rng_.below(256)); return text;
      case 2: return R"({"gpus":NaN,"weight":Infinity})";
      default: return std::string(rng_.below(3'000), '[');
    }
  }
  std::uint64_t number() {
    if (one_in(20)) return static_cast<std::uint64_t>(whole());
    return latest_ == 0 ? rng_.below(4) : latest_ - std::min(latest_, rng_.below(24)) + 1;
  }
  std::string job() { return fmt::format("/api/v1/jobs/{}", number()); }

  client::HttpRequest submit() {
    json spec{{"command", json::array({pick({"/bin/true", "/bin/false", "/bin/sleep"}), "0.1"})},
              {"workdir", folder_},
              {"output", "/dev/null"},
              {"hold", one_in(3)},
              {"gpus", 1 + rng_.below(4)}};
    if (one_in(6)) spec["array"] = "0-2%1";
    if (one_in(6)) spec["dependencies"] = fmt::format("afterany:{}", number());
    if (one_in(2)) spec = any_key(std::move(spec), 1 + rng_.below(3));
    return {.method = "POST", .target = "/api/v1/jobs", .body = text(spec)};
  }
  client::HttpRequest act() {
    const std::string verb = pick({"cancel", "hold", "release", "requeue", "suspend", "resume",
                                   "signal", "signal", "why", "attempts", "output"});
    if (verb == "why" || verb == "attempts" || verb == "output")
      return {.target = job() + "/" + verb};
    json body = json::object();
    if (one_in(2)) body["why"] = one_in(2) ? json(words()) : value();
    if (verb == "signal") body["signal"] = one_in(2) ? json(rng_.below(66)) : value();
    return {.method = "POST", .target = job() + "/" + verb, .body = text(body)};
  }
  client::HttpRequest act_on_many() {
    json body{
        {"verb", pick({"cancel", "hold", "release", "requeue", "suspend", "resume", "signal"})}};
    if (one_in(2)) body["ids"] = json::array({number(), number(), number()});
    if (one_in(4))
      body["ids"] = one_in(2) ? json(fmt::format("{}-{}", number(), number())) : value();
    if (one_in(4)) body["state"] = one_in(2) ? json("all") : value();
    if (one_in(4)) body["user"] = value();
    if (one_in(4)) body[words()] = value();
    if (one_in(4)) body["signal"] = value();
    return {.method = "POST", .target = "/api/v1/jobs/actions", .body = text(body)};
  }
  client::HttpRequest look() {
    std::string target =
        pick({"/api/v1/jobs", "/api/v1/history", "/api/v1/cluster", "/api/v1/nodes",
              "/api/v1/policy", "/api/v1/shares", "/api/v1/tokens", "/api/v1/whoami",
              "/api/v1/openapi.json", "/metrics", "/healthz"});
    const std::size_t count = rng_.below(3);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string what = one_in(2) ? words() : fmt::format("{}", whole());
      target += fmt::format("{}{}={}", i == 0 ? '?' : '&',
                            pick({"state", "user", "ids", "since", "after", "limit", "cursor",
                                  "outcome", "until", "name", "x"}),
                            client::percent_encoded(what));
    }
    return {.target = target};
  }
  client::HttpRequest node() {
    // Not down for long: the jobs of others are to be met in every state.
    const std::string verb = pick({"drain", "resume", "resume", "resume", "down"});
    json body = json::object();
    if (one_in(3)) body["reason"] = one_in(2) ? json(words()) : value();
    return {.method = "POST",
            .target = fmt::format("/api/v1/nodes/{}/{}",
                                  one_in(8) ? client::percent_encoded(words()) : "n0", verb),
            .body = text(body)};
  }
  client::HttpRequest policy() {
    const auto registry = policy_registry();
    const PolicyEntry& entry = registry[rng_.below(registry.size())];
    json settings = json::object();
    if (one_in(2) && !entry.params.empty()) {
      const ParamSpec& param = entry.params[rng_.below(entry.params.size())];
      settings[param.key] = one_in(2) ? json(fmt::format("{}", whole())) : value();
    }
    const json body{{"policy", one_in(10) ? value() : json(entry.name)}, {"settings", settings}};
    return {.method = "PUT", .target = "/api/v1/policy", .body = text(body)};
  }
  client::HttpRequest share() {
    json body{{"kind", one_in(8) ? value() : json(pick({"user", "group"}))},
              {"name", one_in(4) ? json(words()) : json("root")}};
    for (const char* key : {"shares", "gpu_limit", "job_limit", "gpu_seconds_limit", "gpu_seconds"})
      if (one_in(3)) body[key] = one_in(2) ? json(whole()) : value();
    return {.method = "PUT", .target = "/api/v1/shares", .body = text(body)};
  }
  client::HttpRequest token() {
    if (one_in(2))
      return {.method = "DELETE",
              .target = "/api/v1/tokens/" + client::percent_encoded(words() + "x")};
    const json body{{"name", one_in(2) ? json(words()) : value()},
                    {"user", one_in(2) ? json(words()) : value()},
                    {"role", one_in(2) ? json("user") : value()}};
    return {.method = "POST", .target = "/api/v1/tokens", .body = text(body)};
  }
  client::HttpRequest anything() {
    return {.method = pick({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}),
            .target =
                fmt::format("/api/v1/{}/{}/{}", pick({"jobs", "nodes", "tokens", "x"}),
                            client::percent_encoded(words()), pick({"", "cancel", "why", "drain"})),
            .body = one_in(2) ? "" : text(value())};
  }

 public:
  void heard(const client::HttpReply& reply) {
    if (reply.status != 201) return;
    const json answer = json::parse(reply.body, nullptr, false);
    if (answer.is_object() && answer.contains("job") && answer["job"].is_number_unsigned())
      latest_ = answer["job"].get<std::uint64_t>() + answer.value("count", 1U) - 1;
  }

 private:
  Rng rng_;
  std::string folder_;
  std::uint64_t latest_ = 0;
};

double gauge(const Served& served, const std::string& name) {
  const auto reply = served.ask("GET", "/metrics");
  if (!reply) return -1;
  const auto at = reply->body.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::strtod(&reply->body[at + name.size() + 2], nullptr);
}

struct Tally {
  std::atomic<std::uint64_t> asked = 0, unanswered = 0;
  std::array<std::atomic<std::uint64_t>, 6> by_class{};  // 2xx, 4xx …
  std::atomic<std::uint64_t> wrong_inside = 0;           // 500
};

void type(const Served& served, std::uint64_t seed, std::uint64_t count, Tally& tally) {
  Typist typist{Rng{seed}, served};
  client::HttpClient http{served.endpoint(), std::chrono::seconds{60}};
  for (std::uint64_t i = 0; i < count; ++i) {
    const client::HttpRequest request =
        i % 200 == 199 ? client::HttpRequest{.method = "POST",
                                             .target = "/api/v1/jobs/actions",
                                             .body = R"({"verb":"cancel","state":"all"})"}
                       : typist.request();
    const auto reply = http.send(request);
    ++tally.asked;
    if (!reply) {
      ++tally.unanswered;
      if (!served.ask("GET", "/healthz")) return;  // nobody is there any more
      continue;
    }
    if (reply->status >= 100 && reply->status < 600)
      ++tally.by_class[static_cast<std::size_t>(reply->status / 100)];
    if (reply->status == 500) {
      ++tally.wrong_inside;
      fmt::print(stderr, "500: {} {} {}\n{}\n", request.method, request.target, request.body,
                 reply->body);
    }
    typist.heard(*reply);
  }
}

TEST(Absurd, NothingThatPeopleTypeStopsTheScheduler) {
  Served served;
  static_cast<void>(served.folder().file(
      "serve.yaml",
      "cluster: 1x4\npolicy: fifo-skip\nmax_requests_per_second: 1000000\nlog_level: warn\n"));
  ASSERT_TRUE(served.begin());
  const std::uint64_t count = number_from("BERTH_REQUESTS", kDefaultRequests);
  const std::uint64_t seed = number_from("BERTH_FIRST_SEED", 1);
  const auto begun = std::chrono::steady_clock::now();
  Tally tally;
  {
    std::vector<std::jthread> people;
    for (std::uint64_t i = 0; i < kConnections; ++i)
      people.emplace_back([&, i] { type(served, seed + i, count / kConnections, tally); });
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const bool lives = served.answers() && served.is_alive();
  fmt::print(
      "absurd: {} requests, {:.0f} s, {} ends of the scheduler; {} done, {} refused, {} not now; "
      "{} "
      "without an answer, {} wrong inside, {} failed engines, {} jobs set aside\n",
      tally.asked.load(), took.count(), lives ? 0 : 1, tally.by_class[2].load(),
      tally.by_class[4].load(), tally.by_class[5].load(), tally.unanswered.load(),
      tally.wrong_inside.load(), gauge(served, "berth_engine_failures_total"),
      gauge(served, "berth_jobs_set_aside"));
  ASSERT_TRUE(lives) << "it left with " << served.last_exit();
  EXPECT_EQ(tally.asked, count / kConnections * kConnections);
  EXPECT_EQ(tally.wrong_inside, 0U);
  EXPECT_EQ(gauge(served, "berth_engine_failures_total"), 0);
  EXPECT_EQ(gauge(served, "berth_jobs_set_aside"), 0);

  // It is still good for something, now and after a crash.
  const auto goes_on = [&] {
    EXPECT_TRUE(served.ask("POST", "/api/v1/nodes/n0/resume", json::object()));
    EXPECT_TRUE(served.ask("PUT", "/api/v1/policy", json{{"policy", "fifo"}}));
    for (const char* kind : {"user", "group"}) {
      EXPECT_TRUE(served.ask("PUT", "/api/v1/shares",
                             json{{"kind", kind},
                                  {"name", "root"},
                                  {"gpu_limit", 0},
                                  {"job_limit", 0},
                                  {"gpu_seconds_limit", 0}}));
    }
    EXPECT_TRUE(
        served.ask("POST", "/api/v1/jobs/actions", json{{"verb", "cancel"}, {"state", "all"}}));
    const auto job = served.submit(
        json{{"command", json::array({"/bin/true"})}, {"workdir", "/"}, {"output", "/dev/null"}});
    ASSERT_TRUE(job);
    EXPECT_TRUE(eventually([&] { return served.state_of(*job) == "completed"; }))
        << served.ask("GET", fmt::format("/api/v1/jobs/{}/why", *job))->body;
  };
  goes_on();
  served.kill_now();
  ASSERT_TRUE(served.begin());
  goes_on();
  EXPECT_EQ(served.stop(), 0);
}

}  // namespace
}  // namespace berth::test::absurd_tests
