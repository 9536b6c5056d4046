#include "api/handlers.h"
#include "api/route.h"

namespace berth::api {

namespace {

const std::vector<Parameter> kJobFilter{
    {"state", "string",
     "states, separated by commas, or all (those that are over too); default: every job that is "
     "not over"},
    {"user", "string", "whose jobs"},
    {"group", "string", "of this group"},
    {"queue", "string", "of this queue"},
    {"name", "string", "of this name"},
    {"ids", "string", "numbers, as in 3,7-9"},
    {"since", "integer", "of those that are over: ended at or after this, in Unix microseconds"},
    {"after", "integer", "only numbers above this one: next of the page before"},
    {"limit", "integer", "rows per page, at most 1000 (default 100)"},
    {"brief", "boolean", "without what is 0, empty or null, paths of output and array indices"},
    {"fold", "boolean",
     "brief, and one row for jobs of an array that wait alike, with their array_indices"}};
const std::vector<Parameter> kHistoryFilter{
    {"user", "string", "whose jobs"},
    {"group", "string", "of this group"},
    {"queue", "string", "of this queue"},
    {"name", "string", "of this name"},
    {"outcome", "string", "how they ended, separated by commas"},
    {"since", "integer", "ended at or after this, in Unix microseconds"},
    {"until", "integer", "ended before this, in Unix microseconds"},
    {"cursor", "string", "next of the page before"},
    {"limit", "integer", "jobs per page, at most 1000 (default 100)"},
    {"brief", "boolean", "without what is 0, empty or null, and paths of output"}};
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

/// How a route is called: by clients, by the document and the metrics, by people.
struct Title {
  std::string_view path, name, summary;
};
using Handler = Answered (*)(const Call&);

Route get(RouteCost cost, const Title& title, std::string_view answer_schema, Handler handler,
          std::vector<Parameter> query = {}) {
  Route route;
  route.method = Method::Get;
  route.path = title.path;
  route.name = title.name;
  route.summary = title.summary;
  route.cost = cost;
  route.answer_schema = answer_schema;
  route.query = std::move(query);
  route.answer = handler;
  return route;
}

Route open_to(Access access, Route route) {
  route.access = access;
  return route;
}

struct Schemas {
  std::string_view body, answer;
};

/// Everything that changes something waits for the disk.
Route change(Method method, const Title& title, const Schemas& schemas, Handler handler) {
  Route route = get(RouteCost::Slow, title, schemas.answer, handler);
  route.method = method;
  route.takes = schemas.body.empty() ? Takes::Nothing : Takes::Json;
  route.body_schema = schemas.body;
  return route;
}

/// Others are answered while it waits: the thread that commits answers.
Route submit() {
  Route route = change(Method::Post,
                       {"/api/v1/jobs", "submitJob", "Submit a job; answered once it is durable"},
                       {"JobSpec", "Submitted"}, nullptr);
  route.cost = RouteCost::Quick;
  route.answer_later = submit_job;
  return route;
}

Route act(const Title& title) {
  return change(Method::Post, title, {"Reason", "Deed"}, act_on_job);
}

}  // namespace

std::vector<Route> make_routes() {
  using enum Method;
  constexpr auto kSlow = RouteCost::Slow;
  constexpr auto kQuick = RouteCost::Quick;
  return {
      submit(),
      get(kSlow, {"/api/v1/jobs", "listJobs", "Jobs, by number; without scripts and environments"},
          "JobPage", list_jobs, kJobFilter),
      change(Post,
             {"/api/v1/jobs/test", "testJob",
              "What would become of a job if it were submitted now; nothing is made"},
             {"JobSpec", "Foreseen"}, test_job),
      change(Post, {"/api/v1/jobs/actions", "actOnJobs", "Do something to many jobs"},
             {"Action", "Deeds"}, act_on_jobs),
      get(kSlow, {"/api/v1/jobs/{job}", "showJob", "One job, live or past"}, "Job", show_job),
      change(Patch, {"/api/v1/jobs/{job}", "changeJob", "Change keys of its JobSpec"},
             {"JobSpec", "Job"}, change_job),
      change(Delete, {"/api/v1/jobs/{job}", "deleteJob", "Cancel a job"}, {"Reason", "Deed"},
             cancel_job),
      act({"/api/v1/jobs/{job}/cancel", "cancelJob", "Cancel a job"}),
      act({"/api/v1/jobs/{job}/hold", "holdJob", "Keep a waiting job from starting"}),
      act({"/api/v1/jobs/{job}/release", "releaseJob", "Let a held job start"}),
      act({"/api/v1/jobs/{job}/requeue", "requeueJob", "Stop it and run it again later"}),
      act({"/api/v1/jobs/{job}/suspend", "suspendJob", "Stop its processes for a while"}),
      act({"/api/v1/jobs/{job}/resume", "resumeJob", "Let them go on"}),
      act({"/api/v1/jobs/{job}/signal", "signalJob", "Send its processes a signal"}),
      change(Post, {"/api/v1/jobs/{job}/join", "joinJob", "Step into a running job of one's own"},
             {"Join", ""}, join_job),
      get(kSlow, {"/api/v1/jobs/{job}/attempts", "listAttempts", "Every try to run it"}, "Attempts",
          list_attempts),
      get(kSlow, {"/api/v1/jobs/{job}/steps", "showSteps", "The steps of its last attempt"},
          "JobSteps", show_steps),
      get(kSlow, {"/api/v1/steps", "listSteps", "The steps of several jobs"}, "Steps", list_steps,
          {{"ids", "string", "numbers of jobs, as in 3,7-9, at most 1000"}}),
      get(kSlow, {"/api/v1/jobs/{job}/why", "explainJob", "What holds it back, with numbers"},
          "Why", explain_job),
      get(kSlow, {"/api/v1/jobs/{job}/output", "readOutput", "What it wrote"}, "", read_output,
          kOutput),
      get(kSlow, {"/api/v1/history", "listHistory", "Jobs that are over, latest end first"},
          "PastPage", list_history, kHistoryFilter),
      get(kQuick, {"/api/v1/cluster", "showCluster", "The scheduler at a glance"}, "Cluster",
          show_cluster),
      get(kSlow, {"/api/v1/nodes", "listNodes", "Nodes and who is on their devices"}, "Nodes",
          list_nodes),
      change(Post, {"/api/v1/nodes/{node}/drain", "drainNode", "No new jobs on it"},
             {"NodeReason", "Node"}, set_node),
      change(Post, {"/api/v1/nodes/{node}/resume", "resumeNode", "Use it again"},
             {"NodeReason", "Node"}, set_node),
      change(Post, {"/api/v1/nodes/{node}/down", "downNode", "It is gone: its jobs run elsewhere"},
             {"NodeReason", "Node"}, set_node),
      get(kSlow, {"/api/v1/profiles", "showProfiles", "What jobs have shown of themselves"},
          "Profiles", show_profiles),
      get(kQuick, {"/api/v1/policy", "showPolicy", "The policy and its settings"}, "Policy",
          show_policy),
      change(Put, {"/api/v1/policy", "setPolicy", "Go on with another policy"},
             {"Policy", "Policy"}, set_policy),
      get(kSlow, {"/api/v1/shares", "listShares", "Fair shares, use and limits"}, "Shares",
          list_shares),
      change(Put, {"/api/v1/shares", "setShare", "Change a share; what is not named stays"},
             {"ShareChange", "Share"}, set_share),
      get(kSlow, {"/api/v1/tokens", "listTokens", "Tokens, without their texts"}, "Tokens",
          list_tokens),
      change(Post, {"/api/v1/tokens", "makeToken", "A new token; its text is shown once"},
             {"TokenRequest", "NewToken"}, make_token),
      change(Delete,
             {"/api/v1/tokens/{token}", "revokeToken", "It is good for nothing from now on"}, {},
             revoke_token),
      get(kQuick, {"/api/v1/whoami", "showCaller", "Who you are to the scheduler"}, "Caller",
          show_caller),
      get(kQuick, {"/api/v1/events", "readEvents", "What happens, as server-sent events"}, "",
          read_events, kEvents),
      open_to(Access::Open, get(kQuick, {"/api/v1/openapi.json", "showOpenapi", "This document"},
                                "Document", show_openapi)),
      open_to(
          Access::Metrics,
          get(kSlow, {"/metrics", "showMetrics", "Measurements for Prometheus"}, "", show_metrics)),
      open_to(Access::Open,
              get(kQuick, {"/healthz", "showHealth", "200 if all is well, 503 if not"}, "Health",
                  show_health))};
}

}  // namespace berth::api
