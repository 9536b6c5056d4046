// One function per file of `--out`. Times are exact to the microsecond and ratios have nine digits:
// enough to compare, short enough to read.

#include "report/run_files.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include <fmt/format.h>

#include "report/csv.h"

namespace berth {

namespace {

// Commas between fields and the line break at the end, whatever is written in between.
class Row {
 public:
  explicit Row(std::string& out) : out_(out) {}
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  ~Row() { out_ += '\n'; }

  Row& text(std::string_view field) {
    separate();
    put_csv(out_, field);
    return *this;
  }
  Row& seconds(std::optional<Duration> duration) {
    return text(duration ? seconds_text(*duration) : std::string{});
  }
  Row& seconds(std::optional<Time> time) {
    return text(time ? seconds_text(*time) : std::string{});
  }
  template <class Number>
  Row& number(Number value) {
    separate();
    fmt::format_to(std::back_inserter(out_), "{}", value);
    return *this;
  }
  Row& ratio(std::optional<double> value) {
    separate();
    if (value) fmt::format_to(std::back_inserter(out_), "{:.9g}", *value);
    return *this;
  }

 private:
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  std::string& out_;
  bool first_ = true;
};

/// The devices of a mask as ranges: 0b1011 is "0-1+3".
std::string device_ranges(std::uint64_t devices) {
  std::string text;
  while (devices != 0) {
    const int from = std::countr_zero(devices);
    const int length = std::countr_one(devices >> static_cast<unsigned>(from));
    if (!text.empty()) text += '+';
    text += length == 1 ? fmt::format("{}", from) : fmt::format("{}-{}", from, from + length - 1);
    // A shift by 64 is undefined.
    if (from + length >= 64) break;
    devices = devices >> static_cast<unsigned>(from + length)
                             << static_cast<unsigned>(from + length);
  }
  return text;
}

std::string places(const RunData& run, const ActionRow& action) {
  std::string text;
  for (std::uint32_t i = 0; i < action.slices; ++i) {
    const Slice& slice = run.actions->slices[action.first_slice + i];
    if (!text.empty()) text += ';';
    text += run.cluster.nodes[slice.node.value].name;
    if (slice.devices == 0) continue;  // the node itself was switched on or off
    text += ':';
    text += device_ranges(slice.devices);
  }
  return text;
}

}  // namespace

std::string jobs_csv(const RunData& run) {
  std::string out =
      "job_id,submit_time,start_time,finish_time,jct,queue_time,run_time,gpus,preemptions,"
      "migrations,status,"
      "user,group,queue,model,duration,work,overhead,lost_attempts,deadline,slowdown,ftf,reason,"
      "service,soft_deadline,retries,wasted\n";
  const Names& names = run.jobs.names;
  for (const JobOutcome& job : run.jobs.rows) {
    const bool ended = job.ran_to_an_end();
    Row row{out};
    row.text(names.text(job.id)).seconds(job.submit).seconds(job.start).seconds(job.finish);
    row.seconds(ended ? std::optional(job.jct()) : std::nullopt);
    row.seconds(ended ? std::optional(job.queue_time()) : std::nullopt);
    row.seconds(job.run_time).number(job.gpus).number(job.preemptions).number(job.migrations);
    row.text(status_text(job.state));
    row.text(names.text(job.user))
        .text(names.text(job.group))
        .text(names.text(job.queue))
        .text(names.text(job.model));
    row.seconds(job.duration)
        .seconds(job.work)
        .seconds(job.overhead)
        .number(job.lost_attempts)
        .seconds(job.deadline);
    row.ratio(ended ? job.slowdown() : std::nullopt);
    row.ratio(ended ? job.ftf(static_cast<double>(run.cluster.gpus)) : std::nullopt);
    row.text(names.text(job.reason)).seconds(job.service).number(job.soft_deadline ? 1 : 0);
    row.number(job.retries).seconds(job.wasted);
  }
  return out;
}

std::string actions_csv(const RunData& run) {
  std::string out = "time,action,reason,job_id,gpus,nodes\n";
  if (!run.actions) return out;
  for (const ActionRow& action : run.actions->rows) {
    Row row{out};
    row.seconds(action.at).text(to_string(action.kind)).text(to_string(action.reason));
    const bool about_job = action.job != kNoJob;
    row.text(about_job ? run.jobs.names.text(run.jobs.rows[action.job.value].id) : "")
        .number(action.gpus)
        .text(places(run, action));
  }
  return out;
}

std::string timeline_csv(const RunData& run) {
  std::string out = "time,queue_length,queued_gpus,running_jobs,busy_gpus,capacity_gpus\n";
  for (const TimelinePoint& point : run.timeline) {
    const Levels& levels = point.levels;
    Row row{out};
    row.seconds(point.at);
    for (const double level :
         {levels.queue, levels.queued_gpus, levels.running, levels.busy, levels.capacity})
      row.ratio(level);
  }
  return out;
}

std::string intervals_csv(const RunData& run) {
  std::string out = "job_id,user,gpus,node,device,start_time,end_time,kind\n";
  if (!run.gantt) return out;
  std::size_t node = 0;
  std::uint32_t first = 0;  // lane of the node's first device; bars come by lane
  for (const GanttBar& bar : run.gantt->bars) {
    // Bars are sorted by lane, so one walk over the nodes is enough.
    while (bar.lane >= first + static_cast<std::uint32_t>(run.cluster.nodes[node].gpus)) {
      first += static_cast<std::uint32_t>(run.cluster.nodes[node++].gpus);
    }
    const Gantt::Job& job = run.gantt->jobs[bar.job];
    Row row{out};
    row.text(job.id)
        .text(job.user)
        .number(job.gpus)
        .text(run.cluster.nodes[node].name)
        .number(bar.lane - first);
    row.seconds(bar.start).seconds(bar.end).text(bar.kind == IntervalKind::Run ? "run"
                                                                               : "overhead");
  }
  return out;
}

std::string nodes_csv(const RunData& run) {
  std::string out = "node,gpus,type,rack\n";
  for (const NodeFacts& node : run.cluster.nodes) {
    Row{out}.text(node.name).number(node.gpus).text(node.type).text(node.rack);
  }
  return out;
}

}  // namespace berth
