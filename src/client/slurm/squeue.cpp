// squeue: the queue in the columns that scripts know.
#include <algorithm>
#include <array>
#include <charconv>
#include <thread>

#include <pwd.h>

#include <fmt/format.h>

#include "base/split.h"
#include "client/array_fold.h"
#include "client/commands.h"
#include "client/job_ids.h"
#include "client/moment.h"
#include "client/selection.h"
#include "client/slurm/format.h"
#include "client/slurm_names.h"

namespace berth::client {

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"account", 'A', Value, "NAMES", "only of these accounts"},
    OptionSpec{"all", 'a', Nothing, "", "everybody's (the default)"},
    OptionSpec{"array", 'r', Nothing, "", "one line for each job of an array, also while it waits"},
    OptionSpec{"format", 'o', Value, "FORMAT", "columns, as in '%.18i %.9P %j'"},
    OptionSpec{"Format", 'O', Value, "FIELDS", "columns by name, as in jobid,name:20,state"},
    OptionSpec{"help", 0, Nothing, "", "this text"},
    OptionSpec{"iterate", 'i', Value, "SECONDS", "again and again"},
    OptionSpec{"jobs", 'j', Value, "IDS", "only these jobs"},
    OptionSpec{"json", 0, Nothing, "", "the scheduler's JSON"},
    OptionSpec{"long", 'l', Nothing, "", "more columns"},
    OptionSpec{"me", 0, Nothing, "", "only your own"},
    OptionSpec{"name", 'n', Value, "NAMES", "only of these names"},
    OptionSpec{"noheader", 'h', Nothing, "", "no line of titles"},
    OptionSpec{"nodelist", 'w', Value, "NODES", "only on these nodes"},
    OptionSpec{"partition", 'p', Value, "NAMES", "only of these partitions"},
    OptionSpec{"sort", 'S', Value, "FIELDS", "by i, j, u, P, t, M or p; - turns round"},
    OptionSpec{"start", 0, Nothing, "", "with the expected start of those that wait"},
    OptionSpec{"states", 't', Value, "STATES", "PD, R, CG …, or all"},
    OptionSpec{"user", 'u', Value, "NAMES", "only of these users"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
};

/// For so many seconds Slurm, as it is delivered, remembers a job that is over (MinJobAge).
constexpr std::int64_t kRemembered = 300;

constexpr auto kDefault = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr auto kLong = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr auto kStart = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R";
constexpr std::string_view kLetters = "iAFKPjuUtTMlLDRrNCmbpQSeVagZokEBsnqvhcdxf";

const std::vector<LongField>& long_fields() {
  static const std::vector<LongField> fields{
      {"jobid", 'A'},        {"jobarrayid", 'i'}, {"arrayjobid", 'F'},   {"arraytaskid", 'K'},
      {"partition", 'P'},    {"name", 'j'},       {"username", 'u'},     {"userid", 'U'},
      {"statecompact", 't'}, {"state", 'T'},      {"timeused", 'M'},     {"timelimit", 'l'},
      {"timeleft", 'L'},     {"numnodes", 'D'},   {"reasonlist", 'R'},   {"reason", 'r'},
      {"nodelist", 'N'},     {"numcpus", 'C'},    {"minmemory", 'm'},    {"tres-per-node", 'b'},
      {"gres", 'b'},         {"priority", 'p'},   {"prioritylong", 'Q'}, {"starttime", 'S'},
      {"endtime", 'e'},      {"submittime", 'V'}, {"account", 'a'},      {"groupname", 'g'},
      {"workdir", 'Z'},      {"command", 'o'},    {"comment", 'k'},      {"dependency", 'E'}};
  return fields;
}

std::string title(char type) {
  switch (type) {
    case 'i':
    case 'A': return "JOBID";
    case 'F': return "ARRAY_JOB_ID";
    case 'K': return "ARRAY_TASK_ID";
    case 'P': return "PARTITION";
    case 'j': return "NAME";
    case 'u': return "USER";
    case 'U': return "UID";
    case 't': return "ST";
    case 'T': return "STATE";
    case 'M': return "TIME";
    case 'l': return "TIME_LIMIT";
    case 'L': return "TIME_LEFT";
    case 'D': return "NODES";
    case 'R': return "NODELIST(REASON)";
    case 'r': return "REASON";
    case 'N': return "NODELIST";
    case 'B': return "EXEC_HOST";
    case 'C': return "CPUS";
    case 'c': return "MIN_CPUS";
    case 'm': return "MIN_MEMORY";
    case 'b': return "TRES_PER_NODE";
    case 'p':
    case 'Q': return "PRIORITY";
    case 'S': return "START_TIME";
    case 'e': return "END_TIME";
    case 'V': return "SUBMIT_TIME";
    case 'a': return "ACCOUNT";
    case 'g': return "GROUP";
    case 'Z': return "WORK_DIR";
    case 'o': return "COMMAND";
    case 'k': return "COMMENT";
    case 'E': return "DEPENDENCY";
    case 'q': return "QOS";
    default: return "N/A";
  }
}

std::string nodes_of(const JobRow& job) {
  std::vector<std::string> names;
  for (const HeldDevices& one : job.where) names.push_back(one.node);
  return folded_names(std::move(names));
}

std::string time_left(const JobRow& job) {
  if (job.spec->time_limit == 0) return "UNLIMITED";
  return clock_span(static_cast<double>(job.spec->time_limit) - job.run_seconds);
}

std::string user_id(const std::string& user) {
  const passwd* entry = ::getpwnam(user.c_str());
  return entry != nullptr ? fmt::format("{}", entry->pw_uid) : user;
}

std::string end_time(const JobRow& job) {
  if (job.ended > 0) return local_time(job.ended);
  if (job.state != LiveState::Running || job.spec->time_limit == 0) return "N/A";
  const double left = static_cast<double>(job.spec->time_limit) - job.run_seconds;
  return local_time((unix_now() + static_cast<std::int64_t>(left)) * 1'000'000);
}

std::string value_of(const JobRow& job, char type) {
  const JobSpec& spec = *job.spec;
  switch (type) {
    case 'i': return job.slurm_id();
    case 'A': return fmt::format("{}", job.number);
    case 'F': return fmt::format("{}", job.array != 0 ? job.array : job.number);
    case 'K': return job.array != 0 ? fmt::format("{}", job.array_index) : "N/A";
    case 'P': return spec.queue.empty() ? "all" : spec.queue;
    case 'j': return spec.name;
    case 'u': return spec.user;
    case 'U': return user_id(spec.user);
    case 't': return std::string(slurm_code(job.state));
    case 'T': return std::string(slurm_name(job.state));
    case 'M': return clock_span(job.run_seconds);
    case 'l':
      return spec.time_limit > 0 ? clock_span(static_cast<double>(spec.time_limit)) : "UNLIMITED";
    case 'L': return time_left(job);
    case 'D': return fmt::format("{}", std::max<std::size_t>(1, job.where.size()));
    case 'R':
      return is_waiting(job.state) || job.where.empty() ? fmt::format("({})", slurm_reason(job))
                                                        : nodes_of(job);
    case 'r': return slurm_reason(job);
    case 'N': return is_waiting(job.state) ? "" : nodes_of(job);
    case 'B': return job.where.empty() ? "n/a" : job.where.front().node;
    case 'C':
    case 'c': return fmt::format("{}", std::max(1, spec.cpus));
    case 'm': return spec.memory_mib > 0 ? fmt::format("{}M", spec.memory_mib) : "0";
    case 'b':
      if (spec.gpus == 0) return "N/A";
      return fmt::format("gres:gpu{}{}:{}", spec.gpu_type.empty() ? "" : ":", spec.gpu_type,
                         spec.gpus);
    case 'p':
    case 'Q': return fmt::format("{}", spec.priority);
    case 'S': return local_time(job.started);
    case 'e': return end_time(job);
    case 'V': return local_time(job.submitted);
    case 'a': return spec.group.empty() ? spec.user : spec.group;
    case 'g': return spec.group;
    case 'Z': return spec.workdir;
    case 'o':
      return spec.command.empty() ? spec.name : fmt::format("{}", fmt::join(spec.command, " "));
    case 'k': return spec.comment.empty() ? "(null)" : spec.comment;
    case 'E':
      return spec.dependencies.empty() ? "(null)" : to_text(spec.dependencies, spec.any_dependency);
    case 'q': return "normal";
    default: return "N/A";
  }
}

std::string value_of(const QueueLine& line, char type) {
  if (line.indices.empty()) return value_of(*line.job, type);
  switch (type) {
    case 'i': return fmt::format("{}_[{}]", line.job->array, line.indices);
    case 'A': return fmt::format("{}", line.job->array);
    case 'K': return line.indices;
    default: return value_of(*line.job, type);
  }
}

struct Request {
  JobQuery query;
  std::vector<std::string> users, names, queues, groups, nodes;  // of several; filtered here
  std::vector<FormatPart> format;
  std::string sort = "";
  double every = 0;
};

/// One value is asked of the scheduler, several are picked out here.
void one_or_many(const std::string& text, std::string& one, std::vector<std::string>& many) {
  if (text.empty()) return;
  for (const std::string_view part : split(text, ',')) many.emplace_back(part);
  if (many.size() == 1) one = many.front();
}

Result<Request> request_of(const Parsed& parsed) {
  Request request;
  JobQuery& query = request.query;
  if (parsed.has("me"))
    query.user = kMe;
  else
    one_or_many(parsed.value("user"), query.user, request.users);
  one_or_many(parsed.value("name"), query.name, request.names);
  one_or_many(parsed.value("partition"), query.queue, request.queues);
  one_or_many(parsed.value("account"), query.group, request.groups);
  std::string ignored;
  one_or_many(parsed.value("nodelist"), ignored, request.nodes);
  if (parsed.has("states")) {
    BERTH_TRY(auto states, parse_states(parsed.value("states")));
    query.states = std::move(states.states);
    query.any_state = states.any;
  } else {
    query.any_state = parsed.has("jobs");
  }
  if (parsed.has("Format")) {
    BERTH_TRY(request.format, parse_long_format(parsed.value("Format"), long_fields()));
  } else {
    const std::string format = parsed.has("format")  ? parsed.value("format")
                               : parsed.has("start") ? kStart
                               : parsed.has("long")  ? kLong
                                                     : kDefault;
    BERTH_TRY(request.format, parse_format(format, kLetters));
  }
  request.sort = parsed.value("sort");
  if (parsed.has("iterate")) {
    const std::string text = parsed.value("iterate");
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), request.every);
    if (error != std::errc{} || end != text.data() + text.size() || !(request.every > 0))
      return fail(fmt::format("--iterate={} is no number of seconds", text));
  }
  return request;
}

bool is_wanted(const JobRow& job, const Request& request) {
  const auto among = [](const std::vector<std::string>& many, const std::string& one) {
    return many.empty() || std::ranges::find(many, one) != many.end();
  };
  const bool on_node =
      request.nodes.empty() || std::ranges::any_of(job.where, [&](const HeldDevices& held) {
        return among(request.nodes, held.node);
      });
  return on_node && among(request.users, job.spec->user) && among(request.names, job.spec->name) &&
         among(request.queues, job.spec->queue) && among(request.groups, job.spec->group);
}

void sort_jobs(std::vector<JobRow>& jobs, const std::string& fields) {
  if (fields.empty()) return;
  const auto words = split(fields, ',');
  for (auto word = words.rbegin(); word != words.rend(); ++word) {  // the first counts most
    std::string_view name = *word;
    const bool is_turned = name.starts_with('-');
    if (name.starts_with('-') || name.starts_with('+')) name.remove_prefix(1);
    if (name.empty()) continue;
    const char type = name.front();
    std::ranges::stable_sort(jobs, [&](const JobRow& a, const JobRow& b) {
      const JobRow& left = is_turned ? b : a;
      const JobRow& right = is_turned ? a : b;
      if (type == 'i' || type == 'A') return left.number < right.number;
      if (type == 'M') return left.run_seconds < right.run_seconds;
      if (type == 'p' || type == 'Q') return left.spec->priority < right.spec->priority;
      return value_of(left, type) < value_of(right, type);
    });
  }
}

Result<std::string> page_of(Scheduler& scheduler, const Request& request, const Parsed& parsed) {
  JobQuery query = request.query;
  query.rows = parsed.has("json")    ? Rows::WithJson
               : parsed.has("array") ? Rows::Brief
                                     : Rows::Folded;
  if (query.ids.empty()) query.ended_since = unix_now() - kRemembered;
  BERTH_TRY(JobRows page, scheduler.jobs(query));
  if (query.ids.size() == 1 && page.jobs.empty() && query.any_state)
    return fail("slurm_load_jobs error: Invalid job id specified");  // scripts wait for this
  std::erase_if(page.jobs, [&](const JobRow& job) { return !is_wanted(job, request); });
  sort_jobs(page.jobs, request.sort);
  std::string text;
  if (parsed.has("json")) {
    for (const JobRow& job : page.jobs) text += (text.empty() ? "" : ",\n") + job.json;
    return harmless_json("{\"jobs\":[" + text + "]}\n");
  }
  if (parsed.has("long") && !parsed.has("noheader"))
    text += local_time(unix_now() * 1'000'000) + "\n";
  if (!parsed.has("noheader")) text += format_line(request.format, title);
  const auto lines = parsed.has("array") ? one_line_each(page.jobs) : folded_arrays(page.jobs);
  for (const QueueLine& line : lines)
    text += format_line(request.format, [&](char type) { return value_of(line, type); });
  return text;
}

}  // namespace

int run_squeue(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = complaint(parsed, console)) return *code;
  if (parsed.has("help"))
    return console.put(slurm_help("squeue [OPTIONS]", kOptions)), console.done();
  if (parsed.has("version")) return console.put("berth " BERTH_VERSION "\n"), console.done();
  if (!parsed.operands.empty())
    return console.complain(
        kMisuse, fmt::format("what is '{}'? (jobs are named with -j)", parsed.operands.front()));
  auto request = request_of(parsed);
  if (!request) return console.complain(kMisuse, request.error());
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  Scheduler& scheduler = *found;
  if (parsed.has("jobs")) {
    auto ids = resolve_jobs(scheduler, {parsed.value("jobs")}, BareNumber::WholeArray);
    if (!ids) return console.complain(kFailure, ids.error());
    request->query.ids = *std::move(ids);
  }
  if (parsed.has("start"))
    console.note("no expected starts are known; START_TIME is when a job has started");
  while (true) {
    const auto text = page_of(scheduler, *request, parsed);
    if (!text) return console.complain(kFailure, text.error());
    if (!console.put(*text) || request->every <= 0) return console.done();
    std::this_thread::sleep_for(std::chrono::duration<double>(request->every));
  }
}

}  // namespace berth::client
