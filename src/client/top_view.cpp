// From a snapshot and what the user has chosen to the lines of the screen, as a pure function:
// tests need no terminal. Nodes get a quarter of the height, jobs the rest, and the selected job
// stays visible.

#include "client/top_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text_table.h"
#include "base/time.h"
#include "client/moment.h"
#include "client/tables.h"

namespace berth::client {

namespace {

std::string bar(std::int32_t used, std::int32_t all, std::size_t width, bool has_colour) {
  const double share = all > 0 ? static_cast<double>(used) / all : 0;
  const auto full = static_cast<std::size_t>(share * static_cast<double>(width) + 0.5);
  return "[" +
         coloured(std::string(std::min(full, width), '#'), share > 0.95 ? "33" : "32", has_colour) +
         std::string(width - std::min(full, width), '.') + "]";
}

std::string head_line(const TopSnapshot& snapshot) {
  const ClusterView& cluster = snapshot.cluster;
  return fmt::format("berth {}  {}  up {}  {} running, {} waiting, {} held",
                     harmless(cluster.version), harmless(cluster.policy),
                     human_duration(cluster.uptime_seconds), cluster.running, cluster.pending,
                     cluster.held);
}

std::string node_line(const NodeView& node, bool has_colour) {
  std::string devices;
  for (const auto& jobs : node.devices)
    devices +=
        fmt::format("{}{}", devices.empty() ? "" : " ",
                    jobs.empty() ? std::string(".") : fmt::format("{}", fmt::join(jobs, "+")));
  const std::string state = fmt::format("{:<8}", clipped(node.state, 8));
  return fmt::format(
      "{:<12} {} {:<8} gpus {:>2}/{:<2} cpus {:>3}/{:<3} {}", clipped(node.name, 12),
      coloured(state, node.state == "up" ? "32" : "31", has_colour),
      clipped(node.type.empty() ? "-" : node.type, 8), node.gpus_used, node.gpus, node.cpus_used,
      node.cpus,
      devices.empty() ? (node.reason.empty() ? "" : "(" + harmless(node.reason) + ")") : devices);
}

std::string job_line(const JobRow& job, std::int64_t now, bool has_colour) {
  const double waited = static_cast<double>(now) - static_cast<double>(job.submitted) * 1e-6;
  std::string extra = harmless(circumstance(job));
  if (job.training && job.training->iterations_per_second > 0)
    extra += fmt::format(" {:.3g} it/s", job.training->iterations_per_second);
  return fmt::format(
      "{:>7} {} {} {} {:>4} {:>10} {}", job.number,
      fmt::format("{:<16}", clipped(job.spec->name, 16)),
      fmt::format("{:<8}", clipped(job.spec->user, 8)),
      coloured(fmt::format("{:<10}", to_string(job.state)), colour_of(job.state), has_colour),
      job.granted > 0 ? job.granted : job.spec->gpus,
      is_waiting(job.state) ? "+" + clock_span(waited) : clock_span(job.run_seconds), extra);
}

// A question comes before what is typed, and that before a message.
std::string last_line(const TopChoice& choice) {
  if (!choice.question.empty()) return harmless(choice.question);
  if (choice.is_typing) return fmt::format("filter: {}_", harmless(choice.filter));
  std::string keys = fmt::format("q quit  s sort:{}  / filter", to_string(choice.sort));
  if (!choice.filter.empty()) keys += fmt::format(":{}", harmless(choice.filter));
  keys += "  up/down select  c cancel  h hold  r release";
  return choice.message.empty() ? keys : harmless(choice.message);
}

/// Running jobs first, then what waits, each by number.
int rank(LiveState state) {
  switch (state) {
    case LiveState::Stopping: return 0;
    case LiveState::Running: return 1;
    case LiveState::Starting: return 2;
    case LiveState::Suspended: return 3;
    case LiveState::Pending: return 4;
    case LiveState::Blocked: return 5;
    case LiveState::Held: return 6;
    default: return 7;
  }
}

// Every order ends at the number: lines do not jump between two equal snapshots.
bool comes_before(const JobRow& a, const JobRow& b, TopSort sort) {
  switch (sort) {
    case TopSort::State: {
      const int ra = rank(a.state), rb = rank(b.state);
      return ra != rb ? ra < rb : a.number < b.number;
    }
    case TopSort::User:
      return a.spec->user != b.spec->user ? a.spec->user < b.spec->user : a.number < b.number;
    case TopSort::Gpus:
      return a.spec->gpus != b.spec->gpus ? a.spec->gpus > b.spec->gpus : a.number < b.number;
    case TopSort::Time:
      return a.run_seconds != b.run_seconds ? a.run_seconds > b.run_seconds : a.number < b.number;
    case TopSort::Number: break;
  }
  return a.number < b.number;
}

}  // namespace

std::string_view to_string(TopSort sort) {
  switch (sort) {
    case TopSort::Number: return "number";
    case TopSort::State: return "state";
    case TopSort::User: return "user";
    case TopSort::Gpus: return "gpus";
    case TopSort::Time: return "time";
  }
  return "number";
}

// The filter looks at everything a line shows.
std::vector<const JobRow*> top_jobs(const TopSnapshot& snapshot, const TopChoice& choice) {
  std::vector<const JobRow*> jobs;
  for (const JobRow& job : snapshot.jobs) {
    const auto holds = [&](std::string_view text) {
      return text.find(choice.filter) != std::string_view::npos;
    };
    if (choice.filter.empty() || holds(job.spec->name) || holds(job.spec->user) ||
        holds(to_string(job.state)) || holds(job.node_list()) ||
        holds(fmt::format("{}", job.number)))
      jobs.push_back(&job);
  }
  std::ranges::sort(
      jobs, [&](const JobRow* a, const JobRow* b) { return comes_before(*a, *b, choice.sort); });
  return jobs;
}

std::vector<std::string> top_lines(const TopSnapshot& snapshot, const TopChoice& choice,
                                   const TopSize& size) {
  const auto width = static_cast<std::size_t>(std::max(20, size.width));
  const auto height = static_cast<std::size_t>(std::max(6, size.height));
  std::vector<std::string> lines;
  lines.push_back(head_line(snapshot));
  const ClusterView& cluster = snapshot.cluster;
  lines.push_back(fmt::format(
      "GPUs {} {}/{}", bar(cluster.gpus_used, cluster.gpus, width > 60 ? 40 : 10, size.has_colour),
      cluster.gpus_used, cluster.gpus));
  const std::string& trouble = snapshot.trouble.empty() ? cluster.trouble : snapshot.trouble;
  if (!trouble.empty()) lines.push_back(coloured(harmless(trouble), "31", size.has_colour));

  const std::size_t node_room = std::max<std::size_t>(2, height / 4);
  const std::size_t shown =
      snapshot.nodes.size() <= node_room ? snapshot.nodes.size() : node_room - 1;
  for (std::size_t i = 0; i < shown; ++i)
    lines.push_back(node_line(snapshot.nodes[i], size.has_colour));
  if (shown < snapshot.nodes.size())
    lines.push_back(fmt::format("… and {} more nodes", snapshot.nodes.size() - shown));

  lines.push_back(coloured(fmt::format("{:>7} {:<16} {:<8} {:<10} {:>4} {:>10} {}", "job", "name",
                                       "user", "state", "gpus", "time", "where (why not)"),
                           "1", size.has_colour));
  const auto jobs = top_jobs(snapshot, choice);
  const std::size_t room = height > lines.size() + 1 ? height - lines.size() - 1 : 0;
  const auto chosen =
      std::ranges::find(jobs, choice.selected, [](const JobRow* job) { return job->number; });
  const auto place = static_cast<std::size_t>(chosen - jobs.begin());
  // Scrolled just so far that the selected job is the last line shown.
  const std::size_t first = chosen != jobs.end() && place >= room ? place - room + 1 : 0;
  for (std::size_t i = first; i < jobs.size() && i < first + room; ++i) {
    std::string line = job_line(*jobs[i], snapshot.at, size.has_colour);
    if (jobs[i]->number == choice.selected)
      line =
          size.has_colour
              // Without colours inside: a reset in the middle would end the inverse video.
              ? "\x1b[7m" + clipped_line(job_line(*jobs[i], snapshot.at, false), width) + "\x1b[0m"
              : ">" + line.substr(1);
    lines.push_back(std::move(line));
  }
  while (lines.size() + 1 < height) lines.emplace_back();
  lines.push_back(last_line(choice));
  for (std::string& line : lines)
    if (display_width(line) > width) line = clipped_line(line, width);
  if (lines.size() > height) lines.resize(height);
  return lines;
}

std::string top_once(const TopSnapshot& snapshot, bool has_colour) {
  std::string text = head_line(snapshot) + "\n";
  text += fmt::format("GPUs {} {}/{}\n",
                      bar(snapshot.cluster.gpus_used, snapshot.cluster.gpus, 40, has_colour),
                      snapshot.cluster.gpus_used, snapshot.cluster.gpus);
  if (!snapshot.cluster.trouble.empty()) text += harmless(snapshot.cluster.trouble) + "\n";
  const TableStyle style{has_colour, 0, snapshot.at};
  text += "\n" + node_table(snapshot.nodes, style) + "\n" + queue_table(snapshot.jobs, style);
  if (snapshot.jobs.size() < snapshot.jobs_in_all)
    text += fmt::format("… and {} more jobs\n", snapshot.jobs_in_all - snapshot.jobs.size());
  return text;
}

}  // namespace berth::client
