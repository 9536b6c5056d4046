// `berth notebook`: Jupyter in a job, and the link to it.
#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/split.h"
#include "client/interactive/interactive.h"
#include "client/interactive/session_job.h"
#include "client/job_ids.h"
#include "client/submit_command.h"
#include "step/session.h"

namespace berth::client {

namespace {

using enum Takes;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kNotebookName = "notebook";
constexpr auto kAnswerPatience = 120s;

/// Of `berth submit` what a notebook can have.
constexpr std::array<std::string_view, 18> kShared{
    "name",  "chdir", "env",    "export", "group",     "queue", "comment",  "gpus",   "gpu-type",
    "share", "cpus",  "memory", "nodes",  "exclusive", "time",  "priority", "server", "help"};

OptionTable make_options() {
  std::vector<OptionTable::Row> rows{
      {{"port", 0, Value, "N", "on this port (default: a free one)", "Notebook"},
       [](Draft&, std::string_view value) -> Result<void> {
         BERTH_TRY_VOID(parse_count(value, 1, 65'535));
         return {};
       }},
      {{"detach", 0, Nothing, "", "print the link and leave; it runs on", "Notebook"},
       [](Draft&, std::string_view) -> Result<void> { return {}; }},
      {{"links", 0, Nothing, "", "print the links of your notebooks that run", "Notebook"},
       [](Draft&, std::string_view) -> Result<void> { return {}; }},
      {{"stop", 0, Nothing, "", "end your notebooks, or those of these numbers", "Notebook"},
       [](Draft&, std::string_view) -> Result<void> { return {}; }},
  };
  for (OptionTable::Row& row : own_rows())
    if (std::ranges::find(kShared, row.spec.name) != kShared.end()) rows.push_back(row);
  return OptionTable(std::move(rows));
}

/// Along PATH; empty: there is none.
std::string find_program(std::string_view name, std::string_view path) {
  for (const std::string_view folder : split(path, ':')) {
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

struct Jupyter {
  std::string program;
  bool needs_word = false;  // `jupyter notebook` rather than a program of its own
};
Result<Jupyter> find_jupyter(const SubmitContext& context) {
  const auto path = context.environment.find("PATH");
  const std::string folders = path == context.environment.end() ? "" : path->second;
  for (const char* name : {"jupyter-lab", "jupyter-notebook"})
    if (auto program = find_program(name, folders); !program.empty())
      return Jupyter{.program = std::move(program)};
  if (auto program = find_program("jupyter", folders); !program.empty())
    return Jupyter{.program = std::move(program), .needs_word = true};
  return fail(
      "notebook: there is no jupyter-lab, jupyter-notebook or jupyter in PATH (Debian: "
      "`apt install jupyter-notebook`; elsewhere: `pip install jupyterlab`)");
}

/// In the job: a free port, no browser, the token from the environment, where others cannot read
/// it as they can the words of a command.
std::vector<std::string> host_words(const Jupyter& jupyter, const std::string& port) {
  std::vector<std::string> words{"--detached", "--link", port.empty() ? "0" : port, "--",
                                 jupyter.program};
  if (jupyter.needs_word) words.emplace_back("notebook");
  words.insert(words.end(), {"--no-browser", "--ip=127.0.0.1", "--port={port}"});
  if (::geteuid() == 0) words.emplace_back("--allow-root");
  return words;
}

std::optional<std::string> link_in(const std::string& directory) {
  const auto text = get_file(directory + "/" + step::kLinkFile);
  if (!text || !*text || (*text)->empty()) return std::nullopt;
  return harmless(**text);
}

std::uint16_t port_of(const std::string& link) {
  const auto colon = link.find(':', link.find("//"));
  if (colon == std::string::npos) return 0;
  return static_cast<std::uint16_t>(std::strtoul(link.c_str() + colon + 1, nullptr, 10));
}

/// Whoever listens there speaks HTTP.
bool answers(std::uint16_t port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval patience{.tv_sec = 5, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return false;
  constexpr std::string_view kAsked = "GET /api HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
  if (::send(socket.get(), kAsked.data(), kAsked.size(), MSG_NOSIGNAL) < 0) return false;
  std::array<char, 5> head{};
  return ::recv(socket.get(), head.data(), head.size(), MSG_WAITALL) == 5 &&
         std::string_view(head.data(), head.size()) == "HTTP/";
}

/// Once it answers there. Interrupted: a signal.
tl::expected<std::string, int> await_link(Scheduler& scheduler, JobNumber job, Console& console) {
  const HeardInterrupts interrupts;
  const auto until = Clock::now() + kAnswerPatience;
  while (true) {
    const auto row = scheduler.job(job);
    if (row && is_over(row->state)) {
      console.note(fmt::format("job {}: {}{}", job, to_string(row->state),
                               row->reason.empty() ? "" : " (" + row->reason + ")"));
      return tl::unexpected<int>(std::max(1, exit_code_of(*row)));
    }
    const auto directory = steps_directory(scheduler, job);
    const auto link = directory ? link_in(*directory) : std::nullopt;
    if (link && answers(port_of(*link))) return *link;
    if (Clock::now() > until) {
      console.note(
          fmt::format("job {0} runs, but no notebook answers; `sattach {0}` shows what it "
                      "says, `berth notebook --stop {0}` ends it",
                      job));
      return tl::unexpected<int>(kFailure);
    }
    if (const auto number = interrupts.sleep(200ms)) {
      give_up(scheduler, job, "interrupted", console);
      return tl::unexpected<int>(128 + *number);
    }
  }
}

void tell_link(const std::string& link, JobNumber job, bool is_detached, Console& console) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  console.put(link + "\n");
  const std::uint16_t port = port_of(link);
  console.note(
      fmt::format("from elsewhere: `ssh -L {0}:127.0.0.1:{0} {1}`, then open the same link", port,
                  host.data()));
  console.note(is_detached
                   ? fmt::format("`berth notebook --stop {}` ends it", job)
                   : fmt::format("Ctrl-C ends it, as `berth notebook --stop {}` does", job));
}

/// Until it is over or we are told to go.
int watch(Scheduler& scheduler, JobNumber job, Console& console) {
  const HeardInterrupts interrupts;
  while (true) {
    const auto row = scheduler.job(job);
    if (row && is_over(row->state)) {
      console.note(fmt::format("job {}: {}{}", job, to_string(row->state),
                               row->reason.empty() ? "" : " (" + row->reason + ")"));
      return exit_code_of(*row);
    }
    const auto number = interrupts.sleep(1s);
    if (!number) continue;
    if (*number == SIGHUP) return 128 + SIGHUP;  // the terminal is gone; the notebook is not
    console.note(fmt::format("ending job {}", job));
    give_up(scheduler, job, "ended by its user", console);
    return kSuccess;
  }
}

Result<std::vector<JobRow>> own_notebooks(Scheduler& scheduler) {
  JobQuery query;
  query.user = kMe;
  query.rows = Rows::WithJson;
  BERTH_TRY(auto rows, scheduler.jobs(query));
  std::vector<JobRow> found;
  for (JobRow& job : rows.jobs)
    if (job.spec->kind == JobKind::Interactive &&
        std::ranges::find(job.spec->command, "--link") != job.spec->command.end())
      found.push_back(std::move(job));
  return found;
}

int print_links(Scheduler& scheduler, Console& console) {
  const auto jobs = own_notebooks(scheduler);
  if (!jobs) return console.complain(kFailure, jobs.error());
  for (const JobRow& job : *jobs) {
    const auto directory = steps_directory(scheduler, job.number);
    const auto link = directory ? link_in(*directory) : std::nullopt;
    console.put(fmt::format("{} {}\n", job.number, link.value_or("(not yet)")));
  }
  return console.done();
}

int stop_notebooks(Scheduler& scheduler, const Call& call) {
  JobAction action;
  action.verb = Verb::Cancel;
  action.why = "ended by its user";
  if (call.operands().empty()) {
    const auto jobs = own_notebooks(scheduler);
    if (!jobs) return call.console.complain(kFailure, jobs.error());
    for (const JobRow& job : *jobs) action.ids.push_back(job.number);
    if (action.ids.empty()) return call.console.complain(kFailure, "notebook: none of yours runs");
  }
  for (const std::string& word : call.operands()) {
    const auto number = parse_count(word, 1, std::int64_t{1} << 62U);
    if (!number) return call.console.complain(kMisuse, "notebook: " + number.error().text());
    action.ids.push_back(static_cast<JobNumber>(*number));
  }
  const auto results = scheduler.act(std::move(action));
  if (!results) return call.console.complain(kFailure, results.error());
  int code = kSuccess;
  for (const VerbResult& result : *results) {
    call.console.note(result_text(result));
    if (!result.is_done) code = kFailure;
  }
  return code;
}

Result<Draft> notebook_draft(const Call& call) {
  Draft draft;
  BERTH_TRY(draft.context, process_context());
  Error error;
  for (const OptionFault& fault : notebook_options().apply(draft, call.parsed))
    error.messages.push_back("notebook: " + fault.text);
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  if (!call.operands().empty())
    return fail(fmt::format("notebook: what is '{}'? (see --help)", call.operands().front()));
  BERTH_TRY(const Jupyter jupyter, find_jupyter(draft.context));
  if (draft.spec.name.empty()) draft.spec.name = kNotebookName;
  draft.extra_env["JUPYTER_TOKEN"] = random_key();
  make_session(draft, host_words(jupyter, call.value("port")));
  return draft;
}

}  // namespace

const OptionTable& notebook_options() {
  static const OptionTable table = make_options();
  return table;
}

int run_notebook(const Call& call) {
  Console& console = call.console;
  if (call.has("stop") || call.has("links")) {
    auto scheduler = local_scheduler(call.value("server"), console);
    if (!scheduler) return console.complain(kMisuse, scheduler.error());
    return call.has("stop") ? stop_notebooks(*scheduler, call) : print_links(*scheduler, console);
  }
  auto draft = notebook_draft(call);
  if (!draft) return console.complain(kMisuse, draft.error());
  auto scheduler = local_scheduler(draft->server, console);
  if (!scheduler) return console.complain(kMisuse, scheduler.error());
  const auto job = submit_session(*scheduler, *draft, console);
  if (!job) return job.error();
  if (const auto started = await_session(*scheduler, *job, {}, console); !started)
    return started.error();
  const auto link = await_link(*scheduler, *job, console);
  if (!link) return link.error();
  tell_link(*link, *job, call.has("detach"), console);
  if (call.has("detach")) return console.done();
  return watch(*scheduler, *job, console);
}

}  // namespace berth::client
