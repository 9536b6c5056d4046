#include "daemon/daemon.h"

#include <sched.h>

#include <algorithm>
#include <atomic>

#include <nlohmann/json.hpp>

#include "base/log_limit.h"
#include "base/prometheus.h"
#include "daemon/energy_sampler.h"
#include "daemon/launch.h"
#include "daemon/life_log.h"
#include "daemon/training_gateway.h"
#include "daemon/use_phases.h"
#include "exec/spawn_shim.h"

namespace berth {

namespace {

std::vector<std::int32_t> cores_of_this_machine() {
  std::vector<std::int32_t> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(static_cast<std::int32_t>(core));
  }
  return cores;
}

/// How far the engine's clock was when the last life began, and by which boot.
constexpr const char* kClockSetting = "clock";

/// `last_pass`: of the engine, which writes nothing into the journal by itself.
LiveClock clock_after(const ClockSource& source, const Ledger& ledger, Time last_pass) {
  const Time last = std::max(ledger.now(), last_pass);
  const auto found = ledger.settings().find(kClockSetting);
  if (found != ledger.settings().end()) {
    const auto json = nlohmann::json::parse(found->second, nullptr, false);
    if (json.is_object() && json.value("boot_id", "") != "") {
      return LiveClock{source, last, json.value("boot_id", ""), json.value("boot", std::int64_t{0}),
                       Time{Duration{json.value("at", std::int64_t{0})}}};
    }
  }
  return LiveClock{source, last};
}

bool shares_cores_by_curves(const SchedulerOptions& options) {
  return options.cpu.starts_with("aware");
}

/// What the engine has to hear of; what it wrote itself it knows.
bool is_news(const RecordBody& body) {
  if (const auto* wish = std::get_if<WishRecord>(&body)) return wish->by != kSchedulerName;
  return std::holds_alternative<SubmitRecord>(body) || std::holds_alternative<ChangeRecord>(body) ||
         std::holds_alternative<SettingRecord>(body);
}

}  // namespace

struct Daemon::Parts {
  Parts(DaemonOptions given, Logger& logger, std::unique_ptr<SqliteStore> opened, Ledger ledger,
        Time last_pass)
      : options(std::move(given)),
        log(logger),
        store(std::move(opened)),
        clock(clock_after(source, ledger, last_pass)),
        messages(clock),
        generation(ledger.generation() + 1),
        last_known(ledger.now()),
        board(ledger),
        journal_writer(*store, std::move(ledger), clock,
                       [this](auto records) { publish(records); }) {}

  void publish(std::span<const Committed> records) {
    board.publish(records, clock.wall());
    for (const Committed& committed : records) {
      log_life(log, committed, board);
      if (is_news(committed.record.body)) messages.post(committed);
      if (gateway && committed.change.past) gateway->hub().forget(committed.change.job);
    }
  }
  void open_gateway();
  [[nodiscard]] Result<void> open_host();
  [[nodiscard]] Result<void> open_power();
  void open_energy();
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> extra_env(JobNumber job,
                                                                           AttemptId attempt) const;
  [[nodiscard]] Result<void> begin();
  void make_service();
  void note_trouble(std::string_view cause, std::string_view why);
  [[nodiscard]] std::size_t jobs_named(JobNumber job) const;
  [[nodiscard]] std::string trouble_metrics() const;

  DaemonOptions options;
  Logger& log;
  MachineClock source;
  std::unique_ptr<SqliteStore> store;
  LiveClock clock;
  BlockingMessageQueue messages;
  std::uint64_t generation;
  Time last_known;  // the last moment of the life before
  LogLimit limit;
  StatusBoard board;
  std::unique_ptr<TrainingGateway> gateway;  // told by the journal's thread: gone after it
  JournalWriter journal_writer;
  std::unique_ptr<JournalThread> journal;
  std::unique_ptr<Host> host;
  std::unique_ptr<JobSupervisor> supervisor;
  std::unique_ptr<PowerPrograms> programs;
  std::unique_ptr<NodePower> power;
  std::unique_ptr<EnergyMeter> energy;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<LiveService> service;
  std::atomic<bool> shares_cores = false;  // by curves: phases count
  std::mutex error_mutex;
  std::optional<Error> journal_error;
};

/// The generation is on disk before anything else happens: no attempt of this life can be mistaken
/// for one of another.
Result<void> Daemon::Parts::begin() {
  LifeRecord life;
  life.generation = generation;
  life.boot_id = source.boot_id();
  life.boot_clock = source.boot_micros();
  life.version = options.service.version;
  SettingRecord at;
  at.key = kClockSetting;
  at.value = nlohmann::json{{"boot_id", life.boot_id},
                            {"boot", life.boot_clock},
                            {"at", clock.now().time_since_epoch().count()}}
                 .dump();
  at.by = kSchedulerName;
  std::vector<RecordBody> first;
  first.emplace_back(std::move(life));
  first.emplace_back(std::move(at));
  BERTH_TRY_VOID(journal_writer.write(std::move(first)));
  std::vector<Message> heard;
  messages.take(heard);  // our own words

  open_gateway();
  journal = std::make_unique<JournalThread>(journal_writer, [this](const Error& error) {
    {
      const std::lock_guard lock{error_mutex};
      journal_error = error;
    }
    BERTH_LOG(log, Error, "journal", "cannot be written: leaving", {"why", error.text()});
    messages.post(StopOrder{});
  });
  if (options.helper.empty()) options.helper = own_program();
  BERTH_TRY_VOID(open_host());
  supervisor = std::make_unique<JobSupervisor>(JobSupervisor::Parts{
      .cluster = options.cluster,
      .host = *host,
      .journal = *journal,
      .clock = clock,
      .generation = generation,
      .job = [this](JobNumber job) { return board.find(job); },
      .order = [this](const LedgerJob& job, const Attempt& attempt) -> Result<LaunchOrder> {
        if (options.host) {
          LaunchOrder order;
          order.job = job.number;
          order.attempt = attempt.id;
          order.where = attempt.where;
          return order;
        }
        auto extra = extra_env(job.number, attempt.id);
        for (auto& variable : session_environment(*job.spec, options.admission.queues))
          extra.push_back(std::move(variable));
        auto order = launch_order(job, attempt, options.cluster, extra, options.containers);
        if (order) order->helper = options.helper;
        return order;
      },
      .machine_cores = options.host ? std::vector<std::int32_t>{} : cores_of_this_machine(),
      .seen_to_run =
          [this](Time since) {
            auto found = store->started_since(since);
            return found ? *std::move(found) : std::set<AttemptId>{};
          },
      .last_known = last_known,
      .log = &log,
      .joules = [this](JobNumber job, Time until) { return energy->take(job, until, clock.now()); },
      .show_cores =
          [this](JobNumber job, const std::vector<std::int32_t>& cores) {
            board.note(job, [&](JobNote& note) { note.cores = cores; });
          }});
  BERTH_TRY_VOID(open_power());
  open_energy();
  return {};
}

Result<void> Daemon::Parts::open_host() {
  const auto tell = [this](HostEvent event) { messages.post(std::move(event)); };
  if (options.host) {
    BERTH_TRY(host, options.host({.tell = tell,
                                  .ledger = journal_writer.ledger(),
                                  .journal = *journal,
                                  .board = board,
                                  .store = *store,
                                  .clock = clock,
                                  .cluster = options.cluster,
                                  .log = log,
                                  .limit = limit}));
    return {};
  }
  BERTH_TRY(host, LocalHost::open({.run_dir = options.run_dir,
                                   .shim = options.shim,
                                   .cgroup_roots = options.cgroup_roots,
                                   .log = &log,
                                   .limit = &limit},
                                  tell));
  return {};
}

Result<void> Daemon::Parts::open_power() {
  keep_on(options.cluster, options.power);
  if (can_switch_any(options.cluster)) {
    BERTH_TRY(programs,
              PowerPrograms::open([this](ProgramEnd end) { messages.post(std::move(end)); }));
  }
  const auto is_vacant = [this](NodeId node) {
    return std::ranges::none_of(supervisor->attempts(), [&](const auto& entry) {
      return std::ranges::any_of(entry.second.slices,
                                 [&](const Slice& slice) { return slice.node == node; });
    });
  };
  const auto& settings = journal_writer.ledger().settings();
  power = std::make_unique<NodePower>(
      NodePower::Parts{.cluster = options.cluster,
                       .options = options.power,
                       .runner = programs.get(),
                       .journal = *journal,
                       .clock = clock,
                       .generation = generation,
                       .is_vacant = is_vacant,
                       .log = &log,
                       .limit = &limit},
      std::map<std::string, std::string>(settings.begin(), settings.end()));
  return {};
}

/// Whoever holds devices now has held them since the life before looked last, and nodes have been
/// off or on since then as they are on record.
void Daemon::Parts::open_energy() {
  energy = std::make_unique<EnergyMeter>(
      options.cluster, EnergyMeter::Counters{.rapl = Rapl{options.power.powercap},
                                             .gpus = GpuEnergy{options.power.nvml_library}});
  std::vector<EnergyMeter::Held> held;
  for (const auto& [number, job] : journal_writer.ledger().jobs()) {
    if (!job.attempt) continue;
    energy->set_user(number, job.spec->user);
    for (const HeldDevices& part : job.attempt->where) {
      const auto node = std::ranges::find(options.cluster.nodes, part.node, &Node::name);
      if (node == options.cluster.nodes.end()) continue;
      EnergyMeter::Held& one = held.emplace_back();
      one.job = number;
      one.node = NodeId{static_cast<std::uint32_t>(node - options.cluster.nodes.begin())};
      one.since = job.attempt->since;
      for (const std::int32_t device : part.devices)
        one.devices |= std::uint64_t{1} << static_cast<std::uint32_t>(device);
    }
  }
  const auto& settings = journal_writer.ledger().settings();
  const auto kept = settings.find(kEnergySetting);
  energy->restore(kept == settings.end() ? std::string{} : kept->second, held,
                  node_uses(*power, options.cluster), clock.now());
  energy->set_keeper([this](std::string text) {
    journal->write_later(
        {.make = [text = std::move(text)](const Ledger&) -> Result<std::vector<RecordBody>> {
           std::vector<RecordBody> bodies;
           bodies.emplace_back(
               SettingRecord{.key = kEnergySetting, .value = text, .by = kSchedulerName});
           return bodies;
         },
         .done = {}});
  });
}

void Daemon::Parts::open_gateway() {
  if (options.training_socket.empty()) return;
  auto opened = TrainingGateway::open(
      options.training_socket, options.state_dir + "/training.key",
      {.board = board,
       .clock = clock,
       .wake = [this] { messages.post(Question{.ask = [] {}, .calls_for_pass = true}); },
       .cluster = options.cluster,
       .resized =
           [this](JobNumber job, const Resized& answer) {
             messages.post(ResizeAnswer{job, answer.id, answer.done});
           },
       .wake_for_rates = [this] { messages.post(Question{.ask = [] {}}); },
       .log = &log});
  if (opened) {
    gateway = *std::move(opened);
  } else {
    BERTH_LOG(log, Warn, "training", "training code will not be heard",
              {"why", opened.error().text()});
  }
}

std::vector<std::pair<std::string, std::string>> Daemon::Parts::extra_env(JobNumber job,
                                                                          AttemptId attempt) const {
  std::vector<std::pair<std::string, std::string>> env;
  if (options.extra_env) env = options.extra_env(job);
  if (gateway) {
    for (auto& variable : gateway->environment(job, attempt)) env.push_back(std::move(variable));
  }
  return env;
}

void Daemon::Parts::make_service() {
  board.set_paths([](const LedgerJob& job) { return output_paths(job); });
  scheduler =
      std::make_unique<Scheduler>(Scheduler::Parts{.store = *store,
                                                   .board = board,
                                                   .supervisor = *supervisor,
                                                   .messages = messages,
                                                   .clock = clock,
                                                   .cluster = options.cluster,
                                                   .options = options.live,
                                                   .training = gateway ? &gateway->hub() : nullptr,
                                                   .hub = gateway ? &gateway->hub() : nullptr,
                                                   .log = &log,
                                                   .power = power.get(),
                                                   .energy = energy.get(),
                                                   .host = options.host_traits});
  admission =
      std::make_unique<Admission>(options.cluster, options.live.placement, options.admission,
                                  [this](JobNumber job) { return jobs_named(job); });
  service = std::make_unique<LiveService>(LiveService::Parts{
      .board = board,
      .store = *store,
      .journal = *journal,
      .clock = clock,
      .scheduler = *scheduler,
      .admission = *admission,
      .cluster = options.cluster,
      .generation = generation,
      .ask_engine = [this](Question question) { messages.post(std::move(question)); },
      .signal =
          [this](JobNumber job, SentSignal signal) {
            const Attempt* attempt = supervisor->alive(job);
            if (attempt == nullptr) return;
            if (signal.shell_only)
              host->signal_shell(attempt->id, signal.number);
            else
              host->signal(attempt->id, signal.number);
          },
      .join = [this](AttemptId attempt, std::uint32_t request) { host->join(attempt, request); },
      .explain = [this](const JobView& job, bool all) { return scheduler->explain(job, all); },
      .more_metrics = [this] { return trouble_metrics() + energy->metrics(clock.now()); },
      .options = options.service,
      .note_trouble = [this](std::string_view cause,
                             std::string_view why) { note_trouble(cause, why); },
      .refusal_of = [this](const JobSpec& spec) { return scheduler->refusal_of(spec); },
      .foresee = [this](const JobSpec& spec) { return scheduler->foresee(spec); },
      .energy = energy.get(),
      .steps_of = [this](AttemptId attempt) { return host->steps(attempt); }});
}

/// How many jobs a dependency on this number waits for; 0: there never was such a job.
std::size_t Daemon::Parts::jobs_named(JobNumber job) const {
  const auto count = [&](const LedgerJob& found) -> std::size_t {
    const bool is_array = found.array == job && found.spec && found.spec->array;
    return is_array ? found.spec->array->indices.size() : 1;
  };
  if (const auto live = board.find(job)) return count(*live);
  const auto past = store->past(job);
  return past && *past ? count((*past)->job) : 0;
}

void Daemon::Parts::note_trouble(std::string_view cause, std::string_view why) {
  if (const auto unsaid = limit.admit(cause))
    BERTH_LOG(log, Error, "service", why, {"cause", cause}, {"unsaid", *unsaid});
}

std::string Daemon::Parts::trouble_metrics() const {
  PrometheusText text;
  text.family(PrometheusText::Kind::Counter, "berth_troubles_total",
              "What stood in the way of jobs, each time, by cause, in this life.");
  for (const auto& [cause, count] : limit.counts())
    text.sample(static_cast<double>(count), {{"cause", cause}});
  return text.str();
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Daemon::~Daemon() {
  if (parts_->journal) parts_->journal->stop();
}

Result<std::unique_ptr<Daemon>> Daemon::open(DaemonOptions options, Logger& log) {
  BERTH_TRY(auto store, SqliteStore::open({.directory = options.state_dir}));
  BERTH_TRY(Ledger ledger, store->recover());
  BERTH_TRY(const auto engine, store->engine());
  const Time last_pass = engine.empty() ? Time{} : engine.back().at;
  const std::size_t jobs = ledger.jobs().size();
  auto parts = std::make_unique<Parts>(std::move(options), log, std::move(store), std::move(ledger),
                                       last_pass);
  BERTH_TRY_VOID(parts->begin());
  parts->make_service();
  BERTH_LOG(log, Info, "daemon", "a new life begins", {"generation", parts->generation},
            {"jobs", jobs});
  return std::unique_ptr<Daemon>(new Daemon(std::move(parts)));
}

LiveService& Daemon::service() noexcept { return *parts_->service; }
std::uint64_t Daemon::generation() const noexcept { return parts_->generation; }

Result<void> Daemon::run() {
  BERTH_TRY_VOID(parts_->supervisor->recover(parts_->journal_writer.ledger()));
  const EnergySampler sampler{*parts_->energy, parts_->clock};
  parts_->shares_cores = shares_cores_by_curves(parts_->options.live);
  std::optional<UsePhases> phases;
  if (parts_->gateway)
    phases.emplace(UsePhases::Parts{
        .board = parts_->board,
        .cluster = parts_->options.cluster,
        .gpus = GpuEnergy{parts_->options.power.nvml_library},
        .is_wanted = [this] { return parts_->shares_cores.load(); },
        .tell = [this](JobNumber job,
                       Phase phase) { parts_->gateway->hub().see_phase(job, phase); }});
  auto ended = parts_->scheduler->run();
  parts_->energy->keep(parts_->clock.now());
  parts_->messages.close();
  const std::lock_guard lock{parts_->error_mutex};
  if (parts_->journal_error) return tl::unexpected<Error>(*parts_->journal_error);
  return ended;
}

void Daemon::stop() { parts_->messages.post(StopOrder{}); }

void Daemon::set_options(const SchedulerOptions& live) {
  parts_->shares_cores = shares_cores_by_curves(live);
  // Also if the engine that should have heard of it has failed meanwhile: the next one is made of
  // these.
  const auto set = [this, live] { parts_->scheduler->set_options(live); };
  parts_->messages.post(Question{.ask = set, .too_late = set});
}

}  // namespace berth
