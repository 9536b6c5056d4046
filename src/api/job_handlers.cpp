#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/handlers.h"
#include "api/json.h"
#include "base/suggest.h"
#include "daemon/past_cursor.h"
#include "model/job_spec_json.h"
#include "wire/step_fields.h"

namespace berth::api {

namespace {

constexpr std::int64_t kMaxPage = 1'000;
constexpr std::int64_t kForEver = std::int64_t{1} << 62U;

/// "all" is every state there is; `wrong` hears of others.
template <class Wrong>
std::vector<LiveState> states_from(const std::vector<std::string>& names, Wrong wrong) {
  static constexpr auto kWords = wire::words<LiveState>();
  static const std::vector<std::string> known(kWords.begin(), kWords.end());
  std::vector<LiveState> states;
  for (const std::string& name : names) {
    if (const auto state = live_state_from(name)) {
      states.push_back(*state);
    } else if (name == "all") {
      for (const std::string& each : known) states.push_back(*live_state_from(each));
    } else {
      wrong(fmt::format("unknown state '{}'{}", name, suggestion(name, known)));
    }
  }
  return states;
}

/// The key of an Idempotency-Key header is the spec's key.
Result<void> take_key(JobSpec& spec, const std::string& header) {
  if (header.empty()) return {};
  const bool is_plain = std::ranges::all_of(header, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!is_plain || header.size() > kMaxNameBytes)
    return fail(fmt::format("Idempotency-Key: at most {} printable characters", kMaxNameBytes));
  if (!spec.key.empty() && spec.key != header)
    return fail("Idempotency-Key: differs from the key in the body");
  spec.key = header;
  return {};
}

tl::expected<JobSpec, Response> spec_from(const Call& call) {
  const auto document = parse_body(call.body);
  if (!document) return tl::unexpected<Response>(error_response(400, document.error().messages));
  auto spec = job_spec_from_json(*document);
  if (!spec) return tl::unexpected<Response>(error_response(400, spec.error().messages));
  if (const auto key = take_key(*spec, call.request.head.idempotency_key); !key)
    return tl::unexpected<Response>(error_response(400, key.error().messages));
  if (const auto faults = problems(*spec); !faults.empty())
    return tl::unexpected<Response>(error_response(422, faults));
  return *std::move(spec);
}

Answered submitted_answer(const Answer<Submitted>& submitted) {
  if (!submitted) return fault_answer(submitted.error());
  Answered answered = answer_of(*submitted, submitted->is_repeat ? 200 : 201);
  answered.response.headers.emplace_back("Location",
                                         fmt::format("/api/v1/jobs/{}", submitted->first));
  return answered;
}

JobFilter filter_from(QueryReader& query) {
  JobFilter filter;
  filter.states = states_from(query.list("state"),
                              [&](const std::string& what) { query.wrong("state", what); });
  filter.user = query.text("user");
  filter.group = query.text("group");
  filter.queue = query.text("queue");
  filter.name = query.text("name");
  filter.numbers = query.numbers("ids", wire::kMaxNumbers);
  filter.ended_since = query.whole("since", 0, kForEver);
  if (const auto after = query.whole("after", 0, kForEver))
    filter.after = static_cast<JobNumber>(*after);
  filter.limit = static_cast<std::size_t>(query.whole("limit", 1, kMaxPage).value_or(100));
  filter.rows = query.flag("fold") ? Rows::Folded : query.flag("brief") ? Rows::Brief : Rows::Whole;
  return filter;
}

/// The same question with another place to go on from, for a Link header.
std::string next_link(const Target& target, std::string_view parameter, std::string_view value) {
  std::string link = "<";
  for (const std::string& part : target.path) link += "/" + part;
  char before = '?';
  const auto add = [&](std::string_view name, std::string_view text) {
    link += before;
    link += name;
    link += '=';
    for (const char c : text) {
      const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                            (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
      link += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    before = '&';
  };
  for (const auto& [name, text] : target.query) {
    if (name != parameter) add(name, text);
  }
  add(parameter, value);
  return link + ">; rel=\"next\"";
}

/// A signal is needed by its verb alone.
void check_signal(BodyReader& body, Verb verb, std::optional<std::int32_t> signal) {
  if (verb == Verb::Signal && !signal && body.is_good())
    body.wrong("signal", "which one (1 to 64)?");
}

/// It is not there, it is somebody else's, or it is not in the state for it.
Answered not_done(const Call& call, const VerbResult& result) {
  const auto job = call.service.job(call.request.caller, result.job);
  if (!job) return fault_answer(job.error());
  return error_answer(may_look_inside(call.request.caller, *job) ? 409 : 403, {result.text});
}

Answered act_on_one(const Call& call, Verb verb) {
  const auto number = job_of(call);
  if (!number) return fault_answer(number.error());
  const auto asked =
      read_body<ActionReason>(call, [&](BodyReader& body, const ActionReason& reason) {
        check_signal(body, verb, reason.signal);
      });
  if (!asked) return Answered{asked.error(), nullptr};

  JobFilter filter;
  filter.numbers = {*number};
  const auto results =
      call.service.act(call.request.caller, verb, filter, asked->why,
                       {asked->signal.value_or(0), asked->shell_only.value_or(false)});
  if (!results) return fault_answer(results.error());
  if (results->empty()) return error_answer(404, {fmt::format("there is no job {}", *number)});
  if (!results->front().is_done) return not_done(call, results->front());
  return answer_of(results->front());
}

JobFilter selection_from(BodyReader& body, const JobAction& action) {
  JobFilter filter;
  filter.numbers = action.ids;
  filter.user = action.user;
  filter.group = action.group;
  filter.queue = action.queue;
  filter.name = action.name;
  filter.study = action.study;
  filter.states =
      states_from(action.states, [&](const std::string& what) { body.wrong("state", what); });
  filter.limit = SIZE_MAX;
  if (filter.numbers.empty() && !filter.user && !filter.group && !filter.queue && !filter.name &&
      !filter.study && filter.states.empty() && body.is_good())
    body.wrong("ids", "say which jobs: ids, user, group, queue, name, study or state");
  return filter;
}

PastQuery past_query_from(QueryReader& query) {
  PastQuery past;
  past.user = query.text("user");
  past.group = query.text("group");
  past.queue = query.text("queue");
  past.name = query.text("name");
  for (const std::string& name : query.list("outcome")) {
    if (const auto outcome = outcome_from(name))
      past.outcomes.push_back(*outcome);
    else
      query.wrong("outcome", fmt::format("unknown outcome '{}'", name));
  }
  past.since_wall = query.whole("since", 0, kForEver);
  past.until_wall = query.whole("until", 0, kForEver);
  if (const auto cursor = query.text("cursor")) {
    past.before = past_cursor_from(*cursor);
    if (!past.before) query.wrong("cursor", "not one that a page gave as next");
  }
  past.limit = static_cast<std::size_t>(query.whole("limit", 1, kMaxPage).value_or(100));
  return past;
}

}  // namespace

tl::expected<JobNumber, Fault> job_of(const Call& call) {
  const std::string& text = call.request.arguments.front();
  if (const auto number = job_number_from(text)) return *number;
  return tl::unexpected<Fault>(
      Fault{FaultKind::NotFound, {fmt::format("'{}' is not the number of a job", text)}});
}

bool may_look_inside(const Caller& caller, const JobView& job) {
  return caller.role >= Role::Operator || (job.spec && job.spec->user == caller.user);
}

Answered test_job(const Call& call) {
  auto spec = spec_from(call);
  if (!spec) return {std::move(spec).error(), nullptr};
  const auto seen = call.service.test(call.request.caller, *std::move(spec));
  if (!seen) return fault_answer(seen.error());
  return answer_of(*seen);
}

void submit_job(const Call& call, Reply reply) {
  auto spec = spec_from(call);
  if (!spec) return reply(Answered{std::move(spec).error(), nullptr});
  call.service.submit_async(call.request.caller, *std::move(spec),
                            [reply = std::move(reply)](const Answer<Submitted>& submitted) {
                              reply(submitted_answer(submitted));
                            });
}

Answered list_jobs(const Call& call) {
  QueryReader query(call.request.target);
  const JobFilter filter = filter_from(query);
  if (!query.is_good()) return error_answer(400, query.faults());
  const auto page = call.service.jobs(call.request.caller, filter);
  if (!page) return fault_answer(page.error());
  Answered answered = json_answer(
      wire::to_json(*page, filter.rows == Rows::Whole ? wire::Detail::WithoutScriptAndEnvironment
                                                      : wire::Detail::Brief));
  if (page->next) {
    answered.response.headers.emplace_back(
        "Link", next_link(call.request.target, "after", fmt::format("{}", *page->next)));
  }
  return answered;
}

Answered show_job(const Call& call) {
  const auto number = job_of(call);
  if (!number) return fault_answer(number.error());
  const auto job = call.service.job(call.request.caller, *number);
  if (!job) return fault_answer(job.error());
  return json_answer(wire::to_json(*job, may_look_inside(call.request.caller, *job)
                                             ? wire::Detail::Full
                                             : wire::Detail::WithoutScriptAndEnvironment));
}

Answered change_job(const Call& call) {
  const auto number = job_of(call);
  if (!number) return fault_answer(number.error());
  const auto changes = parse_body(call.body);
  if (!changes) return error_answer(400, changes.error().messages);
  if (changes->empty()) return error_answer(400, {"body: nothing to change"});
  if (const auto spec = job_spec_from_json(*changes); !spec)  // every key and kind of value
    return error_answer(400, spec.error().messages);
  const auto job = call.service.change(call.request.caller, *number, changes->dump());
  if (!job) return fault_answer(job.error());
  return json_answer(wire::to_json(*job, wire::Detail::Full));
}

Answered cancel_job(const Call& call) { return act_on_one(call, Verb::Cancel); }

Answered act_on_job(const Call& call) {
  const auto verb = wire::value_of<Verb>(call.request.target.path.back());
  return act_on_one(call, verb.value());
}

Answered join_job(const Call& call) {
  const auto number = job_of(call);
  if (!number) return fault_answer(number.error());
  const auto asked = read_body<JobJoin>(call, [](BodyReader& body, const JobJoin& join) {
    if (join.request == 0 && body.is_good()) body.wrong("request", "which one?");
  });
  if (!asked) return Answered{asked.error(), nullptr};
  const auto done = call.service.join(call.request.caller, *number, asked->request);
  if (!done) return fault_answer(done.error());
  return json_answer("", 204);
}

Answered act_on_jobs(const Call& call) {
  JobFilter filter;
  const auto action = read_body<JobAction>(call, [&](BodyReader& body, const JobAction& asked) {
    filter = selection_from(body, asked);
    check_signal(body, asked.verb, asked.signal);
  });
  if (!action) return Answered{action.error(), nullptr};
  auto results = call.service.act(call.request.caller, action->verb, filter, action->why,
                                  {action->signal.value_or(0), action->shell_only.value_or(false)});
  if (!results) return fault_answer(results.error());
  return answer_of(VerbResultList{*std::move(results)});
}

Answered list_attempts(const Call& call) {
  const auto number = job_of(call);
  if (!number) return fault_answer(number.error());
  auto attempts = call.service.attempts(call.request.caller, *number);
  if (!attempts) return fault_answer(attempts.error());
  return answer_of(AttemptList{*std::move(attempts)});
}

Answered show_steps(const Call& call) {
  const auto number = job_of(call);
  if (!number) return fault_answer(number.error());
  auto steps = call.service.steps(call.request.caller, {*number});
  if (!steps) return fault_answer(steps.error());
  if (steps->jobs.empty()) return error_answer(404, {fmt::format("there is no job {}", *number)});
  return answer_of(steps->jobs.front());
}

Answered list_steps(const Call& call) {
  QueryReader query(call.request.target);
  const auto numbers = query.numbers("ids", static_cast<std::size_t>(kMaxPage));
  if (numbers.empty() && query.is_good()) query.wrong("ids", "which jobs (as in 3,7-9)?");
  if (!query.is_good()) return error_answer(400, query.faults());
  auto steps = call.service.steps(call.request.caller, numbers);
  if (!steps) return fault_answer(steps.error());
  return answer_of(*steps);
}

Answered explain_job(const Call& call) {
  const auto number = job_of(call);
  if (!number) return fault_answer(number.error());
  auto why = call.service.why(call.request.caller, *number);
  if (!why) return fault_answer(why.error());
  return json_answer(*std::move(why));
}

Answered list_history(const Call& call) {
  QueryReader query(call.request.target);
  const PastQuery past = past_query_from(query);
  const bool is_brief = query.flag("brief");
  if (!query.is_good()) return error_answer(400, query.faults());
  const auto page = call.service.history(call.request.caller, past);
  if (!page) return fault_answer(page.error());
  Answered answered = json_answer(wire::to_json(
      *page, is_brief ? wire::Detail::Brief : wire::Detail::WithoutScriptAndEnvironment));
  if (page->next) {
    answered.response.headers.emplace_back("Link",
                                           next_link(call.request.target, "cursor", *page->next));
  }
  return answered;
}

}  // namespace berth::api
