#include <fmt/format.h>

#include "api/event_stream.h"
#include "api/handlers.h"
#include "api/output_stream.h"

namespace berth::api {

namespace {

constexpr std::int64_t kForEver = std::int64_t{1} << 62U;

enum class Channel : std::uint8_t { Out, Err };

/// The job as its reader may see it now. A fault: it may not.
Answer<OutputStream::Look> look_at(Service& service, const Caller& caller, JobNumber number,
                                   Channel channel) {
  const auto job = service.job(caller, number);
  if (!job) return tl::unexpected<Fault>(job.error());
  if (!may_look_inside(caller, *job)) {
    return tl::unexpected<Fault>(
        Fault{FaultKind::Forbidden, {"the output is for the job's owner and for operators"}});
  }
  const bool is_error = channel == Channel::Err && !job->error.empty();
  return OutputStream::Look{is_error ? job->error : job->output, job->spec ? job->spec->user : "",
                            is_over(job->state)};
}

OutputRange range_from(QueryReader& query, Channel& channel) {
  const std::string stream = query.text("stream").value_or("out");
  if (stream != "out" && stream != "err")
    query.wrong("stream", fmt::format("out or err expected, not '{}'", stream));
  channel = stream == "err" ? Channel::Err : Channel::Out;
  OutputRange range;
  range.offset = query.whole("offset", -kForEver, kForEver).value_or(0);
  range.limit = query.whole("limit", 1, kForEver).value_or(0);
  range.follow = query.flag("follow");
  if (range.follow && range.limit > 0) query.wrong("limit", "not together with follow");
  return range;
}

}  // namespace

Answered read_output(const Call& call) {
  const auto number = job_of(call);
  if (!number) return fault_answer(number.error());
  QueryReader query(call.request.target);
  Channel channel{};
  const OutputRange range = range_from(query, channel);
  if (!query.is_good()) return error_answer(400, query.faults());

  const auto look = look_at(call.service, call.request.caller, *number, channel);
  if (!look) return fault_answer(look.error());
  auto file = open_as_owner(look->path, look->user);
  const bool may_come = range.follow && !look->is_over;
  if (!file && !(file.error().kind == FaultKind::NotFound && may_come))
    return fault_answer(file.error());

  Service& service = call.service;
  auto look_again = [&service, caller = call.request.caller, number = *number,
                     channel]() -> std::optional<OutputStream::Look> {
    auto now = look_at(service, caller, number, channel);
    if (!now) return std::nullopt;
    return *std::move(now);
  };
  auto stream = std::make_unique<OutputStream>(std::move(look_again),
                                               file ? *std::move(file) : FileHandle{}, range);
  Answered answered;
  answered.response.content_type = "text/plain; charset=utf-8";
  answered.response.headers.emplace_back("Berth-Offset", fmt::format("{}", stream->begin()));
  answered.response.headers.emplace_back("Berth-Next-Offset", fmt::format("{}", stream->end()));
  answered.source = std::move(stream);
  return answered;
}

Answered read_events(const Call& call) {
  QueryReader query(call.request.target);
  EventStream::Options options;
  options.filter.jobs = query.numbers("job", 1'000);
  options.filter.user = query.text("user");
  options.filter.kind = query.text("kind");
  const auto after = query.whole("after", 0, kForEver);
  options.after = after ? static_cast<std::uint64_t>(*after) : call.service.latest();
  if (const std::string& last = call.request.head.last_event_id; !last.empty()) {
    // What a browser sends by itself wins: it knows how far it came. 0 is a number here.
    const auto number = last == "0" ? std::optional<JobNumber>(0) : job_number_from(last);
    if (number)
      options.after = *number;
    else
      query.wrong("Last-Event-ID", "the id of an event expected");
  }
  if (!query.is_good()) return error_answer(400, query.faults());
  options.max_bytes = call.options.max_event_buffer_bytes;
  options.heartbeat = call.options.heartbeat;
  Answered answered;
  answered.response.content_type = "text/event-stream";
  answered.source = std::make_unique<EventStream>(call.service, std::move(options));
  return answered;
}

}  // namespace berth::api
