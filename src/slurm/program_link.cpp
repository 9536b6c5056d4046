#include "slurm/program_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/split.h"
#include "slurm/hostlist.h"
#include "slurm/numbers.h"
#include "slurm/refusal.h"

namespace berth::slurm {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// No row of a job comes near this: whoever sends more is not our program.
constexpr std::size_t kLongestLine = std::size_t{64} << 20U;
constexpr std::size_t kMostComplaints = 4096;

tl::unexpected<LinkError> refuse(Refusal refusal, std::string text) {
  return tl::unexpected<LinkError>(LinkError{refusal, std::move(text)});
}

std::string attempt_text(const std::vector<std::string_view>& request) {
  std::string text = "link:";
  for (std::size_t i = 1; i < request.size() && i < 4; ++i) text += ' ' + shortened(request[i]);
  return text;
}

std::string_view last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

// --- the program

tl::unexpected<LinkError> ProgramLink::lost(std::string_view what) {
  complaints_ += child_.complaints();
  child_.stop();
  unread_.clear();
  scanned_ = 0;
  ++deaths_;
  pause_ = std::clamp(pause_ * 2, settings_.shortest_pause, settings_.longest_pause);
  not_before_ = Clock::now() + pause_;
  const std::string_view said = last_line(complaints_);
  std::string text = fmt::format("{}: {}{}{}", settings_.command.back(), what,
                                 said.empty() ? "" : ": ", shortened(said));
  complaints_.clear();
  return refuse(Refusal::Unreachable, std::move(text));
}

Linked<void> ProgramLink::ready() {
  if (child_.is_running()) return {};
  if (Clock::now() < not_before_)
    return refuse(
        Refusal::Unreachable,
        fmt::format("{}: it died, and is started again in {} ms", settings_.command.back(),
                    duration_cast<milliseconds>(not_before_ - Clock::now()).count()));
  auto started = Child::start({.words = settings_.command,
                               .environment = {{"LC_ALL", "C"}},
                               .without = {"SLURM_JOB", "SLURM_CLUSTERS", "SLURM_DEBUG_FLAGS"}});
  if (!started) return refuse(Refusal::Other, started.error().text());
  child_ = std::move(*started);
  return greet();
}

Linked<void> ProgramLink::greet() {
  const std::string protocol = fmt::format("{}", kLinkProtocol);
  std::string spoken;
  auto greeted = exchange({"hello", protocol}, [&](const Row& row) -> Result<void> {
    if (row[0] == "link") spoken = row[1], compiled_for_ = row[3];
    return {};
  });
  if (greeted && spoken == protocol) return {};
  if (!spoken.empty() && spoken != protocol) {
    child_.stop();
    return refuse(Refusal::Other,
                  fmt::format("{}: speaks protocol {} where Berth speaks {} (build it from the "
                              "sources of this Berth: scripts/build-slurm-link)",
                              settings_.command.back(), shortened(spoken), protocol));
  }
  if (greeted) return lost("does not say who it is");
  return greeted;
}

Linked<std::string> ProgramLink::start() {
  if (auto started = ready(); !started)
    return tl::unexpected<LinkError>(std::move(started).error());
  return compiled_for_;
}

Linked<void> ProgramLink::send(std::string_view line, Clock::time_point deadline) {
  while (!line.empty()) {
    const ssize_t done =
        ::send(child_.socket(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done >= 0) {
      line.remove_prefix(static_cast<std::size_t>(done));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return lost("it has ended");
    if (Clock::now() >= deadline) return lost("it does not listen");
    pollfd watched{child_.socket(), POLLOUT, 0};
    ::poll(&watched, 1, 10);
  }
  return {};
}

Linked<void> ProgramLink::more(Clock::time_point deadline) {
  const auto left = duration_cast<milliseconds>(deadline - Clock::now()).count();
  if (left <= 0) return lost(fmt::format("no answer in {} ms", settings_.deadline.count()));
  // Its complaints are read too, or a program that complains at length could not go on.
  pollfd watched[2]{{child_.socket(), POLLIN, 0}, {child_.error_stream(), POLLIN, 0}};
  if (::poll(watched, 2, static_cast<int>(std::min<std::int64_t>(left + 1, 60'000))) <= 0)
    return {};
  if (watched[1].revents != 0) {
    complaints_ += child_.complaints();
    if (complaints_.size() > kMostComplaints)
      complaints_.erase(0, complaints_.size() - kMostComplaints);
  }
  if (watched[0].revents == 0) return {};
  const std::size_t before = unread_.size();
  unread_.resize(before + (std::size_t{1} << 18U));
  const ssize_t got =
      ::recv(child_.socket(), unread_.data() + before, unread_.size() - before, MSG_DONTWAIT);
  const int error = errno;
  unread_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
  if (got > 0 || (got < 0 && (error == EAGAIN || error == EINTR))) return {};
  return lost("it has ended");
}

Linked<void> ProgramLink::receive(std::string_view number, std::string_view attempt,
                                  const OnRow& on_row, Clock::time_point deadline) {
  Row row;
  std::string misread;  // the rest is read all the same, or the next request would get it
  for (;;) {
    std::size_t begin = 0;
    for (std::size_t end;
         (end = unread_.find('\n', std::max(begin, scanned_))) != std::string::npos;) {
      row.read(std::string_view(unread_).substr(begin, end - begin));
      begin = end + 1;
      if (row[0] != ".") {
        if (auto done = on_row(row); !done && misread.empty()) misread = done.error().text();
        continue;
      }
      if (row[1] != number) continue;  // the end of an answer that nobody waits for
      const std::string code(row[2]);
      const std::string words(row[3]);
      unread_.erase(0, begin);
      scanned_ = 0;
      if (code != "0") return tl::unexpected<LinkError>(refused(attempt, words));
      if (!misread.empty()) return refuse(Refusal::Other, fmt::format("{}: {}", attempt, misread));
      return {};
    }
    unread_.erase(0, begin);
    scanned_ = unread_.size();
    if (unread_.size() > kLongestLine) return lost("says a line without an end");
    if (auto read = more(deadline); !read) return read;
  }
}

Linked<void> ProgramLink::exchange(const std::vector<std::string_view>& request,
                                   const OnRow& on_row) {
  const auto deadline = Clock::now() + settings_.deadline;
  const std::string number = fmt::format("{}", ++requests_);
  std::vector<std::string_view> fields{number};
  fields.insert(fields.end(), request.begin(), request.end());
  if (auto sent = send(encode_line(fields), deadline); !sent) return sent;
  const bool is_greeting = request.front() == "hello";
  auto answered = receive(number, attempt_text(fields), on_row, deadline);
  if (answered) {
    if (!is_greeting) pause_ = milliseconds{0};
  } else if (answered.error().refusal == Refusal::Unreachable && child_.is_running()) {
    child_.stop();  // by the next time slurm.conf may name another slurmctld: it is read at a start
  }
  return answered;
}

// --- reading

Linked<ProgramLink::Answer> ProgramLink::read(std::string_view verb, Since& since,
                                              const std::function<void()>& begin,
                                              const OnRow& on_row) {
  const auto now = Clock::now();
  const bool is_full = !since.full || now - *since.full >= settings_.full_reading;
  const std::string moment = fmt::format("{}", is_full ? 0 : since.moment);
  for (int tries = 0;; ++tries) {
    const std::uint64_t deaths = deaths_;
    Answer answer;
    begin();
    auto done = ready();
    if (done)
      done = exchange({verb, moment}, [&](const Row& row) -> Result<void> {
        if (row[0] == "same") answer.is_same = true;
        if (row[0] == "at") answer.moment = number_or<std::int64_t>(row[1], 0);
        return on_row(row);
      });
    if (done) {
      if (!answer.is_same) since = {answer.moment, is_full ? now : since.full};
      return answer;
    }
    since = {};  // whatever comes next is read whole
    const bool has_died = deaths_ != deaths && tries == 0 && pause_ <= settings_.shortest_pause;
    if (!has_died) return tl::unexpected<LinkError>(std::move(done).error());
    not_before_ = {};  // it may have died long ago, unnoticed: one more try, at once
  }
}

Linked<std::optional<std::vector<Job>>> ProgramLink::jobs() {
  std::vector<Job> jobs;
  auto answer = read(
      "jobs", jobs_since_, [&] { jobs.clear(); },
      [&](const Row& row) -> Result<void> {
        if (row[0] != "job") return {};
        BERTH_TRY(auto job, job_of(row));
        jobs.push_back(std::move(job));
        return {};
      });
  if (!answer) return tl::unexpected<LinkError>(std::move(answer).error());
  if (answer->is_same) return std::nullopt;
  std::ranges::sort(jobs, {}, &Job::key);
  return std::optional(std::move(jobs));
}

Linked<std::optional<std::vector<Node>>> ProgramLink::nodes() {
  std::vector<Node> nodes;
  auto answer = read(
      "nodes", nodes_since_, [&] { nodes.clear(); },
      [&](const Row& row) -> Result<void> {
        if (row[0] != "node") return {};
        BERTH_TRY(auto node, node_of(row));
        nodes.push_back(std::move(node));
        return {};
      });
  if (!answer) return tl::unexpected<LinkError>(std::move(answer).error());
  if (answer->is_same) return std::nullopt;
  std::map<std::string, std::vector<std::string>> partitions;
  auto told = exchange({"partitions"}, [&](const Row& row) -> Result<void> {
    if (row[0] != "partition") return {};
    BERTH_TRY(const auto names, expand_hostlist(row[2]));
    for (const std::string& name : names) partitions[name].emplace_back(row[1]);
    return {};
  });
  if (!told) {
    nodes_since_ = {};
    return tl::unexpected<LinkError>(std::move(told).error());
  }
  for (Node& node : nodes) node.partitions = std::move(partitions[node.name]);
  return std::optional(std::move(nodes));
}

// --- commanding

Linked<void> ProgramLink::command(std::string_view verb, const JobRef& job,
                                  const std::vector<std::string_view>& more_fields) {
  if (!is_job_ref(job))
    return refuse(Refusal::NoSuchJob, fmt::format("'{}' is no job", shortened(job)));
  if (auto started = ready(); !started) return started;
  std::vector<std::string_view> request{verb, job};
  request.insert(request.end(), more_fields.begin(), more_fields.end());
  return exchange(request, [](const Row&) -> Result<void> { return {}; });
}

Linked<void> ProgramLink::place(const JobRef& job, const Placement& placement) {
  if (placement.nodes.empty())
    return refuse(Refusal::Other, fmt::format("job {}: a placement names no nodes", job));
  const std::string nodes = compress_hostlist(placement.nodes);
  const std::string count = fmt::format("{}", placement.nodes.size());
  const std::string tasks = fmt::format("{}", std::max(placement.tasks, 0));
  const std::string cpus = fmt::format("{}", std::max(placement.cpus, 0));
  return command("place", job,
                 {nodes, count, tasks, cpus, placement.begin_now ? "1" : "0", placement.qos});
}

Linked<void> ProgramLink::hold(const JobRef& job) { return command("hold", job); }

Linked<void> ProgramLink::release(const JobRef& job) { return command("release", job); }

Linked<void> ProgramLink::requeue_held(const JobRef& job) { return command("requeue_held", job); }

Linked<void> ProgramLink::cancel(const JobRef& job) { return command("cancel", job); }

Linked<void> ProgramLink::signal(const JobRef& job, int number) {
  return command("signal", job, {fmt::format("{}", number)});
}

Linked<void> ProgramLink::signal_script(const JobRef& job, int number) {
  return command("signal_script", job, {fmt::format("{}", number)});
}

Linked<void> ProgramLink::suspend(const JobRef& job) { return command("suspend", job); }

Linked<void> ProgramLink::resume(const JobRef& job) { return command("resume", job); }

Linked<void> ProgramLink::set_time_limit(const JobRef& job, std::int64_t seconds) {
  const std::int64_t minutes = seconds <= 0 ? 0 : seconds / 60 + (seconds % 60 == 0 ? 0 : 1);
  return command("time_limit", job, {fmt::format("{}", minutes)});
}

Linked<void> ProgramLink::set_admin_comment(const JobRef& job, const std::string& text) {
  return command("admin_comment", job, {text});
}

Linked<void> ProgramLink::resume_node(const std::string& node) {
  if (auto started = ready(); !started) return started;
  return exchange({"resume_node", node}, [](const Row&) -> Result<void> { return {}; });
}

}  // namespace berth::slurm
