#include "advise/advise_service.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "advise/advise_metrics.h"
#include "advise/job_views.h"
#include "advise/node_views.h"
#include "advise/policy_trial.h"
#include "advise/slurm_why.h"
#include "daemon/job_pages.h"
#include "daemon/past_cursor.h"
#include "daemon/service_fault.h"
#include "why/why_json.h"
#include "wire/events.h"
#include "wire/tree.h"

namespace berth::advise {

namespace {

constexpr std::size_t kMostPerPage = 1'000;

std::string name_of_uid(std::uint32_t uid) {
  std::array<char, 16'384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return fmt::format("{}", uid);
}

bool keeps_accounting(const slurm::Config& config) {
  const std::string type = config.value("AccountingStorageType");
  return !type.empty() && !type.ends_with("/none");
}

/// Whether a job that is not over is one that a list asks for.
bool is_wanted(const slurm::Job& job, const JobFilter& filter) {
  const LiveState state = live_state(job);
  if (filter.states.empty() ? is_over(state)
                            : std::ranges::find(filter.states, state) == filter.states.end())
    return false;
  if (filter.ended_since && is_over(state) && job.ended * kMicro < *filter.ended_since)
    return false;
  return (!filter.user || job.user == *filter.user) &&
         (!filter.group || job.account == *filter.group) &&
         (!filter.queue || job.partition == *filter.queue) &&
         (!filter.name || job.name == *filter.name) && !filter.study;
}

/// Whoever asks by number means those jobs, over or not.
std::vector<FoundJob> candidates(const Sight& sight, const JobFilter& filter) {
  std::vector<FoundJob> found;
  if (filter.numbers.empty()) {
    for (const slurm::Job& job : sight.all_jobs()) found.push_back({.job = &job});
    return found;
  }
  for (const JobNumber number : filter.numbers)
    if (const FoundJob one = find_job(sight, number); one.job != nullptr) found.push_back(one);
  std::ranges::sort(found, {}, [](const FoundJob& one) { return one.job->key.job; });
  return found;
}

void show_one_task(JobView& view, const FoundJob& found) {
  if (!found.task) return;
  view.array_index = *found.task;
  view.folded.clear();
}

tl::unexpected<Fault> only_advises(std::string_view instead) {
  return fault(
      FaultKind::Forbidden,
      fmt::format("this Berth advises only and changes nothing in Slurm: use {}", instead));
}

std::string_view command_for(Verb verb) {
  switch (verb) {
    case Verb::Cancel: return "scancel";
    case Verb::Hold: return "scontrol hold";
    case Verb::Release: return "scontrol release";
    case Verb::Requeue: return "scontrol requeue";
    case Verb::Suspend: return "scontrol suspend";
    case Verb::Resume: return "scontrol resume";
    case Verb::Signal: return "scancel --signal=";
  }
  return "scontrol";
}

std::string id_text(JobNumber number) {
  const JobNumber array = number >> 32U;
  return array != 0 ? fmt::format("{}_{}", array, number & 0xffffffffU) : fmt::format("{}", number);
}

}  // namespace

AdviseService::AdviseService(Parts parts)
    : parts_(std::move(parts)),
      started_(parts_.wall()),
      poller_({.link = parts_.link,
               .log = parts_.log,
               .options = parts_.poll,
               .wall = parts_.wall,
               .changed = [this](const Sight& sight, const JobChange& change) {
                 tell(sight, change);
               }}) {}

// --- who sees what

/// What Slurm hides from users Berth hides from them too, even where it may see more itself.
bool AdviseService::sees_all(const Caller& caller, const Sight& sight) const {
  if (caller.role != Role::User) return true;
  const auto hidden = names_in(sight.config.value("PrivateData"));
  return std::ranges::find(hidden, "jobs") == hidden.end();
}

bool AdviseService::may_see(const Caller& caller, const Sight& sight, const slurm::Job& job) const {
  return job.user == caller.user || sees_all(caller, sight);
}

Caller AdviseService::caller_of_peer(std::uint32_t uid, std::uint32_t gid) {
  Caller caller{.user = name_of_uid(uid), .uid = uid, .gid = gid};
  const auto& options = parts_.options;
  if (options.operators.contains(caller.user)) caller.role = Role::Operator;
  if (uid == 0 || uid == geteuid() || options.admins.contains(caller.user))
    caller.role = Role::Admin;
  return caller;
}

// --- looking

Answer<JobPage> AdviseService::jobs(const Caller& caller, const JobFilter& filter) {
  const SightPtr sight = poller_.sight();
  const std::int64_t wall = parts_.wall();
  const std::size_t limit = std::clamp<std::size_t>(filter.limit, 1, kMostPerPage);
  JobPage page;
  for (const FoundJob& found : candidates(*sight, filter)) {
    const slurm::Job& job = *found.job;
    if (!may_see(caller, *sight, job) || !is_wanted(job, filter)) continue;
    ++page.total;
    if ((filter.after && job.key.job <= *filter.after) || page.next) continue;
    if (page.jobs.size() == limit) {
      page.next = page.jobs.back().number;
      continue;
    }
    page.jobs.push_back(view_of(job, *sight, wall));
    show_one_task(page.jobs.back(), found);
  }
  auto query = past_part(filter);
  if (!query) return page;
  std::erase_if(query->numbers,
                [&](JobNumber number) { return find_job(*sight, number).job != nullptr; });
  if (query->numbers.empty() && !filter.numbers.empty()) return page;
  auto ended = past(caller, *sight, *std::move(query));
  if (!ended) return tl::unexpected<Fault>(std::move(ended).error());
  std::vector<JobView> views;
  for (const slurm::Job& job : *ended) views.push_back(view_of(job, *sight, wall));
  const std::size_t total = views.size();
  add_past(page, std::move(views), total, limit);
  return page;
}

PastSource AdviseService::past_source(const Sight& sight) {
  return {.books = keeps_accounting(sight.config) ? &parts_.books : nullptr,
          .seen = [this] { return poller_.ended(); }};
}

Answer<std::vector<slurm::Job>> AdviseService::past(const Caller& caller, const Sight& sight,
                                                    PastQuery query) {
  if (!sees_all(caller, sight)) {
    if (query.user && *query.user != caller.user) return std::vector<slurm::Job>{};
    query.user = caller.user;
  }
  auto jobs = past_jobs(past_source(sight), query, parts_.wall());
  if (!jobs)
    return fault(FaultKind::Unavailable,
                 fmt::format("Slurm's accounting does not answer: {}", jobs.error().text()));
  return *std::move(jobs);
}

Answer<slurm::Job> AdviseService::find(const Caller& caller, const Sight& sight, JobNumber number) {
  if (const FoundJob found = find_job(sight, number); found.job != nullptr) {
    if (!may_see(caller, sight, *found.job)) return not_found(number);
    slurm::Job job = *found.job;
    if (found.task) job.array_tasks = fmt::format("{}", *found.task);
    return job;
  }
  PastQuery query;
  query.numbers = {number};
  query.order = PastQuery::Order::Number;
  auto ended = past(caller, sight, query);
  if (!ended) return tl::unexpected<Fault>(std::move(ended).error());
  // sacct tells all tasks of an array whose id is asked for.
  const auto same = std::ranges::find(*ended, number,
                                      [](const slurm::Job& job) { return JobNumber{job.key.job}; });
  if (same != ended->end()) return *same;
  if (!ended->empty()) return ended->front();
  return fault(FaultKind::NotFound, fmt::format("there is no job {}", id_text(number)));
}

Answer<JobView> AdviseService::job(const Caller& caller, JobNumber number) {
  const SightPtr sight = poller_.sight();
  const auto job = find(caller, *sight, number);
  if (!job) return tl::unexpected<Fault>(job.error());
  return view_of(*job, *sight, parts_.wall());
}

Answer<std::vector<AttemptView>> AdviseService::attempts(const Caller& caller, JobNumber number) {
  const auto view = job(caller, number);
  if (!view) return tl::unexpected<Fault>(view.error());
  if (view->started == 0) return std::vector<AttemptView>{};
  AttemptView last;
  last.id = fmt::format("{}.{}", view->number, view->attempts);
  last.where = view->where;
  last.begun = view->last_started;
  last.ended = view->ended;
  last.outcome = is_over(view->state) ? std::string{to_string(view->state)} : std::string{};
  last.exit_code = view->exit_code;
  last.signal = view->signal;
  last.gpu_seconds = view->gpu_seconds;
  last.why = view->reason;
  return std::vector<AttemptView>{std::move(last)};
}

/// Steps are between srun and Slurm.
Answer<JobStepsList> AdviseService::steps(const Caller&, const std::vector<JobNumber>&) {
  return JobStepsList{};
}

Answer<PastPage> AdviseService::history(const Caller& caller, const PastQuery& query) {
  const SightPtr sight = poller_.sight();
  PastQuery bounded = query;
  bounded.limit = std::clamp<std::size_t>(query.limit, 1, kMostPerPage);
  auto jobs = past(caller, *sight, bounded);
  if (!jobs) return tl::unexpected<Fault>(std::move(jobs).error());
  PastPage page;
  const bool more = jobs->size() > bounded.limit;
  if (more) jobs->resize(bounded.limit);
  const std::int64_t wall = parts_.wall();
  for (const slurm::Job& job : *jobs) page.jobs.push_back(view_of(job, *sight, wall));
  if (more) page.next = past_cursor_text({page.jobs.back().ended, page.jobs.back().number});
  return page;
}

Answer<std::string> AdviseService::why(const Caller& caller, JobNumber number) {
  const SightPtr sight = poller_.sight();
  const auto job = find(caller, *sight, number);
  if (!job) return tl::unexpected<Fault>(job.error());
  const std::int64_t wall = parts_.wall();
  WhyQuestion question{
      .sight = *sight, .job = *job, .wall = wall, .may_see_all = sees_all(caller, *sight)};
  if (wants_limits(*job) && keeps_accounting(sight->config)) {
    auto limits =
        parts_.books.limits({.user = job->user, .account = job->account, .qos = job->qos});
    if (limits) question.limits = *std::move(limits);
  }
  Why told = explain_slurm(question);
  if (job->phase == slurm::JobPhase::Pending && !job->completing) {
    const std::lock_guard lock{explaining_};
    auto advice = ask_policy(
        {.sight = *sight, .job = *job, .wall = wall, .may_see_all = question.may_see_all},
        parts_.options.scheduling);
    for (WhyReason& reason : advice) told.reasons.push_back(std::move(reason));
  }
  told.user = job->user;
  told.is_yours = job->user == caller.user;
  told.age_seconds = std::max<std::int64_t>(0, (wall - sight->at) / kMicro);
  return to_json(told);
}

ClusterView AdviseService::cluster(const Caller&) {
  const SightPtr sight = poller_.sight();
  const PollFigures figures = poller_.figures();
  const std::int64_t wall = parts_.wall();
  ClusterView view;
  view.name = sight->config.value("ClusterName");
  view.policy = parts_.options.scheduling.policy.policy;
  view.settings = parts_.options.scheduling.policy.settings;
  view.settings.emplace_back(
      "engine", fmt::format("Slurm {}, which decides; the policy only advises",
                            sight->version ? to_string(*sight->version) : "of unknown version"));
  view.version = parts_.options.version;
  view.started = started_;
  view.uptime_seconds = static_cast<double>(wall - started_) / static_cast<double>(kMicro);
  for (const slurm::Job& job : sight->all_jobs()) {
    const LiveState state = live_state(job);
    if (is_over(state)) continue;
    const std::size_t count = std::max<std::size_t>(1, tasks_of(job).size());
    (is_waiting(state) ? view.pending : view.running) += count;
    if (state == LiveState::Held) view.held += count;
  }
  for (const NodeView& node : node_views(*sight)) {
    view.gpus += node.gpus;
    view.gpus_used += node.gpus_used;
  }
  for (const slurm::Partition& partition : sight->partitions) {
    const auto at = partition.is_default ? view.queues.begin() : view.queues.end();
    view.queues.insert(at, {.name = partition.name, .max_time_limit = partition.max_time});
  }
  view.passes = figures.polls;
  view.last_pass_seconds = figures.last_seconds;
  view.worst_pass_seconds = figures.worst_seconds;
  view.trouble = fmt::format("{}", fmt::join(poller_.troubles(), "; "));
  return view;
}

std::vector<NodeView> AdviseService::nodes(const Caller& caller) {
  const SightPtr sight = poller_.sight();
  std::vector<NodeView> views = node_views(*sight);
  if (sees_all(caller, *sight)) return views;
  for (NodeView& view : views)  // that a device is in use is no secret, by whom is
    for (auto& device : view.devices)
      std::erase_if(device, [&](JobNumber number) {
        const FoundJob found = find_job(*sight, number);
        return found.job == nullptr || found.job->user != caller.user;
      });
  return views;
}

std::vector<ShareView> AdviseService::shares(const Caller& caller) {
  const SightPtr sight = poller_.sight();
  std::map<std::pair<std::string, std::string>, ShareView> by_name;
  const auto count = [&](const char* kind, const std::string& name, const slurm::Job& job) {
    if (name.empty()) return;
    ShareView& share = by_name[{kind, name}];
    share.kind = kind;
    share.name = name;
    const bool waits = is_waiting(live_state(job));
    (waits ? share.waiting : share.jobs_now) +=
        static_cast<std::int32_t>(std::max<std::size_t>(1, tasks_of(job).size()));
    if (!waits) share.gpus_now += job.gpus();
  };
  for (const slurm::Job& job : sight->all_jobs()) {
    if (is_over(live_state(job)) || !may_see(caller, *sight, job)) continue;
    count("user", job.user, job);
    count("group", job.account, job);
  }
  std::vector<ShareView> shares;
  for (auto& [key, share] : by_name) shares.push_back(std::move(share));
  return shares;
}

std::string AdviseService::metrics() {
  const SightPtr sight = poller_.sight();
  return advise_metrics({.sight = *sight,
                         .cluster = cluster({}),
                         .figures = poller_.figures(),
                         .wall = parts_.wall()});
}

void AdviseService::tell(const Sight&, const JobChange& change) {
  const slurm::Job& job = change.job;
  JobEvent body{.job = job.key.job,
                .name = job.name,
                .user = job.user,
                .state = live_state(job),
                .what = change.what,
                .at = parts_.wall(),
                .reason = is_waiting(live_state(job)) ? job.reason : std::string{}};
  if (is_over(body.state)) {
    body.exit_code = job.exit_code;
    body.signal = job.signal;
  }
  events_.tell(
      {.kind = "job", .job = body.job, .user = body.user, .json = wire::to_sorted_json(body)});
}

// --- changing

Answer<Submitted> AdviseService::submit(const Caller&, JobSpec) { return only_advises("`sbatch`"); }
void AdviseService::submit_async(const Caller& caller, JobSpec spec,
                                 std::function<void(Answer<Submitted>)> done) {
  done(submit(caller, std::move(spec)));
}
Answer<Foreseen> AdviseService::test(const Caller&, JobSpec) {
  return only_advises("`sbatch --test-only`");
}

Answer<std::vector<VerbResult>> AdviseService::act(const Caller&, Verb verb, const JobFilter& which,
                                                   const std::string&, SentSignal signal) {
  std::string command{command_for(verb)};
  if (verb == Verb::Signal) command += fmt::format("{}", signal.number);
  std::vector<std::string> ids;
  for (const JobNumber number : which.numbers) {
    if (ids.size() == 10) break;  // whoever names more knows how it goes on
    ids.push_back(id_text(number));
  }
  return only_advises(fmt::format("`{} {}`", command,
                                  ids.empty() ? "JOB" : fmt::format("{}", fmt::join(ids, " "))));
}

Answer<void> AdviseService::join(const Caller&, JobNumber job, std::int32_t) {
  return only_advises(fmt::format("`srun --jobid={} --overlap --pty`", job));
}
Answer<JobView> AdviseService::change(const Caller&, JobNumber job, const std::string&) {
  return only_advises(fmt::format("`scontrol update JobId={} …`", id_text(job)));
}
Answer<NodeView> AdviseService::set_node(const Caller&, const std::string& node,
                                         const std::string& state, const std::string&) {
  const std::string_view word = state == "drain" ? "DRAIN" : state == "down" ? "DOWN" : "RESUME";
  return only_advises(fmt::format("`scontrol update NodeName={} State={}{}`", node, word,
                                  state == "resume" ? "" : " Reason=…"));
}
Answer<ClusterView> AdviseService::set_policy(
    const Caller&, const std::string& policy,
    const std::vector<std::pair<std::string, std::string>>&) {
  return only_advises(
      fmt::format("`berth serve --engine slurm --advise --policy {}` for another advice", policy));
}
Answer<ShareView> AdviseService::set_share(const Caller&, const ShareView& share) {
  return only_advises(fmt::format("`sacctmgr modify {} {} set …`",
                                  share.kind == "group" ? "account" : "user", share.name));
}
Answer<std::string> AdviseService::make_token(const Caller&, const TokenView&) {
  return only_advises("its socket: it keeps no tokens");
}
Answer<std::vector<TokenView>> AdviseService::tokens(const Caller&) {
  return std::vector<TokenView>{};
}
Answer<void> AdviseService::revoke_token(const Caller&, const std::string&) {
  return only_advises("its socket: it keeps no tokens");
}

}  // namespace berth::advise
