// Every field of a step (model/step.h).
#pragma once

#include "model/step.h"
#include "wire/describe.h"

namespace berth::wire {

template <>
struct Names<StepState> {
  static constexpr std::string_view kName = "StepState";
  static constexpr const auto& kAll = kStepStateNames;
};

template <>
struct Fields<StepView> {
  static constexpr std::string_view kName = "Step";
  template <class Step, class Visit>
  static void visit(Step& s, Visit& v) {
    v("id", s.id, "batch (the script itself), interactive, or a number");
    v("name", s.name);
    v("state", s.state);
    v("tasks", s.tasks);
    v("cpus", s.cpus, "cores it takes; 0: not known");
    v("devices", s.devices, "of its job's, by index on the node");
    v("cores", s.cores, "bound to these; empty: to any of its job's");
    v("overlaps", s.overlaps, "shares what other steps use");
    v("shares_devices", s.shares_devices, "it asked for none, so it sees all of its job's");
    v("begun", or_null(s.begun));
    v("ended", or_null(s.ended));
    v("exit_code", s.exit_code);
    v("signal", s.signal);
    v("cpu_seconds", s.cpu_seconds, "of the tasks that are over");
    v("max_rss_kib", s.max_rss_kib, "memory of the largest task that is over");
    v("pid", or_null(s.pid), "of the process that keeps it");
  }
};

template <>
struct Fields<JobSteps> {
  static constexpr std::string_view kName = "JobSteps";
  template <class Steps, class Visit>
  static void visit(Steps& s, Visit& v) {
    v("job", s.job);
    v("directory", or_null(s.directory), "where a running job keeps them; shown to its user");
    v("steps", s.steps, "of its last attempt");
  }
};
template <>
struct Fields<JobStepsList> {
  static constexpr std::string_view kName = "Steps";
  template <class List, class Visit>
  static void visit(List& l, Visit& v) {
    v("jobs", l.jobs);
  }
};

}  // namespace berth::wire
