#include "apps/export.h"

#include <string>
#include <unordered_map>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/history_trace.h"
#include "base/file.h"
#include "client/commands.h"
#include "client/moment.h"
#include "trace/writer.h"

namespace berth {

namespace {

Result<client::HistoryQuery> query_of(const ExportOptions& options) {
  client::HistoryQuery query;
  query.user = options.user;
  query.group = options.group;
  query.queue = options.queue;
  query.most = 0;  // all
  if (!options.since.empty()) {
    BERTH_TRY(query.since, client::parse_past_moment(options.since, client::unix_now()));
  }
  if (!options.until.empty()) {
    BERTH_TRY(query.until, client::parse_past_moment(options.until, client::unix_now()));
  }
  return query;
}

}  // namespace

Exit execute(const ExportOptions& options) {
  if (options.out.empty())
    return complain(Exit::Misuse, "no -o FILE: where to? (- is standard output)");
  const auto query = query_of(options);
  if (!query) return complain(Exit::Misuse, query.error());
  const auto endpoint = client::find_endpoint(options.server, client::process_variables());
  if (!endpoint) return complain(Exit::Misuse, endpoint.error());
  const auto page = client::Scheduler{*endpoint}.history(*query);
  if (!page) return complain(Exit::Failure, page.error());
  const Trace trace = trace_of_history(page->jobs);
  if (!options.quiet)
    for (const std::string& note : trace.notes) print_note(note);
  if (trace.jobs.empty())
    return complain(Exit::Failure, "no job of the history has run: nothing to write");
  std::unordered_map<std::string, double> kwh;
  for (const client::JobRow& row : page->jobs) kwh[std::to_string(row.number)] = row.energy_kwh;
  const std::string csv = trace_to_csv(trace, [&](const TraceJob& job) {
    const auto found = kwh.find(std::string(trace.text(job.id)));
    return found == kwh.end() ? 0 : found->second;
  });
  if (options.out == "-") return write_stdout(csv);
  if (const auto written = write_file(options.out, csv); !written)
    return complain(Exit::Failure, written.error());
  if (!options.quiet)
    print_note(fmt::format("wrote {} jobs to {}", trace.jobs.size(), options.out));
  return Exit::Success;
}

Exit execute(const ProfilesOptions& options) {
  if (options.verb != "export")
    return complain(Exit::Misuse,
                    fmt::format("profiles: '{}' is no verb of it (did you mean `berth profiles "
                                "export`? Profiles of models are listed by `berth models`)",
                                options.verb));
  const auto endpoint = client::find_endpoint(options.server, client::process_variables());
  if (!endpoint) return complain(Exit::Misuse, endpoint.error());
  const auto profiles = client::Scheduler{*endpoint}.learnt_profiles();
  if (!profiles) return complain(Exit::Failure, profiles.error());
  if (options.out == "-") return write_stdout(*profiles);
  if (const auto written = write_file(options.out, *profiles); !written)
    return complain(Exit::Failure, written.error());
  return Exit::Success;
}

}  // namespace berth
