#include "api/json.h"

#include "model/job_spec_json.h"

namespace berth::api {

namespace {

constexpr double kJoulesPerKwh = 3.6e6;

void time_field(JsonWriter& out, std::string_view name, std::int64_t time) {
  out.key(name);
  if (time == 0)
    out.null();
  else
    out.value(time);
}

template <class Number>
void write_numbers(JsonWriter& out, const std::vector<Number>& numbers) {
  out.begin_array();
  for (const Number number : numbers) out.value(number);
  out.end_array();
}

void write(JsonWriter& out, const std::vector<HeldDevices>& where) {
  out.begin_array();
  for (const HeldDevices& held : where) {
    out.begin_object().field("node", held.node).key("devices");
    write_numbers(out, held.devices);
    out.key("cores");
    write_numbers(out, held.cores);
    out.end_object();
  }
  out.end_array();
}

void write(JsonWriter& out, const TrainingView& training) {
  out.begin_object();
  out.field("iterations", training.iterations);
  out.field("iterations_per_second", training.iterations_per_second);
  out.field("samples_per_second", training.samples_per_second);
  out.key("loss");
  if (training.loss)
    out.value(*training.loss);
  else
    out.null();
  out.field("sub_steps", training.sub_steps);
  out.field("last_heard_seconds_ago", training.last_heard_seconds_ago);
  out.end_object();
}

void write(JsonWriter& out, const PaceView& pace) {
  out.begin_object().field("rate", pace.rate);
  if (pace.progress) out.field("progress", *pace.progress);
  if (pace.seconds_left) out.field("seconds_left", *pace.seconds_left);
  out.field("source", pace.source).end_object();
}

void write(JsonWriter& out, const std::vector<std::pair<std::string, std::string>>& settings) {
  out.begin_object();
  for (const auto& [name, value] : settings) out.field(name, value);
  out.end_object();
}

}  // namespace

namespace {

/// Jobs of an array stand together and have one request, the text of which may name ten thousand
/// indices: it is made once.
struct SpecText {
  const JobSpec* spec = nullptr;
  std::string json = "null";
};

const std::string& text_of(const JobSpec* spec, Detail detail, SpecText& last) {
  if (spec == nullptr) last = {};
  if (last.spec == spec) return last.json;
  JsonWriter out;
  write_json(out, *spec,
             detail == Detail::Full    ? SpecPart::Whole
             : detail == Detail::Brief ? SpecPart::Brief
                                       : SpecPart::WithoutScriptAndEnvironment);
  last = {.spec = spec, .json = out.take()};
  return last.json;
}

void write_whole(JsonWriter& out, const JobView& job, Detail detail, SpecText& last) {
  out.begin_object();
  out.field("number", job.number).field("array", job.array).field("array_index", job.array_index);
  out.key("spec").raw(text_of(job.spec.get(), detail, last));
  out.field("state", to_string(job.state)).field("reason", job.reason);
  out.field("reason_code", to_string(job.code));
  time_field(out, "submitted", job.submitted);
  time_field(out, "started", job.started);
  time_field(out, "last_started", job.last_started);
  time_field(out, "ended", job.ended);
  out.field("run_seconds", job.run_seconds).field("gpu_seconds", job.gpu_seconds);
  out.field("energy_kwh", job.joules / kJoulesPerKwh);
  out.field("attempts", job.attempts).field("preemptions", job.preemptions);
  out.field("failures", job.failures);
  out.key("where");
  write(out, job.where);
  out.field("granted", job.granted);
  out.field("exit_code", job.exit_code).field("signal", job.signal).field("pid", job.pid);
  out.field("output", job.output).field("error", job.error);
  out.key("training");
  if (job.training)
    write(out, *job.training);
  else
    out.null();
  out.key("pace");
  if (job.pace)
    write(out, *job.pace);
  else
    out.null();
  out.end_object();
}

void write_brief(JsonWriter& out, const JobView& job, SpecText& last) {
  const auto some = [&](std::string_view name, const auto& value) {
    if (value != std::decay_t<decltype(value)>{}) out.field(name, value);
  };
  out.begin_object().field("number", job.number);
  some("array", job.array);
  if (job.array != 0) out.field("array_index", job.array_index);
  if (job.spec && job.spec->array) some("array_at_once", job.spec->array->at_once);
  if (!job.folded.empty())
    out.field("array_indices", to_text(ArraySpec{.indices = job.folded, .at_once = 0}));
  out.key("spec").raw(text_of(job.spec.get(), Detail::Brief, last));
  out.field("state", to_string(job.state));
  some("reason", job.reason);
  some("reason_code", to_string(job.code));
  some("submitted", job.submitted);
  some("started", job.started);
  some("last_started", job.last_started);
  some("ended", job.ended);
  some("run_seconds", job.run_seconds);
  some("gpu_seconds", job.gpu_seconds);
  some("energy_kwh", job.joules / kJoulesPerKwh);
  some("attempts", job.attempts);
  some("preemptions", job.preemptions);
  some("failures", job.failures);
  if (!job.where.empty()) {
    out.key("where");
    write(out, job.where);
  }
  some("granted", job.granted);
  some("exit_code", job.exit_code);
  some("signal", job.signal);
  some("pid", job.pid);
  if (job.training) {
    out.key("training");
    write(out, *job.training);
  }
  if (job.pace) {
    out.key("pace");
    write(out, *job.pace);
  }
  out.end_object();
}

/// "jobs":[…]
void write_rows(JsonWriter& out, const std::vector<JobView>& jobs, Detail detail) {
  SpecText last;
  out.key("jobs").begin_array();
  for (const JobView& job : jobs) {
    if (detail == Detail::Brief)
      write_brief(out, job, last);
    else
      write_whole(out, job, detail, last);
  }
  out.end_array();
}

}  // namespace

void write(JsonWriter& out, const JobView& job, Detail detail) {
  SpecText nothing;
  if (detail == Detail::Brief)
    write_brief(out, job, nothing);
  else
    write_whole(out, job, detail, nothing);
}

void write(JsonWriter& out, const AttemptRow& attempt) {
  out.begin_object();
  out.field("id", to_text(attempt.id));
  out.key("where");
  write(out, attempt.where);
  time_field(out, "begun", attempt.begun_wall);
  time_field(out, "ended", attempt.ended_wall);
  out.key("outcome");
  if (attempt.outcome)
    out.value(to_string(*attempt.outcome));
  else
    out.null();
  out.field("exit_code", attempt.exit_code).field("signal", attempt.signal);
  out.field("gpu_seconds", attempt.gpu_seconds).field("why", attempt.why);
  out.end_object();
}

void write(JsonWriter& out, const Deed& deed) {
  out.begin_object().field("job", deed.job).field("done", deed.is_done).field("text", deed.text);
  out.end_object();
}

void write(JsonWriter& out, const NodeView& node) {
  out.begin_object();
  out.field("name", node.name).field("state", node.state).field("reason", node.reason);
  out.field("type", node.type).field("gpus", node.gpus).field("gpus_used", node.gpus_used);
  out.field("cpus", node.cpus).field("cpus_used", node.cpus_used);
  out.field("memory_mib", node.memory_mib);
  out.key("devices").begin_array();
  for (const auto& jobs : node.devices) write_numbers(out, jobs);
  out.end_array().key("energy_kwh").begin_object();
  for (std::size_t use = 0; use < kNodeUseNames.size(); ++use)
    out.field(kNodeUseNames[use], node.joules[use] / kJoulesPerKwh);
  out.end_object().end_object();
}

void write(JsonWriter& out, const ClusterView& cluster) {
  out.begin_object().field("policy", cluster.policy).key("settings");
  write(out, cluster.settings);
  out.field("version", cluster.version).field("generation", cluster.generation);
  time_field(out, "started", cluster.started);
  out.field("uptime_seconds", cluster.uptime_seconds);
  out.field("pending", cluster.pending).field("running", cluster.running);
  out.field("held", cluster.held).field("gpus", cluster.gpus);
  out.field("gpus_used", cluster.gpus_used).key("queues").begin_array();
  for (const QueueView& queue : cluster.queues) {
    out.begin_object().field("name", queue.name);
    out.field("max_time_limit", queue.max_time_limit).end_object();
  }
  out.end_array().field("passes", cluster.passes);
  out.field("last_pass_seconds", cluster.last_pass_seconds);
  out.field("worst_pass_seconds", cluster.worst_pass_seconds);
  out.field("trouble", cluster.trouble).end_object();
}

void write(JsonWriter& out, const ShareView& share) {
  out.begin_object().field("kind", share.kind).field("name", share.name);
  out.field("shares", share.shares).field("gpu_seconds", share.gpu_seconds);
  out.field("gpus_now", share.gpus_now).field("jobs_now", share.jobs_now);
  out.field("waiting", share.waiting).field("gpu_limit", share.gpu_limit);
  out.field("job_limit", share.job_limit);
  out.field("gpu_seconds_limit", share.gpu_seconds_limit).key("members").begin_array();
  for (const std::string& member : share.members) out.value(member);
  out.end_array().end_object();
}

void write(JsonWriter& out, const TokenView& token) {
  out.begin_object().field("name", token.name).field("user", token.user);
  out.field("role", to_string(token.role));
  time_field(out, "created", token.created);
  time_field(out, "expires", token.expires);
  out.end_object();
}

std::string to_json(const JobPage& page, Detail detail) {
  JsonWriter out;
  out.begin_object();
  write_rows(out, page.jobs, detail);
  out.key("next");
  if (page.next)
    out.value(*page.next);
  else
    out.null();
  out.field("total", page.total).end_object();
  return out.take();
}

std::string to_json(const PastPage& page, Detail detail) {
  JsonWriter out;
  out.begin_object();
  write_rows(out, page.jobs, detail);
  out.key("next");
  if (page.next)
    out.value(*page.next);
  else
    out.null();
  out.end_object();
  return out.take();
}

std::string to_json(const Submitted& submitted) {
  JsonWriter out;
  out.begin_object().field("job", submitted.first).field("count", submitted.count);
  out.field("repeat", submitted.is_repeat).key("notes").begin_array();
  for (const std::string& note : submitted.notes) out.value(note);
  out.end_array().end_object();
  return out.take();
}

std::string to_json(const Caller& caller) {
  JsonWriter out;
  const auto id_field = [&](std::string_view key, std::uint32_t id) {
    out.key(key);
    if (id == kNoUid)
      out.null();
    else
      out.value(id);
  };
  out.begin_object().field("user", caller.user);
  id_field("uid", caller.uid);
  id_field("gid", caller.gid);
  out.field("role", to_string(caller.role)).end_object();
  return out.take();
}

std::string policy_json(const ClusterView& cluster) {
  JsonWriter out;
  out.begin_object().field("policy", cluster.policy).key("settings");
  write(out, cluster.settings);
  out.end_object();
  return out.take();
}

std::string to_json(const JobView& job, Detail detail) {
  JsonWriter out;
  write(out, job, detail);
  return out.take();
}

}  // namespace berth::api
