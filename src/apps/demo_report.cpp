#include "apps/demo_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/history_trace.h"
#include "base/text_table.h"
#include "model/cluster.h"
#include "run/run.h"

namespace berth {

namespace {

/// One job, however it was learned: seconds from its submit.
struct Fate {
  double waited = 0, done = 0;
};

/// A whole run of the jobs.
struct Course {
  std::vector<Fate> fates;  // by job
  double makespan = 0;      // first submit to last end
  double gpu_use = 0;       // share of the devices' time in which a job held them

  [[nodiscard]] double mean(double Fate::*of) const {
    double sum = 0;
    for (const Fate& fate : fates) sum += fate.*of;
    return sum / static_cast<double>(fates.size());
  }
};

double seconds(std::int64_t micros) { return static_cast<double>(micros) * 1e-6; }

Course measured(const std::vector<client::JobRow>& jobs, std::int64_t gpus) {
  Course course;
  std::int64_t first = jobs.front().submitted, last = 0;
  double held = 0;
  for (const client::JobRow& job : jobs) {
    const double done = seconds(job.ended - job.submitted);
    course.fates.push_back({std::max(0.0, done - job.run_seconds), done});
    first = std::min(first, job.submitted);
    last = std::max(last, job.ended);
    held += job.gpu_seconds;
  }
  course.makespan = seconds(last - first);
  course.gpu_use = held / (static_cast<double>(gpus) * course.makespan);
  return course;
}

Result<Course> simulated(const Trace& trace, const Cluster& cluster, const std::string& policy) {
  RunSpec spec;
  spec.policy = policy;
  spec.estimator = "limit";  // what the users said, as the live scheduler had it
  BERTH_TRY(Run planned, make_run(trace, cluster, spec));
  BERTH_TRY(const RunData run, planned.run());
  Course course;
  Time last = kTimeZero;
  double held = 0;
  for (const JobOutcome& job : run.jobs.rows) {
    if (!job.ran_to_an_end()) return fail("a job of the demo did not run in the simulation");
    course.fates.push_back({to_seconds(job.queue_time()), to_seconds(job.jct())});
    last = std::max(last, *job.finish);
    held += to_seconds(job.service);
  }
  course.makespan = to_seconds(last - trace.jobs.front().submit);
  course.gpu_use = held / (static_cast<double>(cluster.total_gpus()) * course.makespan);
  return course;
}

std::string cell(double value) { return fmt::format("{:.1f}", value); }

std::string table(const std::vector<client::JobRow>& jobs, const Course& real, const Course& fifo) {
  TextTable rows({{"job", Align::Left},
                  {"GPUs"},
                  {"ran (s)"},
                  {"waited (s)"},
                  {"done after (s)"},
                  {"fifo: waited"},
                  {"fifo: done after"}});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    rows.add_row({jobs[i].spec->name, std::to_string(jobs[i].spec->gpus), cell(jobs[i].run_seconds),
                  cell(real.fates[i].waited), cell(real.fates[i].done), cell(fifo.fates[i].waited),
                  cell(fifo.fates[i].done)});
  }
  return rows.str();
}

std::string course_line(const std::string& name, const Course& course) {
  return fmt::format(
      "{:<22} waited {:5.1f} s, done after {:5.1f} s on average; all done after {:.1f} s, GPUs in "
      "use {:.0f} %\n",
      name, course.mean(&Fate::waited), course.mean(&Fate::done), course.makespan,
      100 * course.gpu_use);
}

}  // namespace

Result<std::string> demo_report(const DemoOutcome& outcome) {
  std::vector<client::JobRow> jobs = outcome.jobs;
  // The order of the trace, so that rows of both worlds meet.
  std::ranges::sort(jobs, [](const client::JobRow& a, const client::JobRow& b) {
    return std::tuple(a.submitted, a.number) < std::tuple(b.submitted, b.number);
  });
  const Trace trace = trace_of_history(jobs);
  if (jobs.empty() || trace.jobs.size() != jobs.size())
    return fail("not every job of the demo ran");
  BERTH_TRY(const Cluster cluster, load_cluster(outcome.cluster));
  const Course real = measured(jobs, cluster.total_gpus());
  BERTH_TRY(const Course fifo, simulated(trace, cluster, "fifo"));
  BERTH_TRY(const Course same, simulated(trace, cluster, outcome.policy));
  return table(jobs, real, fifo) + "\n" + course_line(outcome.policy + ", just now:", real) +
         course_line("fifo, simulated:", fifo) +
         course_line(outcome.policy + ", simulated:", same) +
         "(the simulations replay the recorded submit and run times; the last line says how near "
         "they come)\n";
}

}  // namespace berth
