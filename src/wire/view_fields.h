// Every field of the views (views.h): its key, its place, and what the document says of it. Times
// are Unix microseconds unless told; null: not yet.
#pragma once

#include "wire/describe.h"
#include "wire/views.h"

namespace berth::wire {

template <>
struct Names<Role> {
  static constexpr std::string_view kName = "";
  static constexpr std::array kAll{std::pair{Role::User, std::string_view{"user"}},
                                   std::pair{Role::Operator, std::string_view{"operator"}},
                                   std::pair{Role::Admin, std::string_view{"admin"}}};
};
template <>
struct Names<LiveState> {
  static constexpr std::string_view kName = "State";
  static constexpr LiveState kUnknown = LiveState::Unknown;
  static constexpr std::array kAll{
      std::pair{LiveState::Held, std::string_view{"held"}},
      std::pair{LiveState::Blocked, std::string_view{"blocked"}},
      std::pair{LiveState::Pending, std::string_view{"pending"}},
      std::pair{LiveState::Starting, std::string_view{"starting"}},
      std::pair{LiveState::Running, std::string_view{"running"}},
      std::pair{LiveState::Suspended, std::string_view{"suspended"}},
      std::pair{LiveState::Stopping, std::string_view{"stopping"}},
      std::pair{LiveState::Completed, std::string_view{"completed"}},
      std::pair{LiveState::Failed, std::string_view{"failed"}},
      std::pair{LiveState::Cancelled, std::string_view{"cancelled"}},
      std::pair{LiveState::TimedOut, std::string_view{"timed-out"}},
      std::pair{LiveState::Preempted, std::string_view{"preempted"}},
      std::pair{LiveState::NodeFailed, std::string_view{"node-failed"}},
      std::pair{LiveState::Rejected, std::string_view{"rejected"}},
      std::pair{LiveState::OutOfMemory, std::string_view{"out-of-memory"}}};
};
template <>
struct Names<WaitCode> {
  static constexpr std::string_view kName = "";
  static constexpr std::array kAll{
      std::pair{WaitCode::None, std::string_view{""}},
      std::pair{WaitCode::HeldByUser, std::string_view{"held-by-user"}},
      std::pair{WaitCode::HeldByAdmin, std::string_view{"held-by-admin"}},
      std::pair{WaitCode::BeginTime, std::string_view{"begin-time"}},
      std::pair{WaitCode::Retry, std::string_view{"retry"}},
      std::pair{WaitCode::Dependency, std::string_view{"dependency"}},
      std::pair{WaitCode::ArrayLimit, std::string_view{"array-limit"}},
      std::pair{WaitCode::UserGpus, std::string_view{"user-gpus"}},
      std::pair{WaitCode::UserJobs, std::string_view{"user-jobs"}},
      std::pair{WaitCode::GroupGpus, std::string_view{"group-gpus"}},
      std::pair{WaitCode::GroupJobs, std::string_view{"group-jobs"}},
      std::pair{WaitCode::GpuTime, std::string_view{"gpu-time"}},
      std::pair{WaitCode::TooSmall, std::string_view{"cluster-too-small"}},
      std::pair{WaitCode::Resources, std::string_view{"resources"}},
      std::pair{WaitCode::Priority, std::string_view{"priority"}},
      std::pair{WaitCode::DependencyNever, std::string_view{"dependency-never"}}};
};
template <>
struct Names<Verb> {
  static constexpr std::string_view kName = "";
  static constexpr std::array kAll{std::pair{Verb::Cancel, std::string_view{"cancel"}},
                                   std::pair{Verb::Hold, std::string_view{"hold"}},
                                   std::pair{Verb::Release, std::string_view{"release"}},
                                   std::pair{Verb::Requeue, std::string_view{"requeue"}},
                                   std::pair{Verb::Suspend, std::string_view{"suspend"}},
                                   std::pair{Verb::Resume, std::string_view{"resume"}},
                                   std::pair{Verb::Signal, std::string_view{"signal"}}};
};
template <>
struct Names<Outcome> {
  static constexpr std::string_view kName = "Outcome";
  static constexpr const auto& kAll = kOutcomeNames;
};

template <>
struct Fields<HeldDevices> {
  static constexpr std::string_view kName = "Held";
  template <class Held, class Visit>
  static void visit(Held& h, Visit& v) {
    v("node", h.node);
    v("devices", h.devices);
    v("cores", h.cores, "bound to these; empty: to any");
  }
};

template <>
struct Fields<TrainingView> {
  static constexpr std::string_view kName = "Training";
  static constexpr std::string_view kMeaning = "what its code reports of itself";
  template <class Training, class Visit>
  static void visit(Training& t, Visit& v) {
    v("iterations", t.iterations);
    v("iterations_per_second", t.iterations_per_second);
    v("samples_per_second", t.samples_per_second);
    v("loss", t.loss);
    v("sub_steps", t.sub_steps);
    v("last_heard_seconds_ago", t.last_heard_seconds_ago);
  }
};

inline constexpr std::array<std::string_view, 3> kPaceSources{"reports", "belief", "request"};

template <>
struct Fields<PaceView> {
  static constexpr std::string_view kName = "Pace";
  static constexpr std::string_view kMeaning =
      "how fast a running job gets on against its own estimate";
  template <class Pace, class Visit>
  static void visit(Pace& p, Visit& v) {
    v("rate", p.rate, "1: as its estimate says");
    v("progress", if_any(p.progress), "share of the whole; absent: nobody knows how long it is");
    v("seconds_left", if_any(p.seconds_left),
      "at this rate; absent: not known, or more than was believed");
    v("source", one_of(p.source, kPaceSources),
      "its training code, what is believed of where it runs, its request");
  }
};

template <>
struct Fields<JobView> {
  static constexpr std::string_view kName = "Job";
  static constexpr bool kHasBriefRows = true;
  template <class Job, class Visit>
  static void visit(Job& j, Visit& v) {
    v("number", kept(j.number));
    v("array", j.array, "number of the first job of its array; 0: none");
    v("array_index", kept(j.array_index, j.array != 0));
    v("array_at_once", only_brief(j.array_at_once),
      "brief rows only: jobs of its array that may run together; absent: no limit");
    v("array_indices", only_brief(indices(j.folded)),
      "brief rows only: of the jobs that the row stands for; absent: itself alone");
    v("spec", kept(j.spec));
    v("state", kept(j.state));
    v("reason", j.reason, "why it waits or how it ended");
    v("reason_code", j.code, "why it waits, for programs; empty if it does not");
    v("submitted", or_null(j.submitted));
    v("started", or_null(j.started), "the first start");
    v("last_started", or_null(j.last_started));
    v("ended", or_null(j.ended));
    v("run_seconds", j.run_seconds, "in which it was not suspended, over all attempts");
    v("last_run_seconds", j.last_run_seconds, "of the last attempt");
    v("suspended_seconds", j.suspended_seconds, "of the last attempt, in which it was suspended");
    v("suspended", or_null(j.suspended), "since when it is");
    v("gpu_seconds", j.gpu_seconds);
    v("energy_kwh", j.energy_kwh, "charged so far");
    v("attempts", j.attempts);
    v("preemptions", j.preemptions);
    v("failures", j.failures);
    v("tasks", j.tasks, "of its gang, or those that a batch script asked for and srun starts");
    v("where", j.where);
    v("granted", j.granted, "devices it holds now");
    v("exit_code", j.exit_code);
    v("signal", j.signal);
    v("pid", j.pid);
    v("output", not_brief(j.output));
    v("error", not_brief(j.error));
    v("training", j.training);
    v("pace", j.pace);
  }
};

template <>
struct Fields<JobPage> {
  static constexpr std::string_view kName = "JobPage";
  template <class Page, class Visit>
  static void visit(Page& p, Visit& v) {
    v("jobs", p.jobs);
    v("next", p.next, "ask again with after=next");
    v("total", p.total, "that match, over all pages");
  }
};
template <>
struct Fields<PastPage> {
  static constexpr std::string_view kName = "PastPage";
  template <class Page, class Visit>
  static void visit(Page& p, Visit& v) {
    v("jobs", p.jobs);
    v("next", p.next, "ask again with cursor=next");
  }
};

template <>
struct Fields<AttemptView> {
  static constexpr std::string_view kName = "Attempt";
  template <class Attempt, class Visit>
  static void visit(Attempt& a, Visit& v) {
    v("id", a.id);
    v("where", a.where);
    v("begun", or_null(a.begun));
    v("ended", or_null(a.ended));
    v("outcome", word_of<Outcome>(a.outcome));
    v("exit_code", a.exit_code);
    v("signal", a.signal);
    v("gpu_seconds", a.gpu_seconds);
    v("why", a.why);
  }
};

template <>
struct Fields<Submitted> {
  static constexpr std::string_view kName = "Submitted";
  template <class Answer, class Visit>
  static void visit(Answer& s, Visit& v) {
    v("job", s.first, "number of the job, or of the first of an array");
    v("count", s.count, "jobs made; their numbers follow each other");
    v("repeat", s.is_repeat, "the key was known: this is the job made then");
    v("notes", s.notes);
  }
};

template <>
struct Fields<VerbResult> {
  static constexpr std::string_view kName = "Deed";
  template <class Done, class Visit>
  static void visit(Done& d, Visit& v) {
    v("job", d.job);
    v("done", d.is_done);
    v("text", d.text, "what happened, or why not");
  }
};

template <>
struct Fields<NodeView> {
  static constexpr std::string_view kName = "Node";
  template <class Node, class Visit>
  static void visit(Node& n, Visit& v) {
    v("name", n.name);
    v("state", n.state, "up, down, drained, off or booting");
    v("reason", n.reason);
    v("type", n.type);
    v("gpus", n.gpus);
    v("gpus_used", n.gpus_used);
    v("cpus", n.cpus);
    v("cpus_used", n.cpus_used);
    v("memory_mib", n.memory_mib);
    v("devices", n.devices, "numbers of the jobs on each device");
    v("energy_kwh", by_name(n.energy_kwh, kNodeUseNames),
      "used so far while it was busy, idle, booting, off");
  }
};

template <>
struct Fields<QueueView> {
  static constexpr std::string_view kName = "Queue";
  template <class Queue, class Visit>
  static void visit(Queue& q, Visit& v) {
    v("name", q.name);
    v("max_time_limit", q.max_time_limit, "seconds; 0: none");
    v("default_time_limit", q.default_time_limit, "seconds, of jobs that ask for none; 0: none");
  }
};

template <>
struct Fields<ClusterView> {
  static constexpr std::string_view kName = "Cluster";
  template <class Cluster, class Visit>
  static void visit(Cluster& c, Visit& v) {
    v("name", c.name, "as jobs know it: SLURM_CLUSTER_NAME");
    v("policy", c.policy);
    v("settings", c.settings);
    v("version", c.version);
    v("generation", c.generation, "which life of the scheduler this is");
    v("started", or_null(c.started));
    v("uptime_seconds", c.uptime_seconds);
    v("pending", c.pending);
    v("running", c.running);
    v("held", c.held);
    v("gpus", c.gpus);
    v("gpus_used", c.gpus_used);
    v("queues", c.queues, "the first is where jobs go that name none");
    v("passes", c.passes);
    v("last_pass_seconds", c.last_pass_seconds);
    v("worst_pass_seconds", c.worst_pass_seconds);
    v("trouble", c.trouble, "empty: all is well");
  }
};

inline constexpr std::array<std::string_view, 2> kShareKinds{"user", "group"};

template <>
struct Fields<ShareView> {
  static constexpr std::string_view kName = "Share";
  template <class Share, class Visit>
  static void visit(Share& s, Visit& v) {
    v("kind", one_of(s.kind, kShareKinds));
    v("name", s.name);
    v("shares", s.shares);
    v("gpu_seconds", s.gpu_seconds, "decayed use");
    v("gpus_now", s.gpus_now);
    v("jobs_now", s.jobs_now);
    v("waiting", s.waiting);
    v("gpu_limit", s.gpu_limit, "0: none");
    v("job_limit", s.job_limit, "0: none");
    v("gpu_seconds_limit", s.gpu_seconds_limit, "0: none");
    v("members", s.members, "of a group, beside what the machine and the configuration say");
    v("all_shares", s.all_shares, "of everybody together, also of who is not shown");
    v("all_gpu_seconds", s.all_gpu_seconds, "the same");
  }
};

/// Of a token as the scheduler keeps it, and as a client shows it.
struct TokenFields {
  static constexpr std::string_view kName = "Token";
  template <class Token, class Visit>
  static void visit(Token& t, Visit& v) {
    v("name", t.name);
    v("user", t.user);
    v("role", t.role);
    v("created", or_null(t.created), "Unix seconds");
    v("expires", or_null(t.expires), "Unix seconds; null: never");
  }
};
template <>
struct Fields<TokenView> : TokenFields {};

template <>
struct Fields<Caller> {
  static constexpr std::string_view kName = "Caller";
  template <class Who, class Visit>
  static void visit(Who& c, Visit& v) {
    v("user", c.user);
    v("uid", or_null(c.uid, kNoUid), "null: known by a token, not by the machine");
    v("gid", or_null(c.gid, kNoUid));
    v("role", c.role);
  }
};

template <>
struct Fields<AttemptList> {
  static constexpr std::string_view kName = "Attempts";
  template <class List, class Visit>
  static void visit(List& l, Visit& v) {
    v("attempts", l.attempts);
  }
};
template <>
struct Fields<VerbResultList> {
  static constexpr std::string_view kName = "Deeds";
  template <class List, class Visit>
  static void visit(List& l, Visit& v) {
    v("results", l.results);
  }
};
template <>
struct Fields<NodeList> {
  static constexpr std::string_view kName = "Nodes";
  template <class List, class Visit>
  static void visit(List& l, Visit& v) {
    v("nodes", l.nodes);
  }
};
template <>
struct Fields<ShareList> {
  static constexpr std::string_view kName = "Shares";
  template <class List, class Visit>
  static void visit(List& l, Visit& v) {
    v("shares", l.shares);
  }
};
template <>
struct Fields<TokenList> {
  static constexpr std::string_view kName = "Tokens";
  template <class List, class Visit>
  static void visit(List& l, Visit& v) {
    v("tokens", l.tokens);
  }
};

}  // namespace berth::wire
