#include "daemon/scheduler.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "base/check_scope.h"
#include "daemon/explain.h"
#include "daemon/live_engine_parts.h"
#include "model/job_spec_json.h"

namespace berth {

namespace {

/// Who decides when the chosen policy cannot.
constexpr const char* kPlainest = "fifo";
/// So many jobs that made engines fail one after the other say more of the policy than of the jobs.
constexpr std::size_t kMostBlamed = 4;
/// The first failure without a known cause makes us careful; then a policy is done with.
constexpr int kMostUnblamed = 3;
constexpr std::uint64_t kEnoughPasses = 1'000;

/// It reads how much work jobs have left, or how fast they run.
bool minds_rates(const Policy& policy) {
  return includes(policy.traits().needs, Need::RunTime | Need::Profile | Need::Reports) ||
         policy.traits().shares_devices;
}

WaitCode code_of(const FullLimit& full) {
  switch (full.of) {
    case FullLimit::Of::Gpus: return full.is_groups ? WaitCode::GroupGpus : WaitCode::UserGpus;
    case FullLimit::Of::Jobs: return full.is_groups ? WaitCode::GroupJobs : WaitCode::UserJobs;
    case FullLimit::Of::GpuTime: break;
  }
  return WaitCode::GpuTime;
}

WaitCode code_of(GateKind gate, const Gates& gates, JobNumber job) {
  switch (gate) {
    case GateKind::Hold:  // who holds it the board knows
    case GateKind::Suspension: break;
    case GateKind::Begin: return WaitCode::BeginTime;
    case GateKind::RetryDelay: return WaitCode::Retry;
    case GateKind::Dependency:
      return gates.is_kept_unmet(job) ? WaitCode::DependencyNever : WaitCode::Dependency;
    case GateKind::Array: return WaitCode::ArrayLimit;
    case GateKind::Fit: return WaitCode::TooSmall;
    case GateKind::Quota:
      if (const auto full = gates.full_limit(job)) return code_of(*full);
      break;
  }
  return WaitCode::None;
}

}  // namespace

NodeService node_service_from(const std::string& value) noexcept {
  if (value.starts_with("drained")) return NodeService::Drained;
  return value.starts_with("down") ? NodeService::Down : NodeService::Up;
}

void Scheduler::set_options(const SchedulerOptions& options) {
  const SchedulerOptions before = std::exchange(parts_.options, options);
  if (!running_) return;
  const bool goes_on = make_the_same_engine(before, options) && is_same(choice(), running_with_);
  if (parts_.log != nullptr)
    BERTH_LOG(*parts_.log, Info, "scheduler",
              goes_on ? "the engine goes on: nothing it depends on has changed"
                      : "a new engine takes over: what it is made of has changed",
              {"policy", choice().policy});
  if (goes_on)
    parts_.supervisor.set_rules(rules());
  else
    running_->executor.renew();
}

/// Of the options as they are now, and the policy that decides.
JobSupervisor::Rules Scheduler::rules() const {
  JobSupervisor::Rules rules{.min_run = std::chrono::seconds{parts_.options.min_run},
                             .policy_retries = policy_retries_,
                             .is_queue_elsewhere = parts_.host.keeps_queue};
  if (parts_.training != nullptr)
    rules.saves = [this](JobNumber job) { return parts_.training->has_saved(job); };
  if (parts_.options.training_answer > 0) rules.training = parts_.training;
  rules.answer = std::chrono::seconds{parts_.options.training_answer};
  return rules;
}

Result<void> Scheduler::run() {
  learnt_.emplace(parts_.board.settings());
  const std::int64_t now = parts_.clock.wall() / 1'000'000;
  for (const auto& [key, kind] : learnt_->kinds()) {
    if (parts_.hub != nullptr && !kind.cores.empty())
      parts_.hub->recall(key, kind.cores,
                         static_cast<double>(std::max<std::int64_t>(0, now - kind.at)));
  }
  for (;;) {
    BERTH_TRY(const Next next, run_engine());
    if (next == Next::Stop) return {};
  }
}

/// What a failed engine leaves is thrown away, except what the supervisor has heard meanwhile: that
/// goes on record before the next engine reads it.
Result<Scheduler::Next> Scheduler::begin_anew(const std::string& why,
                                              std::optional<JobNumber> suspect) {
  trust_.good_passes = 0;
  parts_.supervisor.end_engine();
  const bool is_known = suspect && parts_.board.find(*suspect);
  {
    const std::lock_guard lock{figures_mutex_};
    ++figures_.failures;
  }
  if (is_known) {
    if (parts_.log != nullptr)
      BERTH_LOG(*parts_.log, Error, "scheduler", "a job made the engine fail and is set aside",
                {"job", *suspect}, {"why", why});
    trust_.blamed.push_back(*suspect);
    if (trust_.blamed.size() >= kMostBlamed && !trust_.has_fallen_back)
      fall_back(why);
    else
      parts_.supervisor.set_aside(*suspect, why);
  } else {
    if (parts_.log != nullptr)
      BERTH_LOG(*parts_.log, Error, "scheduler", "the engine failed, and no job is known to be why",
                {"why", why}, {"failures", trust_.unblamed + 1});
    trust_.is_careful = true;
    if (++trust_.unblamed >= kMostUnblamed) {
      if (trust_.has_fallen_back)
        return fail(fmt::format("the engine fails again and again: {}", why));
      fall_back(why);
    }
  }
  BERTH_TRY_VOID(parts_.supervisor.flush());
  return Next::Renew;
}

/// So many jobs cannot all be wrong: they are let go again, and the policy is taken for what is.
void Scheduler::fall_back(const std::string& why) {
  if (parts_.log != nullptr)
    BERTH_LOG(*parts_.log, Error, "scheduler",
              "the policy fails again and again: the plainest one decides until another is set",
              {"policy", choice().policy}, {"instead", kPlainest}, {"why", why});
  for (const JobNumber job : std::exchange(trust_.blamed, {})) parts_.supervisor.let_go(job);
  trust_.has_fallen_back = true;
  trust_.unblamed = 0;
}

/// An engine that has done well for long owes nobody an explanation any more.
void Scheduler::trust_again() {
  trust_.blamed.clear();
  trust_.unblamed = 0;
  trust_.is_careful = false;
}

PolicyChoice Scheduler::choice() const {
  if (trust_.has_fallen_back) return {.policy = kPlainest};
  if (const auto setting = parts_.board.setting("policy")) {
    if (auto choice = policy_choice_from(*setting)) return *std::move(choice);
  }
  return parts_.options.policy;
}

NodeService Scheduler::service_of(NodeId node) const {
  const auto setting = parts_.board.setting("node/" + parts_.cluster.nodes[node.value].name);
  return setting ? node_service_from(*setting) : NodeService::Up;
}

std::set<NodeId> Scheduler::out_of_service() const {
  std::set<NodeId> nodes;
  for (std::uint32_t i = 0; i < parts_.cluster.nodes.size(); ++i) {
    if (service_of(NodeId{i}) != NodeService::Up) nodes.insert(NodeId{i});
  }
  return nodes;
}

/// An engine that would be the same as the last one goes on where that one stood.
EngineMemory Scheduler::recall(const PolicyChoice& chosen) {
  const SchedulerOptions& options = parts_.options;
  EngineMemory fresh;
  fresh.identity =
      fmt::format("{} {} {} {} {} {} {} {}", to_text(chosen), options.placement,
                  live_estimator(options.estimator, chosen), options.cpu, options.power,
                  options.seed, to_text(options.beliefs), fingerprint(parts_.cluster));
  fresh.wall = parts_.clock.wall();
  fresh.slots = 2 * parts_.board.all().size() + options.spare_slots;
  if (!std::exchange(is_first_, false)) return fresh;
  auto left = parts_.store.engine();
  if (!left || left->size() < 2) return fresh;
  std::vector<std::string> passes;
  for (LoggedPass& pass : *left) passes.push_back(std::move(pass.bytes));
  auto recalled = engine_memory_from(std::move(passes));
  if (!recalled || recalled->identity != fresh.identity) return fresh;
  return *std::move(recalled);
}

void Scheduler::log_replayed(std::size_t passes) const {
  if (parts_.log != nullptr)
    BERTH_LOG(*parts_.log, Info, "scheduler", "the engine goes on where the last one stood",
              {"passes", passes});
}

SettingEffect Scheduler::apply(const SettingRecord& setting, Gates& gates) {
  if (setting.key == "policy") {
    trust_.has_fallen_back = false;
    trust_again();
    const bool is_another = !is_same(choice(), running_with_);
    if (!is_another) {  // what is in effect changes nothing
      const std::lock_guard lock{figures_mutex_};
      figures_.setting = parts_.board.setting("policy").value_or("");
    }
    return {.renew = is_another};
  }
  if (setting.key.starts_with("share/")) {
    shares_.set_limits(gates);
    return {.shares = shares_.has_news()};  // else it is said already
  }
  if (!setting.key.starts_with("node/")) return {};
  for (std::uint32_t i = 0; i < parts_.cluster.nodes.size(); ++i) {
    if (parts_.cluster.nodes[i].name == setting.key.substr(5))
      return {.node = std::pair{NodeId{i}, node_service_from(setting.value)}};
  }
  return {};
}

/// What is over teaches what to expect; a restart forgets nothing that still matters.
void Scheduler::learn(Estimator& estimator, Trace& trace, std::int64_t until_wall) const {
  PastQuery query;
  query.until_wall = until_wall;
  query.outcomes = {Outcome::Completed, Outcome::Failed, Outcome::TimedOut};
  query.limit = parts_.options.learn_from;
  auto past = parts_.store.past_jobs(query);
  if (!past) return;
  for (const PastJob& job : std::views::reverse(*past)) {  // oldest first
    TraceJob known;
    static_cast<JobRequest&>(known) =
        request_of(*job.job.spec, job.job.number, job.job.submitted, trace.names);
    estimator.learn(known, seconds_to_duration(job.job.run_seconds));
  }
}

Result<Scheduler::Next> Scheduler::run_engine() {
  const std::string made_of = parts_.board.setting("policy").value_or("");
  PolicyChoice chosen = choice();
  Trace slots;
  auto made = make_policy_of(chosen, parts_.options);
  if (!made) {  // the setting is of another version, or by a way around the service
    fall_back(made.error().text());
    chosen = choice();
    made = make_policy_of(chosen, parts_.options);
  }
  running_with_ = chosen;
  EngineMemory memory = recall(chosen);
  BERTH_TRY(auto policy, std::move(made));
  if (parts_.around_policy) policy = parts_.around_policy(std::move(policy));
  const bool switches = parts_.power != nullptr && can_switch_any(parts_.cluster);
  BERTH_TRY(const auto made_parts, make_live_engine_parts({.options = parts_.options,
                                                           .choice = chosen,
                                                           .cluster = parts_.cluster,
                                                           .hub = parts_.hub,
                                                           .switches_nodes = switches},
                                                          std::move(policy)));
  LiveEngineParts& its = *made_parts;

  const std::vector<LedgerJob> jobs = parts_.board.all();
  slots.source = "live";
  slots.jobs.resize(memory.slots);
  its.estimator.begin(slots);
  learn(its.estimator, slots, memory.wall);
  Gates gates{[&](JobNumber job) -> std::optional<Outcome> {
                const auto past = parts_.store.past(job);
                if (!past || !*past) return std::nullopt;
                return (*past)->outcome;
              },
              [&](JobNumber job) -> std::optional<PastJob> {
                auto past = parts_.store.past(job);
                if (!past || !*past) return std::nullopt;
                return *std::move(*past);
              }};
  shares_.set_limits(gates);
  BERTH_TRY_VOID(shares_.set_uses(gates, parts_.options.half_life));
  LiveExecutor executor{
      {.slots = slots,
       .cluster = parts_.cluster,
       .messages = parts_.messages,
       .supervisor = parts_.supervisor,
       .gates = gates,
       .clock = parts_.clock,
       .job = [&](JobNumber job) { return parts_.board.find(job); },
       .setting = [&](const auto& setting) { return apply(setting, gates); },
       .entitlements = [&] { return shares_.entitlements(*its.policy); },
       .pass_done = [&](Time now) { pass_done(now); },
       .training = parts_.training,
       .believed = &*its.believed,
       .learnt = &*learnt_,
       .lengths = &its.estimator,
       .before_writing = [this] { keep_what_was_learnt(); },
       .policy_minds_rates = minds_rates(*its.policy),
       .costs = parts_.options.beliefs.costs,
       .show_progress = [&](JobNumber job,
                            const ProgressEstimate& progress) { show(job, progress); },
       .power = parts_.power,
       .manages_power = its.manages_power(),
       .one_at_a_time = trust_.is_careful,
       .can = live_abilities(parts_.training != nullptr, switches, parts_.host)}};
  EngineLog log{
      {.executor = executor, .observer = executor, .slots = slots, .keep = [&](std::string pass) {
         memory.bytes += pass.size();
         ++memory.length;
         parts_.supervisor.note_pass({.bytes = std::move(pass)});
       }}};
  Engine engine{{.trace = slots,
                 .cluster = parts_.cluster,
                 .policy = *its.policy,
                 .placement = *its.placement,
                 .estimator = its.estimator,
                 .executor = log,
                 .believed = *its.believed,
                 .observer = &log,
                 .tuner = its.tuner.get(),
                 .power = its.power.get(),
                 .seed = parts_.options.seed,
                 .open = true,
                 .cores_beside = true}};
  policy_retries_ = its.policy->traits().decides_retries;
  parts_.supervisor.begin_engine(rules());
  executor.watch(engine);
  its.speeds.watch(executor, log);
  shares_.begin_engine(*its.policy, memory.is_recalled());
  const std::size_t replayed = memory.passes.size();
  if (memory.is_recalled()) {
    log.replay(std::move(memory.passes), [&] {
      shares_.recall(log.last_shares());
      executor.resume({.jobs = jobs,
                       .service_of = [this](NodeId node) { return service_of(node); },
                       .reasons_of = [&](JobId job) { return log.last_reasons(job); },
                       .has_new_shares = shares_.has_news()});
      log_replayed(replayed);
    });
  } else {
    parts_.supervisor.note_pass({.begins = true, .bytes = to_bytes(memory)});
    executor.begin(jobs, out_of_service());
  }
  running_.emplace(Running{engine, slots, executor, gates, memory});
  {
    const std::lock_guard lock{figures_mutex_};
    ++figures_.engines;
    figures_.policy = chosen.policy;
    figures_.setting = made_of;
    figures_.may_refuse = its.policy->traits().may_refuse;
    figures_.has_fallen_back = trust_.has_fallen_back;
  }
  Result<void> ended;
  std::optional<std::string> failure;
  try {
    const CheckScope here{OnBrokenInvariant::Throw};
    ended = engine.run();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  running_.reset();
  if (failure && log.is_replaying()) {  // nothing was carried out: the next one begins anew
    if (parts_.log != nullptr)
      BERTH_LOG(*parts_.log, Warn, "scheduler",
                "the engine cannot go on where the last one stood, and begins anew",
                {"policy", chosen.policy}, {"why", *failure});
    return Next::Renew;
  }
  if (failure) {
    std::optional<JobNumber> suspect;
    if (engine.handling()) suspect = executor.number_of(*engine.handling());
    if (!suspect && executor.newcomers().size() == 1) suspect = executor.newcomers().front();
    return begin_anew(*failure, suspect);
  }
  if (!ended) return tl::unexpected<Error>(ended.error());
  if (executor.over() == LiveExecutor::Over::Failed) return tl::unexpected<Error>(executor.error());
  return executor.over() == LiveExecutor::Over::Stop ? Next::Stop : Next::Renew;
}

Why Scheduler::explain(const JobView& job, bool may_see_all) const {
  AskedJob asked{.job = job,
                 .shut = running_->gates.shut(job.number, parts_.clock.now()),
                 .may_see_all = may_see_all,
                 .is_frozen = running_->gates.is_frozen(job.number)};
  for (const HeldStart& start : parts_.supervisor.held_starts()) {
    if (start.job == job.number) asked.held_start = start;
  }
  // Not even in a copy is an engine asked to bear what no job can have.
  std::optional<LedgerJob> record;
  if (!running_->executor.slot_of(job.number) && impossible_numbers(*job.spec).empty())
    record = parts_.board.find(job.number);
  return explain_in_a_copy({running_->engine, running_->slots, running_->executor, parts_.clock},
                           asked, record);
}

Why Scheduler::foresee(const JobSpec& spec) const {
  JobView view;
  view.spec = std::make_shared<const JobSpec>(spec);
  view.state = LiveState::Pending;
  LedgerJob job;
  job.spec = view.spec;
  job.submitted = parts_.clock.now();
  const AskedJob asked{.job = view, .shut = running_->gates.shut_by_limits(spec)};
  return explain_in_a_copy({running_->engine, running_->slots, running_->executor, parts_.clock},
                           asked, job);
}

std::optional<std::string> Scheduler::refusal_of(const JobSpec& spec) const {
  LedgerJob job;
  job.spec = std::make_shared<const JobSpec>(spec);
  job.submitted = parts_.clock.now();
  return refusal_in_a_copy({running_->engine, running_->slots, running_->executor, parts_.clock},
                           job);
}

void Scheduler::pass_done(Time now) {
  Gates& gates = running_->gates;
  const Engine& engine = running_->engine;
  std::vector<JobNumber> looked_at;
  gates.take_looked_at(looked_at);
  for (const JobNumber job : looked_at) {
    const auto shut = gates.shut(job, now);
    parts_.board.note(job, [&](JobNote& note) {
      note.is_blocked = !shut.empty();
      note.waits_because = shut.empty() ? std::string{} : shut.front().text;
      note.code = shut.empty() ? WaitCode::None : code_of(shut.front().kind, gates, job);
    });
  }
  for (const JobNumber job : parts_.supervisor.take_started()) {
    const Attempt* attempt = parts_.supervisor.alive(job);
    if (attempt == nullptr) continue;
    parts_.board.note(job, [&](JobNote& note) {
      note.pid = attempt->pid;
      note.is_running = true;
    });
  }
  if (++trust_.good_passes == kEnoughPasses) trust_again();
  if (running_->memory.is_too_long()) running_->executor.renew();
  tell_held_starts();
  tell_meter(now);
  parts_.board.set_free(engine.cluster().free_gpus());
  const double seconds = running_->executor.pass_seconds();
  const std::lock_guard lock{figures_mutex_};
  ++figures_.passes;
  figures_.last_pass_seconds = seconds;
  figures_.worst_pass_seconds = std::max(figures_.worst_pass_seconds, seconds);
  figures_.gpus = engine.cluster().usable_gpus();
  figures_.gpus_free = engine.cluster().free_gpus();
}

void Scheduler::keep_what_was_learnt() {
  if (parts_.hub != nullptr) {
    std::vector<std::pair<std::string, CorePoints>> curves;
    parts_.hub->take_remembered(curves);
    for (const auto& [kind, points] : curves)
      learnt_->learn_cores(kind, points, parts_.clock.wall() / 1'000'000);
  }
  std::vector<RecordBody> records;
  learnt_->take_records(records);
  for (RecordBody& record : records) parts_.supervisor.note(std::move(record));
}

void Scheduler::show(JobNumber job, const ProgressEstimate& progress) {
  const std::int64_t wall = parts_.clock.wall() + (progress.at - parts_.clock.now()).count();
  parts_.board.note(job, [&](JobNote& note) {
    note.progress = progress;
    note.progress_wall = wall;
  });
}

void Scheduler::tell_meter(Time now) {
  if (parts_.energy == nullptr) return;
  std::vector<EnergyMeter::Held> held;
  for (const auto& [job, attempt] : parts_.supervisor.attempts()) {
    if (!parts_.energy->knows(job)) {
      const auto record = parts_.board.find(job);
      parts_.energy->set_user(job, record ? record->spec->user : std::string{});
    }
    for (const Slice& slice : attempt.slices)
      held.push_back({.job = job, .node = slice.node, .devices = slice.devices});
  }
  parts_.energy->observe(now, std::move(held),
                         parts_.power != nullptr
                             ? node_uses(*parts_.power, parts_.cluster)
                             : std::vector<NodeUse>(parts_.cluster.nodes.size(), NodeUse::Idle));
}

/// To the policy they run already; people see what they wait for.
void Scheduler::tell_held_starts() {
  std::map<JobNumber, std::string> now;
  for (const HeldStart& start : parts_.supervisor.held_starts()) now[start.job] = start.why;
  for (const auto& [job, why] : held_starts_) {
    if (now.contains(job)) continue;
    parts_.board.note(job, [&](JobNote& note) {
      if (note.waits_because == why) note.waits_because.clear();
    });
  }
  for (const auto& [job, why] : now)
    parts_.board.note(job, [&](JobNote& note) { note.waits_because = why; });
  held_starts_ = std::move(now);
}

SchedulerFigures Scheduler::figures() const {
  const std::lock_guard lock{figures_mutex_};
  return figures_;
}

}  // namespace berth
