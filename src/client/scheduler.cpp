// One call per route of the API. A scheduler that restarts is waited for, as long as repeating the
// request is harmless; a submit has a key of its own, which makes it so.

#include "client/scheduler.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <random>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "client/last_words.h"
#include "model/job_spec_json.h"
#include "wire/tree.h"

namespace berth::client {

namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr std::size_t kPage = 1'000;
/// Of one question: the scheduler takes so many numbers, and a line of HTTP has its limits.
constexpr std::size_t kMaxIds = 10'000;
constexpr std::size_t kMaxIdText = 4'000;
/// Heartbeats come more often: this long without one means that the scheduler is gone.
constexpr auto kSilence = 90s;

/// ?a=b&c=d; empty values are left out.
class Query {
 public:
  Query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += fmt::format("{}{}={}", text_.empty() ? '?' : '&', name, percent_encoded(value));
    return *this;
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

std::string joined(const std::vector<LiveState>& states) {
  std::string text;
  for (const LiveState state : states) {
    if (!text.empty()) text += ',';
    text += to_string(state);
  }
  return text;
}

/// Job numbers, ascending, as the API takes them: "3,7-9,12".
struct IdText {
  std::string text{};
  std::size_t count = 0;
};
/// As many of them as one question can hold.
/// Runs as ranges: a whole array is a few characters.
IdText ids_text(std::span<const JobNumber> ids) {
  IdText result;
  while (result.count < ids.size() && result.count < kMaxIds && result.text.size() < kMaxIdText) {
    std::size_t last = result.count;
    while (last + 1 < ids.size() && last + 1 < kMaxIds && ids[last + 1] == ids[last] + 1) ++last;
    if (!result.text.empty()) result.text += ',';
    result.text += fmt::format("{}", ids[result.count]);
    if (last > result.count) result.text += fmt::format("-{}", ids[last]);
    result.count = last + 1;
  }
  return result;
}

std::string micros(std::optional<std::int64_t> seconds) {
  return seconds ? fmt::format("{}", *seconds * 1'000'000) : std::string{};
}

/// One page after the other until there are no more, or `most` jobs (0: all of them). `cursor` is
/// the parameter that says where the next one begins.
template <class Ask>
Result<JobRows> all_pages(Query question, std::string_view cursor, std::size_t most, Rows rows,
                          Ask ask) {
  JobRows all;
  if (rows != Rows::WithJson) question.add(rows == Rows::Folded ? "fold" : "brief", "1");
  while (true) {
    // Pages of a bounded size: neither side holds a million jobs in one answer.
    const std::size_t wanted = most == 0 ? kPage : std::min(kPage, most - all.jobs.size());
    const std::string from = all.next;
    Query text = question;
    text.add(cursor, from).add("limit", fmt::format("{}", wanted));
    BERTH_TRY(const std::string body, ask(text));
    BERTH_TRY(JobRows page, jobs_from(body, rows == Rows::WithJson ? KeepJson::Yes : KeepJson::No));
    all.total = page.total;
    all.next = page.next;
    all.jobs.insert(all.jobs.end(), std::make_move_iterator(page.jobs.begin()),
                    std::make_move_iterator(page.jobs.end()));
    const bool is_enough = most != 0 && all.jobs.size() >= most;
    // A cursor that does not move would be an endless loop.
    if (page.next.empty() || page.next == from || is_enough) return all;
  }
}

std::string_view meaning(int status) {
  switch (status) {
    case 401: return "not let in: the token is missing or no longer good";
    case 403: return "not allowed";
    case 404: return "there is no such thing here";
    case 408: return "the scheduler waited too long for the request";
    case 409: return "not possible in its present state";
    case 413: return "the request is too large";
    case 422: return "this can never be done here";
    case 429: return "too many requests or jobs";
    case 503: return "the scheduler cannot take this now";
    default: return status >= 500 ? "the scheduler failed" : "the scheduler refused";
  }
}

}  // namespace

// 128 bits from the system: no two submits of a cluster's life share one.
std::string random_key() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// The scheduler's own words if it sent any; the remedy for a token is ours.
Error error_of(const HttpReply& reply, const Endpoint& endpoint) {
  Error error;
  error.messages = error_messages(reply.body);
  if (error.messages.empty())
    error.messages.push_back(fmt::format("{} (HTTP {})", meaning(reply.status), reply.status));
  if (reply.status == 401) {
    error.messages.push_back(
        endpoint.token.empty()
            ? "set BERTH_TOKEN, or keep a token in ~/.config/berth/token (chmod 600)"
            : "ask an administrator for a new token (`berth token make`)");
  }
  const std::string_view retry = reply.header("retry-after");
  if ((reply.status == 429 || reply.status == 503) && !retry.empty() && retry.size() < 20)
    error.messages.push_back(fmt::format("try again in {} s", retry));
  return error;
}

/// A scheduler that restarts is away for seconds; how long to wait, and what to say meanwhile.
class Scheduler::Waiting {
 public:
  Waiting(const Scheduler& scheduler, std::chrono::milliseconds patience)
      : scheduler_(scheduler), patience_(patience) {}

  /// Whether another try makes sense; pauses before it.
  bool goes_on(const Error& error, bool is_repeatable) {
    using Failure = HttpClient::Failure;
    const Failure failure = scheduler_.http_->failure();
    const bool is_away = scheduler_.status_ == 0 ? failure == Failure::Away ||
                                                       (failure == Failure::CutOff && is_repeatable)
                                                 : scheduler_.is_stopping_;
    const auto waited = std::chrono::steady_clock::now() - begun_;
    if (!is_away || waited + pause_ > patience_) return false;
    if (!is_said_ && scheduler_.patience_.note && waited >= kMoment) {
      is_said_ = true;
      scheduler_.patience_.note(fmt::format("{}; trying again for {} s", error.messages.front(),
                                            (patience_ - kMoment).count() / 1'000));
    }
    std::this_thread::sleep_for(pause_);
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, 500ms);
    return true;
  }

 private:
  /// After so long people wonder.
  static constexpr std::chrono::milliseconds kMoment = 2s;

  const Scheduler& scheduler_;
  std::chrono::milliseconds patience_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds pause_ = 20ms;
  bool is_said_ = false;
};

// status_ stays 0 without an answer: callers tell "refused" from "not there" by it.
Result<std::string> Scheduler::exchange_once(const HttpRequest& request) {
  status_ = 0;
  is_stopping_ = false;
  BERTH_TRY(auto reply, http_->send(request));
  status_ = reply.status;
  if (reply.status >= 200 && reply.status < 300) return std::move(reply.body);
  Error error = error_of(reply, http_->endpoint());
  is_stopping_ =
      reply.status == 503 && error.messages.front().find("is stopping") != std::string::npos;
  return tl::unexpected<Error>(std::move(error));
}

Result<std::string> Scheduler::exchange(const HttpRequest& request) {
  Waiting waiting(*this, patience_.of_others);
  while (true) {
    auto body = exchange_once(request);
    if (body || !waiting.goes_on(body.error(), request.is_repeatable())) return body;
  }
}

Result<std::string> Scheduler::get(const std::string& path) {
  return exchange({.method = "GET", .target = "/api/v1" + path});
}

Result<std::string> Scheduler::send(const std::string& method, const std::string& path,
                                    std::string body) {
  return exchange({.method = method, .target = "/api/v1" + path, .body = std::move(body)});
}

Result<Scheduler::SubmitAnswer> Scheduler::submit(JobSpec spec) {
  if (spec.key.empty()) spec.key = random_key();
  const std::string key = spec.key;
  const HttpRequest request{
      .method = "POST",
      .target = "/api/v1/jobs",
      .body = to_json(spec).dump(-1, ' ', false, json::error_handler_t::replace),
      .headers = {{"Idempotency-Key", key}}};
  // Once the request is out nobody knows whether it was taken: ask again under the same key, for as
  // long as a scheduler needs to come back.
  const std::string again = fmt::format(
      "it may have been taken: submit again with --key {} and it will not run twice", key);
  LastWords words;
  Waiting waiting(*this, patience_.of_submit);
  bool is_out = false;
  while (true) {
    words.set("berth: interrupted while the job was being sent: " + again);
    auto body = exchange_once(request);
    if (body) {
      BERTH_TRY(auto reply, submit_from(*body));
      return SubmitAnswer{std::move(reply), *std::move(body)};
    }
    is_out = is_out || (status_ == 0 && http_->was_sent());
    if (!is_out)
      words.set("berth: interrupted: the scheduler was not there, the job was not taken");
    if (waiting.goes_on(body.error(), true)) continue;
    if (status_ != 0 || !is_out) return tl::unexpected<Error>(body.error());
    Error lost(
        fmt::format("{}: the scheduler went away after the job was sent", endpoint().text()));
    lost.messages.push_back(again);
    return tl::unexpected<Error>(std::move(lost));
  }
}

Result<Scheduler::TestAnswer> Scheduler::test(const JobSpec& spec) {
  BERTH_TRY(auto body, send("POST", "/jobs/test",
                            to_json(spec).dump(-1, ' ', false, json::error_handler_t::replace)));
  BERTH_TRY(auto seen, foreseen_from(body));
  return TestAnswer{std::move(seen), std::move(body)};
}

// Many numbers become several questions; doubles are asked for once.
Result<JobRows> Scheduler::jobs(const JobQuery& query) {
  if (query.ids.empty()) return some_jobs(query, "");
  std::vector<JobNumber> ids = query.ids;
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  JobRows all;
  for (std::span<const JobNumber> left = ids; !left.empty();) {
    const IdText part = ids_text(left);
    BERTH_TRY(JobRows page, some_jobs(query, part.text));
    all.total += page.total;
    all.jobs.insert(all.jobs.end(), std::make_move_iterator(page.jobs.begin()),
                    std::make_move_iterator(page.jobs.end()));
    left = left.subspan(part.count);
  }
  return all;
}

// Asked once: "me" is whoever the scheduler takes us for, which a token decides.
Result<std::string> Scheduler::name_of(const std::string& user) {
  if (user != kMe) return user;
  if (me_.empty()) {
    BERTH_TRY(const std::string body, get("/whoami"));
    BERTH_TRY(me_, caller_from(body));
  }
  return me_;
}

Result<JobRows> Scheduler::some_jobs(const JobQuery& query, const std::string& ids) {
  BERTH_TRY(const std::string user, name_of(query.user));
  Query question;
  question.add("state", query.any_state ? "all" : joined(query.states))
      .add("user", user)
      .add("group", query.group)
      .add("queue", query.queue)
      .add("name", query.name)
      .add("ids", ids)
      .add("since", micros(query.ended_since));
  return all_pages(question, "after", query.most, query.rows,
                   [this](const Query& page) { return get("/jobs" + page.text()); });
}

Result<JobRows> Scheduler::history(const HistoryQuery& query) {
  BERTH_TRY(const std::string user, name_of(query.user));
  std::string outcomes;
  for (const std::string& one : query.outcomes) outcomes += (outcomes.empty() ? "" : ",") + one;
  Query question;
  question.add("user", user)
      .add("group", query.group)
      .add("queue", query.queue)
      .add("name", query.name)
      .add("outcome", outcomes)
      .add("since", micros(query.since))
      .add("until", micros(query.until));
  return all_pages(question, "cursor", query.most, query.rows,
                   [this](const Query& page) { return get("/history" + page.text()); });
}

Result<JobRow> Scheduler::job(JobNumber number) {
  BERTH_TRY(const std::string body, get(fmt::format("/jobs/{}", number)));
  return job_from(body);
}

Result<std::vector<AttemptView>> Scheduler::attempts(JobNumber number) {
  BERTH_TRY(const std::string body, get(fmt::format("/jobs/{}/attempts", number)));
  return attempts_from(body);
}

// As many at once as a request line holds.
Result<std::vector<JobSteps>> Scheduler::steps(std::vector<JobNumber> numbers) {
  constexpr std::size_t kAtOnce = 500;
  std::ranges::sort(numbers);
  std::vector<JobSteps> all;
  for (std::size_t first = 0; first < numbers.size(); first += kAtOnce) {
    const std::span some =
        std::span(numbers).subspan(first, std::min(kAtOnce, numbers.size() - first));
    const auto body = get(fmt::format("/steps?ids={}", fmt::join(some, ",")));
    if (!body && status_ == 404) return all;  // an older scheduler keeps no steps
    if (!body) return tl::unexpected<Error>(body.error());
    BERTH_TRY(auto rows, steps_from(*body));
    std::ranges::move(rows, std::back_inserter(all));
  }
  return all;
}

Result<std::vector<VerbResult>> Scheduler::act(JobAction action) {
  if (action.user) {
    BERTH_TRY(action.user, name_of(*action.user));
  }
  for (auto* part : {&action.user, &action.group, &action.queue, &action.name, &action.study})
    if (*part && (*part)->empty()) part->reset();
  // Doing these twice changes nothing; the second answer may only say that it is done already.
  const bool may_repeat =
      action.verb == Verb::Cancel || action.verb == Verb::Hold || action.verb == Verb::Release;
  BERTH_TRY(const std::string answer, exchange({.method = "POST",
                                                .target = "/api/v1/jobs/actions",
                                                .body = wire::to_sorted_json(action),
                                                .headers = {},
                                                .may_repeat = may_repeat}));
  return results_from(answer);
}

Result<JobRow> Scheduler::change(JobNumber number, const std::string& changes) {
  BERTH_TRY(const std::string body, send("PATCH", fmt::format("/jobs/{}", number), changes));
  return job_from(body);
}

Result<std::string> Scheduler::why(JobNumber number) {
  return get(fmt::format("/jobs/{}/why", number));
}

Result<ClusterView> Scheduler::cluster() {
  BERTH_TRY(const std::string body, get("/cluster"));
  return cluster_from(body);
}

Result<std::vector<NodeView>> Scheduler::nodes() {
  BERTH_TRY(const std::string body, get("/nodes"));
  return nodes_from(body);
}

// A refusal is an ordinary answer: its body is read for the reason.
Result<std::unique_ptr<HttpStream>> Scheduler::stream(const std::string& path, Headers headers) {
  status_ = 0;
  BERTH_TRY(auto stream,
            http_->open({.target = "/api/v1" + path, .headers = std::move(headers)}, kSilence));
  status_ = stream->head().status;
  if (status_ >= 200 && status_ < 300) return stream;
  HttpReply reply = stream->head();
  BERTH_TRY(reply.body, stream->rest());
  return tl::unexpected<Error>(error_of(reply, http_->endpoint()));
}

Result<std::string> Scheduler::learnt_profiles() {
  BERTH_TRY(const std::string text, get("/profiles"));
  return profiles_from(text);
}

Result<Scheduler::EnergySums> Scheduler::energy_sums() {
  BERTH_TRY(const std::string text, exchange({.method = "GET", .target = "/metrics"}));
  constexpr std::string_view kUser = "berth_user_energy_joules_total{user=\"";
  constexpr std::string_view kNobody = "berth_nobody_energy_joules_total ";
  EnergySums sums;
  bool is_counted = false;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    const bool is_user = line.starts_with(kUser), is_nobody = line.starts_with(kNobody);
    const std::size_t space = line.rfind(' ');
    if ((!is_user && !is_nobody) || space == std::string::npos) continue;
    double joules = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), joules);
    const std::size_t end = line.rfind("\"}");
    if (is_nobody) sums.nobody = joules;
    if (is_nobody) is_counted = true;
    if (is_user && end >= kUser.size() && end != std::string::npos)
      sums.users[line.substr(kUser.size(), end - kUser.size())] = joules;
  }
  if (!is_counted) return fail("this scheduler counts no energy (is it older than this program?)");
  return sums;
}

}  // namespace berth::client
