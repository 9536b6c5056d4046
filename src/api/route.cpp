#include "api/route.h"

#include <algorithm>
#include <tuple>

#include "api/handlers.h"
#include "base/split.h"

namespace berth::api {

namespace {

const std::vector<Parameter> kJobFilter{
    {"state", "string", "states, separated by commas, or all; default: every job that is not over"},
    {"user", "string", "whose jobs"},
    {"group", "string", "of this group"},
    {"queue", "string", "of this queue"},
    {"name", "string", "of this name"},
    {"ids", "string", "numbers, as in 3,7-9"},
    {"after", "integer", "only numbers above this one: next of the page before"},
    {"limit", "integer", "jobs per page, at most 1000 (default 100)"}};
const std::vector<Parameter> kHistoryFilter{
    {"user", "string", "whose jobs"},
    {"group", "string", "of this group"},
    {"queue", "string", "of this queue"},
    {"name", "string", "of this name"},
    {"outcome", "string", "how they ended, separated by commas"},
    {"since", "integer", "ended at or after this, in Unix microseconds"},
    {"until", "integer", "ended before this, in Unix microseconds"},
    {"cursor", "string", "next of the page before"},
    {"limit", "integer", "jobs per page, at most 1000 (default 100)"}};
const std::vector<Parameter> kOutput{
    {"stream", "string", "out (default) or err"},
    {"offset", "integer", "first byte (default 0); negative: so many before the end"},
    {"limit", "integer", "bytes at most; not with follow"},
    {"follow", "boolean", "goes on as the file grows, until the job is over"}};
const std::vector<Parameter> kEvents{
    {"job", "string", "only of these jobs, as in 3,7-9"},
    {"user", "string", "only of this user's jobs"},
    {"kind", "string", "job, node, policy or cluster"},
    {"after", "integer", "from the event after this one, if it is still kept"}};

std::vector<Route> make_routes() {
  using enum Method;
  constexpr auto kSlow = Pace::Slow;
  constexpr auto kQuick = Pace::Quick;
  constexpr auto kJson = Takes::Json;
  constexpr auto kNone = Takes::Nothing;
  std::vector<Route> all{
      {Post,
       "/api/v1/jobs",
       "submitJob",
       "Submit a job; answered once it is durable",
       kQuick,
       kJson,
       "JobSpec",
       "Submitted",
       {},
       nullptr,
       submit_job},
      {Get, "/api/v1/jobs", "listJobs", "Jobs, by number; without scripts and environments", kSlow,
       kNone, "", "JobPage", kJobFilter, list_jobs},
      {Post,
       "/api/v1/jobs/actions",
       "actOnJobs",
       "Do something to many jobs",
       kSlow,
       kJson,
       "Action",
       "Deeds",
       {},
       act_on_jobs},
      {Get,
       "/api/v1/jobs/{job}",
       "showJob",
       "One job, live or past",
       kSlow,
       kNone,
       "",
       "Job",
       {},
       show_job},
      {Patch,
       "/api/v1/jobs/{job}",
       "changeJob",
       "Change keys of its JobSpec",
       kSlow,
       kJson,
       "JobSpec",
       "Job",
       {},
       change_job},
      {Delete,
       "/api/v1/jobs/{job}",
       "deleteJob",
       "Cancel a job",
       kSlow,
       kJson,
       "Reason",
       "Deed",
       {},
       cancel_job}};
  for (const auto& [path, name, summary] :
       {std::tuple{"/api/v1/jobs/{job}/cancel", "cancelJob", "Cancel a job"},
        std::tuple{"/api/v1/jobs/{job}/hold", "holdJob", "Keep a waiting job from starting"},
        std::tuple{"/api/v1/jobs/{job}/release", "releaseJob", "Let a held job start"},
        std::tuple{"/api/v1/jobs/{job}/requeue", "requeueJob", "Stop it and run it again later"},
        std::tuple{"/api/v1/jobs/{job}/suspend", "suspendJob", "Stop its processes for a while"},
        std::tuple{"/api/v1/jobs/{job}/resume", "resumeJob", "Let them go on"},
        std::tuple{"/api/v1/jobs/{job}/signal", "signalJob", "Send its processes a signal"}}) {
    all.push_back({Post, path, name, summary, kSlow, kJson, "Reason", "Deed", {}, act_on_job});
  }
  const std::vector<Route> more{
      {Get,
       "/api/v1/jobs/{job}/attempts",
       "listAttempts",
       "Every try to run it",
       kSlow,
       kNone,
       "",
       "Attempts",
       {},
       list_attempts},
      {Get,
       "/api/v1/jobs/{job}/why",
       "explainJob",
       "What holds it back, with numbers",
       kSlow,
       kNone,
       "",
       "Why",
       {},
       explain_job},
      {Get, "/api/v1/jobs/{job}/output", "readOutput", "What it wrote", kSlow, kNone, "", "",
       kOutput, read_output},
      {Get, "/api/v1/history", "listHistory", "Jobs that are over, latest end first", kSlow, kNone,
       "", "PastPage", kHistoryFilter, list_history},
      {Get,
       "/api/v1/cluster",
       "showCluster",
       "The scheduler at a glance",
       kQuick,
       kNone,
       "",
       "Cluster",
       {},
       show_cluster},
      {Get,
       "/api/v1/nodes",
       "listNodes",
       "Nodes and who is on their devices",
       kSlow,
       kNone,
       "",
       "Nodes",
       {},
       list_nodes},
      {Post,
       "/api/v1/nodes/{node}/drain",
       "drainNode",
       "No new jobs on it",
       kSlow,
       kJson,
       "NodeReason",
       "Node",
       {},
       set_node},
      {Post,
       "/api/v1/nodes/{node}/resume",
       "resumeNode",
       "Use it again",
       kSlow,
       kJson,
       "NodeReason",
       "Node",
       {},
       set_node},
      {Post,
       "/api/v1/nodes/{node}/down",
       "downNode",
       "It is gone: its jobs run elsewhere",
       kSlow,
       kJson,
       "NodeReason",
       "Node",
       {},
       set_node},
      {Get,
       "/api/v1/policy",
       "showPolicy",
       "The policy and its settings",
       kQuick,
       kNone,
       "",
       "Policy",
       {},
       show_policy},
      {Put,
       "/api/v1/policy",
       "setPolicy",
       "Go on with another policy",
       kSlow,
       kJson,
       "Policy",
       "Policy",
       {},
       set_policy},
      {Get,
       "/api/v1/shares",
       "listShares",
       "Fair shares, use and limits",
       kSlow,
       kNone,
       "",
       "Shares",
       {},
       list_shares},
      {Put,
       "/api/v1/shares",
       "setShare",
       "Change a share; what is not named stays",
       kSlow,
       kJson,
       "ShareChange",
       "Share",
       {},
       set_share},
      {Get,
       "/api/v1/tokens",
       "listTokens",
       "Tokens, without their texts",
       kSlow,
       kNone,
       "",
       "Tokens",
       {},
       list_tokens},
      {Post,
       "/api/v1/tokens",
       "makeToken",
       "A new token; its text is shown once",
       kSlow,
       kJson,
       "TokenRequest",
       "NewToken",
       {},
       make_token},
      {Delete,
       "/api/v1/tokens/{token}",
       "revokeToken",
       "It is good for nothing from now on",
       kSlow,
       kNone,
       "",
       "",
       {},
       revoke_token},
      {Get,
       "/api/v1/whoami",
       "showCaller",
       "Who you are to the scheduler",
       kQuick,
       kNone,
       "",
       "Caller",
       {},
       show_caller},
      {Get, "/api/v1/events", "readEvents", "What happens, as server-sent events", kQuick, kNone,
       "", "", kEvents, read_events},
      {Get,
       "/api/v1/openapi.json",
       "showOpenapi",
       "This document",
       kQuick,
       kNone,
       "",
       "Document",
       {},
       show_openapi,
       nullptr,
       Access::Open},
      {Get,
       "/metrics",
       "showMetrics",
       "Measurements for Prometheus",
       kSlow,
       kNone,
       "",
       "",
       {},
       show_metrics,
       nullptr,
       Access::Metrics},
      {Get,
       "/healthz",
       "showHealth",
       "200 if all is well, 503 if not",
       kQuick,
       kNone,
       "",
       "Health",
       {},
       show_health,
       nullptr,
       Access::Open}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Table {
  std::vector<Route> routes = make_routes();
  std::vector<std::vector<std::string_view>> parts;  // of each path

  Table() {
    for (const Route& route : routes) parts.push_back(split(route.path.substr(1), '/'));
  }
};

const Table& table() {  // never changes
  static const Table the;
  return the;
}

bool is_place_holder(std::string_view part) { return part.starts_with('{'); }

bool fits(const std::vector<std::string_view>& pattern, const std::vector<std::string>& path) {
  return std::ranges::equal(pattern, path, [](std::string_view part, const std::string& given) {
    return is_place_holder(part) ? !given.empty() : part == given;
  });
}

/// "/jobs/actions" before "/jobs/{job}": a word that is written out wins.
bool is_more_exact(const std::vector<std::string_view>& one,
                   const std::vector<std::string_view>& other) {
  return std::ranges::count_if(one, is_place_holder) <
         std::ranges::count_if(other, is_place_holder);
}

}  // namespace

const std::vector<Route>& routes() { return table().routes; }

Match match_route(Method method, const Target& target) {
  const Table& all = table();
  const std::vector<std::string_view>* best = nullptr;
  for (const auto& parts : all.parts) {
    if (fits(parts, target.path) && (best == nullptr || is_more_exact(parts, *best))) best = &parts;
  }
  Match match;
  if (best == nullptr) return match;
  const Method wanted = method == Method::Head ? Method::Get : method;
  for (std::size_t i = 0; i < all.routes.size(); ++i) {
    if (all.parts[i] != *best) continue;
    const Route& route = all.routes[i];
    if (!match.allowed.empty()) match.allowed += ", ";
    match.allowed += to_string(route.method);
    if (route.method == Method::Get) match.allowed += ", HEAD";
    if (route.method == wanted) match.route = &route;
  }
  for (std::size_t i = 0; i < best->size(); ++i) {
    if (is_place_holder((*best)[i])) match.arguments.push_back(target.path[i]);
  }
  return match;
}

}  // namespace berth::api
