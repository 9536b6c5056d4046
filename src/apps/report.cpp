#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "apps/commands.h"
#include "base/file.h"
#include "base/text_table.h"
#include "client/commands.h"
#include "client/tables.h"
#include "report/live_report.h"
#include "report/read_run.h"

namespace berth {

namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr std::size_t kMostRows = 20;  // of jobs, in the text

std::string job_rows(std::vector<LiveEnergy::Job> jobs) {
  std::ranges::stable_sort(jobs, std::ranges::greater{}, &LiveEnergy::Job::kwh);
  const std::size_t all = jobs.size();
  jobs.resize(std::min(all, kMostRows));
  TextTable table({{"job", Align::Left},
                   {"name", Align::Left},
                   {"user", Align::Left},
                   {"state", Align::Left},
                   {"energy", Align::Right}});
  for (const LiveEnergy::Job& job : jobs)
    table.add_row({job.id, job.name, job.user, job.state, client::energy(job.kwh)});
  const std::string which =
      all > jobs.size() ? fmt::format(", the {} that used most of {}", jobs.size(), all) : "";
  return fmt::format("energy by job{}\n{}\n", which, table.str());
}

Exit report_live(const ReportOptions& options) {
  const auto endpoint = client::find_endpoint(options.server, client::process_variables());
  if (!endpoint) return complain(Exit::Misuse, endpoint.error());
  client::Scheduler scheduler{*endpoint};
  // Who ends in between is in both or counts less by a moment: what runs is asked for first.
  const auto alive = scheduler.jobs({});
  if (!alive) return complain(Exit::Failure, alive.error());
  client::HistoryQuery everything;
  everything.most = 0;
  const auto past = scheduler.history(everything);
  if (!past) return complain(Exit::Failure, past.error());
  const auto nodes = scheduler.nodes();
  if (!nodes) return complain(Exit::Failure, nodes.error());
  const auto sums = scheduler.energy_sums();
  if (!sums) return complain(Exit::Failure, sums.error());

  LiveEnergy energy;
  energy.title = "Energy of a live scheduler";
  energy.nobody = sums->nobody / kJoulesPerKwh;
  for (const auto& [user, joules] : sums->users) energy.users[user] = joules / kJoulesPerKwh;
  for (const NodeView& node : *nodes) {
    LiveEnergy::Node& row = energy.nodes.emplace_back();
    row.name = node.name;
    for (std::size_t use = 0; use < kNodeUseNames.size(); ++use)
      row.kwh[std::string{kNodeUseNames[use]}] = node.energy_kwh[use];
  }
  std::map<JobNumber, const client::JobRow*> jobs;
  for (const auto* page : {&*alive, &*past})
    for (const client::JobRow& job : page->jobs) jobs[job.number] = &job;
  for (const auto& [number, job] : jobs) {
    if (job->energy_kwh > 0)
      energy.jobs.push_back({job->slurm_id(), job->spec->name, job->spec->user,
                             std::string{to_string(job->state)}, job->energy_kwh});
  }
  if (!options.out.empty()) {
    if (const auto written = write_file(options.out, live_report_html(energy)); !written)
      return complain(Exit::Failure, written.error());
  }
  std::string text = job_rows(energy.jobs);
  text += client::energy_table("energy by user since it is counted", energy.users, *nodes);
  text += fmt::format("nobody's: {}\n", client::energy(energy.nobody));
  return write_stdout(text);
}

}  // namespace

Exit execute(const ReportOptions& options) {
  if (options.live) return report_live(options);
  if (!options.server.empty() || !options.out.empty())
    return complain(Exit::Misuse, "--server and --out are of --live");
  if (options.dir.empty())
    return complain(Exit::Misuse,
                    "which folder? Name one that `--out DIR` made; --live is of a scheduler");
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.dir, ignored)) {
    return complain(Exit::Misuse, fmt::format("{}: no such folder (name one that `--out DIR` made)",
                                              options.dir));
  }
  if (std::filesystem::exists(options.dir + "/berth.db", ignored))
    return complain(Exit::Misuse,
                    fmt::format("{}: the state of a live scheduler (`berth report --live` asks it)",
                                options.dir));
  if (const auto done = rebuild_report(options.dir); !done)
    return complain(Exit::Misuse, done.error());
  print_note(fmt::format("wrote {0}/report.html and {0}/figures", options.dir));
  return Exit::Success;
}

}  // namespace berth
