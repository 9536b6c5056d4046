#include "client/played_scheduler.h"

#include <algorithm>
#include <chrono>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/split.h"

namespace berth::test {

using nlohmann::json;

namespace {

json job(std::uint64_t number, const std::string& name, const std::string& user,
         const std::string& state) {
  return {{"number", number},
          {"array", 0},
          {"array_index", 0},
          {"spec", {{"name", name}, {"user", user}, {"queue", "gpu"}, {"command", {"./" + name}}}},
          {"state", state},
          {"reason", ""},
          {"submitted", nullptr},
          {"started", nullptr},
          {"last_started", nullptr},
          {"ended", nullptr},
          {"run_seconds", 0.0},
          {"gpu_seconds", 0.0},
          {"attempts", 0},
          {"preemptions", 0},
          {"failures", 0},
          {"where", json::array()},
          {"granted", 0},
          {"exit_code", 0},
          {"signal", 0},
          {"pid", 0},
          {"output", ""},
          {"error", ""},
          {"training", nullptr}};
}

constexpr auto kCluster =
    R"({"name":"test","policy":"las","settings":{"quantum":"60"},"version":"0.1.0","generation":3,"started":1,"uptime_seconds":7200,
        "pending":2,"running":1,"held":0,"gpus":8,"gpus_used":2,
        "queues":[{"name":"gpu","max_time_limit":0},{"name":"day","max_time_limit":86400,"default_time_limit":3600}],"passes":9,"last_pass_seconds":0.001,
        "worst_pass_seconds":0.01,"trouble":""})";
constexpr auto kNodes =
    R"({"nodes":[{"name":"n1","state":"up","reason":"","type":"a100","gpus":4,"gpus_used":2,"cpus":16,"cpus_used":8,
        "memory_mib":65536,"devices":[[12],[12],[],[]]},
        {"name":"n2","state":"up","reason":"","type":"a100","gpus":4,"gpus_used":0,"cpus":16,"cpus_used":0,
        "memory_mib":65536,"devices":[[],[],[],[]]},
        {"name":"n3","state":"drained","reason":"new fan","type":"v100","gpus":4,"gpus_used":0,"cpus":16,"cpus_used":0,
        "memory_mib":65536,"devices":[[],[],[],[]]}]})";
constexpr auto kShares =
    R"({"shares":[{"kind":"user","name":"ann","shares":2,"gpu_seconds":7200,"gpus_now":2,"jobs_now":1,"waiting":0,
        "gpu_limit":8,"job_limit":0,"gpu_seconds_limit":0}]})";
constexpr auto kSteps =
    R"({"jobs":[
        {"job":9,"directory":null,"steps":[
          {"id":"batch","name":"batch","state":"failed","tasks":1,"cpus":4,"devices":[0,1],
           "begun":1763300060000000,"ended":1763303660000000,"exit_code":3,"signal":0,"cpu_seconds":7200.5,
           "max_rss_kib":2048,"pid":null},
          {"id":"0","name":"python3","state":"cancelled","tasks":2,"cpus":2,"devices":[1],
           "begun":1763300070000000,"ended":1763303600000000,"exit_code":0,"signal":15,"cpu_seconds":5400,
           "max_rss_kib":3145728,"pid":null}]},
        {"job":12,"directory":null,"steps":[
          {"id":"batch","name":"batch","state":"running","tasks":1,"cpus":0,"devices":[],
           "begun":1763300060000000,"ended":null,"exit_code":0,"signal":0,"cpu_seconds":0,"max_rss_kib":0,"pid":null},
          {"id":"0","name":"train.py","state":"running","tasks":2,"cpus":4,"devices":[0,1],
           "begun":1763300070000000,"ended":null,"exit_code":0,"signal":0,"cpu_seconds":0,"max_rss_kib":0,"pid":99999999}]}]})";
constexpr auto kTokens =
    R"({"tokens":[{"name":"laptop","user":"ann","role":"user","created":1763300000,"expires":null}]})";
constexpr auto kWhy =
    R"({"job":13,"state":"pending","summary":"waits for 4 a100 on one node: 2 of 4 are free on n1",
        "reasons":[{"kind":"capacity","text":"2 GPUs are free of 4","who":"user","when":"now","sole":true,
        "numbers":{"free":2,"need":4}}],"would_start":["ask for 2 GPUs: berth change 13 gpus=2"],"place":1,"of":2})";

bool among(const std::string& list, const std::string& one) {
  return ("," + list + ",").find("," + one + ",") != std::string::npos;
}

/// "3,7-9"
bool among_numbers(const std::string& list, std::uint64_t number) {
  for (const std::string_view part : split(list, ',')) {
    const std::string range(part);
    const auto dash = range.find('-');
    const std::uint64_t first = std::stoull(range);
    const std::uint64_t last = dash == range.npos ? first : std::stoull(range.substr(dash + 1));
    if (number >= first && number <= last) return true;
  }
  return false;
}

bool is_over(const std::string& state) {
  return among("completed,failed,cancelled,timed-out,preempted,node-failed,rejected", state);
}

}  // namespace

Told refusal(int status, const std::string& message) {
  return {.status = status,
          .body = json{{"error", {{"code", "refused"}, {"messages", {message}}}}}.dump()};
}

PlayedScheduler::PlayedScheduler() {
  json running = job(12, "train", "ann", "running");
  running["where"] = {{{"node", "n1"}, {"devices", {0, 1}}, {"cores", json::array()}}};
  running["granted"] = 2;
  running["spec"]["gpus"] = 2;
  running["spec"]["time_limit"] = 7'200;
  running["run_seconds"] = 65.0;
  running["attempts"] = 1;
  running["output"] = "/home/ann/berth-12.out";
  json waiting = job(13, "big", "bob", "pending");
  waiting["spec"]["gpus"] = 4;
  waiting["reason"] = "2 of 4 GPUs are free";
  waiting["reason_code"] = "resources";
  json held = job(14, "later", "ann", "held");
  held["reason"] = "held by ann";
  held["reason_code"] = "held-by-user";
  json past = job(9, "old", "ann", "failed");
  past["exit_code"] = 3;
  past["submitted"] = 1'763'300'000'000'000;
  past["started"] = 1'763'300'060'000'000;
  past["ended"] = 1'763'303'660'000'000;
  past["run_seconds"] = 3'600.0;
  past["gpu_seconds"] = 7'200.0;
  past["spec"]["gpus"] = 2;
  jobs_ = {past, running, waiting, held};
  for (std::uint64_t i = 0; i < 3; ++i) {
    json part = job(20 + i, "sweep", "bob", "pending");
    part["array"] = 20;
    part["array_index"] = 5 * i;
    part["spec"]["array"] = "0,5,10%2";
    part["reason"] = "after others";
    part["reason_code"] = "priority";
    jobs_.push_back(part);
  }
  for (const char* name : {"sacct", "sbatch", "scancel", "scontrol", "seff", "sinfo", "sprio",
                           "squeue", "sshare", "sstat"})
    if (::symlink(BERTH_PROGRAM, (folder_ / name).c_str()) != 0) ADD_FAILURE() << "no symlink";
  server_ = std::make_unique<ScriptedServer>(socket(), [this](const Asked& asked) {
    if (first)
      if (Told told = first(asked); told.status > 0) return told;
    return answer(asked);
  });
}

void PlayedScheduler::set_job(const json& changed) {
  const std::lock_guard lock(mutex_);
  for (json& one : jobs_)
    if (one["number"] == changed["number"]) one.update(changed);
}

Ran PlayedScheduler::run(const std::string& arguments) const { return sh("$BERTH " + arguments); }

Ran PlayedScheduler::sh(const std::string& command) const {
  return shell(
      folder_,
      fmt::format(
          "unset BERTH_URL BERTH_TOKEN; export BERTH_SOCKET='{}' TZ=UTC PATH=\"{}:$PATH\"; {}",
          socket(), folder_.path(), command));
}

json PlayedScheduler::sent(const std::string& method, const std::string& path) const {
  const auto all = server_->asked(method, path);
  if (all.empty()) return nullptr;
  return all.back().body.empty() ? json::object() : json::parse(all.back().body, nullptr, false);
}

Told PlayedScheduler::answer(const Asked& asked) {
  const std::string path = asked.path();
  if (path == "/api/v1/jobs" && asked.method == "POST") return submit(asked);
  if (path == "/api/v1/jobs") return list_jobs(asked);
  if (path == "/api/v1/jobs/actions") return act(asked);
  if (path.starts_with("/api/v1/jobs/")) return job_route(asked, path.substr(13));
  if (path == "/api/v1/history") {
    const std::lock_guard lock(mutex_);
    return {.body = json{{"jobs", {jobs_.front()}}, {"next", nullptr}}.dump()};
  }
  if (path == "/api/v1/cluster" || path == "/api/v1/policy") return {.body = kCluster};
  if (path == "/api/v1/whoami") return {.body = R"({"user":"ann","uid":null,"role":"user"})"};
  if (path == "/api/v1/nodes") return {.body = kNodes};
  if (path.starts_with("/api/v1/nodes/")) return {.body = R"({"name":"n3"})"};
  if (path == "/api/v1/shares") return {.body = kShares};
  if (path == "/api/v1/steps") return steps(asked);
  if (path == "/api/v1/tokens" && asked.method == "POST")
    return {.status = 201, .body = R"({"name":"laptop","token":"berth_s3cret"})"};
  if (path == "/api/v1/tokens") return {.body = kTokens};
  if (path.starts_with("/api/v1/tokens/")) return {.status = 204};
  if (path == "/api/v1/events") {
    return {.stream = [](const Told::Write& write) {
      while (write("")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }};
  }
  return refusal(404, "there is nothing at " + path);
}

Told PlayedScheduler::list_jobs(const Asked& asked) {
  const std::lock_guard lock(mutex_);
  json list = json::array();
  for (const json& one : jobs_) {
    const std::string state = one["state"], states = asked.parameter("state");
    const std::string user = asked.parameter("user"), ids = asked.parameter("ids");
    if (states.empty() ? is_over(state) : states != "all" && !among(states, state)) continue;
    if (!user.empty() && one["spec"]["user"] != user) continue;
    const std::string since = asked.parameter("since");
    if (!since.empty() && is_over(state) && one["ended"] < std::stoll(since)) continue;
    if (!ids.empty() && !among_numbers(ids, one["number"].get<std::uint64_t>())) continue;
    list.push_back(one);
  }
  return {.body = json{{"jobs", list}, {"next", nullptr}, {"total", list.size()}}.dump()};
}

Told PlayedScheduler::job_route(const Asked& asked, const std::string& rest) {
  const std::lock_guard lock(mutex_);
  const std::string number = rest.substr(0, rest.find('/'));
  const auto found = std::ranges::find_if(jobs_, [&](const json& one) {
    return fmt::format("{}", one["number"].get<int>()) == number;
  });
  if (found == jobs_.end()) return refusal(404, "there is no job " + number);
  if (rest.ends_with("/why")) return {.body = kWhy};
  if (rest.ends_with("/attempts"))
    return {.body = R"({"attempts":[{"id":"3.1","where":[{"node":"n1","devices":[0,1],"cores":[]}],
                        "begun":1763300000000000,"ended":null,"outcome":null,"exit_code":0,"signal":0,"gpu_seconds":0,"why":""}]})"};
  if (rest.ends_with("/output")) {
    if (asked.parameter("stream") == "err") return {.body = "oh no\n"};
    return {.chunks = {"line 1\nline", " 2\nline 3\n"}};
  }
  if (asked.method == "PATCH") found->at("spec").update(json::parse(asked.body));
  return {.body = found->dump()};
}

Told PlayedScheduler::steps(const Asked& asked) {
  json all = json::parse(kSteps);
  json wanted = json::array();
  for (const json& one : all["jobs"])
    if (among_numbers(asked.parameter("ids"), one["job"].get<std::uint64_t>()))
      wanted.push_back(one);
  return {.body = json{{"jobs", wanted}}.dump()};
}

Told PlayedScheduler::submit(const Asked& asked) {
  const json spec = json::parse(asked.body, nullptr, false);
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = next_++;
  json made = job(number, spec.value("name", ""), "ann", "pending");
  made["spec"] = spec;
  jobs_.push_back(made);
  return {.status = 201,
          .body = json{{"job", number},
                       {"count", spec.contains("array") ? 10 : 1},
                       {"repeat", false},
                       {"notes", json::array()}}
                      .dump()};
}

Told PlayedScheduler::act(const Asked& asked) {
  const json body = json::parse(asked.body);
  json results = json::array();
  for (const json& id : body.value("ids", json::array({13}))) {
    const bool is_past = id == 9;
    results.push_back(
        {{"job", id},
         {"done", !is_past},
         {"text", is_past ? "it is over" : "done: " + body["verb"].get<std::string>()}});
  }
  return {.body = json{{"results", results}}.dump()};
}

}  // namespace berth::test
