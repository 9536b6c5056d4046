// Tables and texts for people. Whatever comes from a user is made harmless and cut before it is
// printed; widths count columns of the terminal, not bytes.

#include "client/tables.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text_table.h"
#include "base/time.h"
#include "client/moment.h"
#include "model/grid.h"

namespace berth::client {

namespace {

/// "0.5 of what its estimate says, 40% done, 2.0 min left (as it reports)"
std::string pace_text(const PaceView& pace) {
  std::string text = fmt::format("{:.3g} of what its estimate says", pace.rate);
  if (pace.progress) text += fmt::format(", {:.0f}% done", 100 * *pace.progress);
  if (pace.seconds_left) text += fmt::format(", {} left", human_duration(*pace.seconds_left));
  const std::string_view from = pace.source == "reports"  ? "as it reports"
                                : pace.source == "belief" ? "as is believed of where it runs"
                                                          : "nothing else is known";
  return fmt::format("{} ({})", text, from);
}

/// Lines no longer than the terminal is wide, and no blanks at their ends.
/// Rows that do not fit are cut, not wrapped: a table stays a table.
std::string fitted(const std::string& table, int width) {
  std::string text;
  for (std::size_t begin = 0; begin < table.size();) {
    const std::size_t end = std::min(table.find('\n', begin), table.size());
    std::string_view line(table.data() + begin, end - begin);
    while (line.ends_with(' ')) line.remove_suffix(1);
    text += width > 0 ? clipped_line(line, static_cast<std::size_t>(width)) : std::string(line);
    text += '\n';
    begin = end + 1;
  }
  return text;
}

/// Names alone: "lr", "seed".
std::vector<std::string> parameters_of(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const std::string& axis : spec.grid) names.push_back(axis.substr(0, axis.find('=')));
  return names;
}

std::string gpus_of(const JobRow& job) {
  if (job.spec->gpu_milli < 1'000) return fmt::format("{:.2g}", job.spec->gpu_milli / 1'000.0);
  // An elastic job: what it has, of what it asked for.
  if (job.granted > 0 && job.granted != job.spec->gpus)
    return fmt::format("{}/{}", job.granted, job.spec->gpus);
  return fmt::format("{}", job.spec->gpus);
}

std::string name_of(const JobRow& job) {
  if (!job.spec->grid.empty() && !job.folded.empty())
    return fmt::format("{} ({} of {})", job.spec->name, job.folded.size(),
                       fmt::join(parameters_of(*job.spec), " "));
  if (!job.spec->grid.empty()) return shown_name(*job.spec, job.array_index);
  if (job.array == 0) return job.spec->name;
  if (!job.folded.empty())
    return fmt::format("{}[{}]", job.spec->name, to_text(ArraySpec{.indices = job.folded}));
  return fmt::format("{}[{}]", job.spec->name, job.array_index);
}

std::string grid_text(const JobRow& job) {
  std::string text;
  for (const auto& [name, value] : grid_point(*job.spec, job.array_index))
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

std::string exit_text(const JobRow& job) {
  if (job.signal != 0) return signal_name(job.signal);
  return fmt::format("{}", job.exit_code);
}

std::string limit_text(std::int64_t seconds) {
  return seconds > 0 ? clock_span(static_cast<double>(seconds)) : "none";
}

}  // namespace

std::string coloured(std::string_view text, std::string_view colour, bool has_colour) {
  if (!has_colour || colour.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, text);
}

// Green is well, yellow in between, red has failed; what does not compete is dim.
std::string_view colour_of(LiveState state) {
  switch (state) {
    case LiveState::Running:
    case LiveState::Completed: return "32";
    case LiveState::Starting:
    case LiveState::Stopping:
    case LiveState::Suspended:
    case LiveState::Preempted: return "33";
    case LiveState::Failed:
    case LiveState::TimedOut:
    case LiveState::OutOfMemory:
    case LiveState::NodeFailed:
    case LiveState::Rejected: return "31";
    case LiveState::Held:
    case LiveState::Blocked:
    case LiveState::Cancelled: return "2";
    default: return "";
  }
}

std::string gpu_time(double gpu_seconds) {
  if (gpu_seconds < 3'600) return fmt::format("{:.1f} GPU min", gpu_seconds / 60);
  return fmt::format("{:.1f} GPU h", gpu_seconds / 3'600);
}

std::string energy(double kwh) {
  return kwh < 1 ? fmt::format("{:.3g} Wh", kwh * 1'000) : fmt::format("{:.3f} kWh", kwh);
}

std::string clipped(std::string_view text, std::size_t columns) {
  return clipped_line(harmless(text), columns);
}

// Cut at a column, never inside of a character or a colour mark.
std::string clipped_line(std::string_view line, std::size_t columns) {
  if (display_width(line) <= columns) return std::string(line);
  std::string cut;
  std::size_t used = 0;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '\x1b') {  // colour marks take no room and must not be torn
      const std::size_t end = std::min(line.find('m', i), line.size() - 1);
      cut += line.substr(i, end - i + 1);
      i = end + 1;
      continue;
    }
    const Character character = first_character(line.substr(i));
    const std::size_t width = character.is_valid ? columns_of(character.code) : 1;
    if (used + width >= columns) break;  // one column is for the mark
    cut += line.substr(i, character.bytes);
    used += width;
    i += character.bytes;
  }
  if (columns > 0) cut += "…";
  return cut.find('\x1b') != std::string::npos ? cut + "\x1b[0m" : cut;
}

// Where a job runs, or why it does not: one column says what matters in its state.
std::string circumstance(const JobRow& job) {
  if (is_waiting(job.state)) return job.reason.empty() ? "" : fmt::format("({})", job.reason);
  if (is_over(job.state)) return job.reason;
  std::string text;
  for (const HeldDevices& one : job.where) {
    if (!text.empty()) text += ' ';
    text += one.node;
    if (!one.devices.empty()) text += fmt::format(":{}", fmt::join(one.devices, ","));
  }
  return text;
}

std::string queue_table(const std::vector<JobRow>& jobs, const TableStyle& style) {
  TextTable table({{"job", Align::Right},
                   {"name", Align::Left},
                   {"user", Align::Left},
                   {"queue", Align::Left},
                   {"state", Align::Left},
                   {"gpus", Align::Right},
                   {"time", Align::Right},
                   {"where (why not)", Align::Left}});
  for (const JobRow& job : jobs) {
    const double waited = job.submitted > 0 ? static_cast<double>(style.now) -
                                                  static_cast<double>(job.submitted) * 1e-6
                                            : 0;
    table.add_row(
        {fmt::format("{}", job.number), clipped(name_of(job), job.spec->grid.empty() ? 24 : 40),
         clipped(job.spec->user, 12), clipped(job.spec->queue, 12),
         coloured(to_string(job.state), colour_of(job.state), style.has_colour), gpus_of(job),
         is_waiting(job.state) ? "+" + clock_span(waited) : clock_span(job.run_seconds),
         clipped(circumstance(job), 200)});
  }
  return fitted(table.str(), style.width);
}

// The last line sums up what is shown, not what there is.
std::string history_table(const std::vector<JobRow>& jobs, const TableStyle& style) {
  std::vector<TextTable::Head> columns{
      {"job", Align::Right},      {"name", Align::Left},    {"user", Align::Left},
      {"outcome", Align::Left},   {"exit", Align::Right},   {"gpus", Align::Right},
      {"ended", Align::Left},     {"waited", Align::Right}, {"ran", Align::Right},
      {"gpu time", Align::Right}, {"energy", Align::Right}, {"why", Align::Left}};
  // An older scheduler does not count it.
  const bool has_energy =
      std::ranges::any_of(jobs, [](const JobRow& job) { return job.energy_kwh > 0; });
  if (!has_energy) columns.erase(columns.end() - 2);
  TextTable table(std::move(columns));
  double gpu_seconds = 0, waited = 0, kwh = 0;
  std::size_t completed = 0, started = 0;
  for (const JobRow& job : jobs) {
    // Jobs that never started have no wait that could be averaged.
    const double wait =
        job.started > 0 ? static_cast<double>(job.started - job.submitted) * 1e-6 : 0;
    gpu_seconds += job.gpu_seconds;
    kwh += job.energy_kwh;
    if (job.started > 0) {
      waited += wait;
      ++started;
    }
    if (job.state == LiveState::Completed) ++completed;
    std::vector<std::string> row{
        fmt::format("{}", job.number),
        clipped(name_of(job), job.spec->grid.empty() ? 24 : 40),
        clipped(job.spec->user, 12),
        coloured(to_string(job.state), colour_of(job.state), style.has_colour),
        job.started > 0 ? exit_text(job) : "-",
        fmt::format("{}", job.spec->gpus),
        short_time(job.ended, style.now),
        job.started > 0 ? clock_span(wait) : "-",
        clock_span(job.run_seconds),
        gpu_time(job.gpu_seconds)};
    if (has_energy) row.push_back(energy(job.energy_kwh));
    row.push_back(clipped(job.reason, 120));
    table.add_row(std::move(row));
  }
  std::string text = fitted(table.str(), style.width);
  text += fmt::format("\n{} job{}, {} completed, {}", jobs.size(), jobs.size() == 1 ? "" : "s",
                      completed, gpu_time(gpu_seconds));
  if (has_energy) text += ", " + energy(kwh);
  if (started > 0)
    text += fmt::format(", waited {} on average",
                        human_duration(std::round(waited / static_cast<double>(started))));
  return text + "\n";
}

std::string energy_table(const std::vector<JobRow>& jobs, const std::vector<NodeView>& nodes) {
  std::map<std::string, double> users;
  for (const JobRow& job : jobs) users[job.spec->user] += job.energy_kwh;
  return energy_table("energy of these jobs", users, nodes);
}

std::string energy_table(std::string_view title, const std::map<std::string, double>& users,
                         const std::vector<NodeView>& nodes) {
  TextTable by_user({{"user", Align::Left}, {"energy", Align::Right}});
  for (const auto& [user, kwh] : users) by_user.add_row({clipped(user, 40), energy(kwh)});
  std::vector<TextTable::Head> columns{{"node", Align::Left}};
  for (const std::string_view use : kNodeUseNames)
    columns.push_back({std::string(use), Align::Right});
  TextTable by_node(std::move(columns));
  decltype(NodeView::energy_kwh) uses{};
  const auto add_row = [&](const std::string& name, const decltype(uses)& kwh) {
    std::vector<std::string> row{name};
    for (const double use : kwh) row.push_back(energy(use));
    by_node.add_row(std::move(row));
  };
  for (const NodeView& node : nodes) {
    add_row(clipped(node.name, 40), node.energy_kwh);
    for (std::size_t use = 0; use < uses.size(); ++use) uses[use] += node.energy_kwh[use];
  }
  if (nodes.size() > 1) add_row("all", uses);
  return fmt::format("{}\n{}\nenergy of nodes since they are counted\n{}", title, by_user.str(),
                     by_node.str());
}

// A dot is a free device; jobs that share one are joined by a plus.
std::string node_table(const std::vector<NodeView>& nodes, const TableStyle& style) {
  TextTable table({{"node", Align::Left},
                   {"state", Align::Left},
                   {"type", Align::Left},
                   {"gpus", Align::Right},
                   {"cpus", Align::Right},
                   {"memory", Align::Right},
                   {"devices (jobs on each)", Align::Left}});
  for (const NodeView& node : nodes) {
    std::string devices;
    for (const auto& jobs : node.devices)
      devices +=
          fmt::format("{}{}", devices.empty() ? "" : " ",
                      jobs.empty() ? std::string("·") : fmt::format("{}", fmt::join(jobs, "+")));
    if (!node.reason.empty())
      devices += fmt::format("{}({})", devices.empty() ? "" : "  ", clipped(node.reason, 200));
    table.add_row(
        {clipped(node.name, 40),
         coloured(harmless(node.state), node.state == "up" ? "32" : "31", style.has_colour),
         node.type.empty() ? "-" : clipped(node.type, 40),
         fmt::format("{}/{}", node.gpus_used, node.gpus),
         fmt::format("{}/{}", node.cpus_used, node.cpus),
         node.memory_mib > 0 ? fmt::format("{:.0f}G", static_cast<double>(node.memory_mib) / 1'024)
                             : "-",
         devices});
  }
  return fitted(table.str(), style.width);
}

std::string share_table(const std::vector<ShareView>& shares) {
  TextTable table({{"of", Align::Left},
                   {"name", Align::Left},
                   {"shares", Align::Right},
                   {"used", Align::Right},
                   {"gpus now", Align::Right},
                   {"jobs", Align::Right},
                   {"waiting", Align::Right},
                   {"gpu limit", Align::Right},
                   {"job limit", Align::Right},
                   {"gpu time limit", Align::Right}});
  const auto limit = [](std::int32_t value) {
    return value > 0 ? fmt::format("{}", value) : std::string("-");
  };
  for (const ShareView& share : shares) {
    table.add_row({harmless(share.kind), clipped(share.name, 40), fmt::format("{:g}", share.shares),
                   gpu_time(share.gpu_seconds), fmt::format("{}", share.gpus_now),
                   fmt::format("{}", share.jobs_now), fmt::format("{}", share.waiting),
                   limit(share.gpu_limit), limit(share.job_limit),
                   share.gpu_seconds_limit > 0 ? gpu_time(share.gpu_seconds_limit) : "-"});
  }
  return table.str();
}

std::string token_table(const std::vector<TokenRow>& tokens) {
  TextTable table({{"token", Align::Left},
                   {"user", Align::Left},
                   {"role", Align::Left},
                   {"made", Align::Left},
                   {"good until", Align::Left}});
  for (const TokenRow& token : tokens) {
    table.add_row({clipped(token.name, 80), clipped(token.user, 40), harmless(token.role),
                   local_time(token.created * 1'000'000),
                   token.expires > 0 ? local_time(token.expires * 1'000'000) : "for ever"});
  }
  return table.str();
}

namespace {

void add_run(std::string& text, const JobRow& job) {
  const auto line = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<12} {}\n", key, clipped(value, 2'000));
  };
  line("submitted", local_time(job.submitted));
  line("started", job.started > 0 ? local_time(job.started) : "");
  line("ended", job.ended > 0 ? local_time(job.ended) : "");
  line("ran",
       job.run_seconds > 0 ? clock_span(job.run_seconds) + ", " + gpu_time(job.gpu_seconds) : "");
  line("energy", job.energy_kwh > 0 ? energy(job.energy_kwh) : "");
  line(
      is_over(job.state) ? "ran on" : "runs on",
      is_waiting(job.state) || job.where.empty() ? "" : [&] {
        JobRow shown = job;
        shown.state = LiveState::Running;
        return circumstance(shown);
      }());
  line("pid", job.pid > 0 && !is_over(job.state) ? fmt::format("{}", job.pid) : "");
  line("exit", is_over(job.state) && job.started > 0 ? exit_text(job) : "");
  line("output", job.output);
  line("error", job.error == job.output ? "" : job.error);
  if (job.attempts > 1 || job.preemptions > 0 || job.failures > 0)
    line("attempts", fmt::format("{}, {} preemptions, {} failures", job.attempts, job.preemptions,
                                 job.failures));
  if (job.pace) line("pace", pace_text(*job.pace));
  if (job.training) {
    line("training",
         fmt::format("iteration {:.0f}, {:.3g}/s{}{}, heard {} ago", job.training->iterations,
                     job.training->iterations_per_second,
                     job.training->loss ? fmt::format(", loss {:.4g}", *job.training->loss) : "",
                     job.training->sub_steps > 1
                         ? fmt::format(", {} sub-steps", job.training->sub_steps)
                         : "",
                     human_duration(job.training->last_heard_seconds_ago)));
  }
}

}  // namespace

// Lines without a value are left out: most jobs have few of these.
std::string job_text(const JobRow& job, const std::vector<AttemptView>& attempts) {
  const JobSpec& spec = *job.spec;
  std::string text = fmt::format("job {}: {}, {}{}\n", job.number, clipped(name_of(job), 200),
                                 to_string(job.state),
                                 job.reason.empty() ? "" : " (" + clipped(job.reason, 500) + ")");
  const auto line = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<12} {}\n", key, clipped(value, 2'000));
  };
  line("user", spec.user + (spec.group.empty() ? "" : " (group " + spec.group + ")"));
  line("queue", spec.queue);
  line("wants", fmt::format("{} GPU{}{}{}{}", gpus_of(job), spec.gpus == 1 ? "" : "s",
                            spec.gpu_type.empty() ? "" : " " + spec.gpu_type,
                            spec.cpus > 0 ? fmt::format(", {} cores", spec.cpus) : "",
                            spec.memory_mib > 0 ? fmt::format(", {} MiB", spec.memory_mib) : ""));
  line("elastic",
       spec.gpus_max > 0 ? fmt::format("{} to {} GPUs", spec.gpus_min, spec.gpus_max) : "");
  line("GPU memory",
       spec.gpu_memory_mib > 0 ? fmt::format("{} MiB or more", spec.gpu_memory_mib) : "");
  line("container", spec.container);
  line("grid", grid_text(job));
  line("qos", spec.qos);
  line("time limit", limit_text(spec.time_limit));
  line("priority", spec.priority != 0 ? fmt::format("{}", spec.priority) : "");
  line("waits for", to_text(spec.dependencies, spec.any_dependency));
  line("begins", spec.begin > 0 ? local_time(spec.begin * 1'000'000) : "");
  line("deadline", spec.deadline ? local_time(*spec.deadline * 1'000'000) : "");
  line("command", fmt::format("{}", fmt::join(spec.command, " ")));
  line("directory", spec.workdir);
  add_run(text, job);
  for (const AttemptView& attempt : attempts) {
    std::string nodes;
    for (const HeldDevices& one : attempt.where) nodes += (nodes.empty() ? "" : ",") + one.node;
    text += fmt::format("  attempt {}: {} to {} on {}: {}{}\n", harmless(attempt.id),
                        local_time(attempt.begun),
                        attempt.ended > 0 ? local_time(attempt.ended) : "now",
                        nodes.empty() ? "-" : clipped(nodes, 2'000),
                        attempt.outcome.empty() ? "under way" : harmless(attempt.outcome),
                        attempt.why.empty() ? "" : " (" + clipped(attempt.why, 500) + ")");
  }
  return text;
}

}  // namespace berth::client
