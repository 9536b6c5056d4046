#include "apps/cli.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <type_traits>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "apps/live.h"
#include "apps/mode_help.h"
#include "base/suggest.h"

namespace berth {

namespace {

constexpr auto kInput = "Input";
constexpr auto kWorld = "Simulated world";
constexpr auto kOutput = "Output";

/// The option library's app and, per command, the options it fills. Both live as long as the parse.
class CommandLine {
 public:
  CommandLine()
      : app_("schedules deep-learning jobs on GPU clusters, real and simulated", "berth") {
    app_.set_help_flag();
    app_.footer(
        "berth generate --like philly --jobs 2000 --cluster 16x4 --load 0.9 --seed 1 -o trace.csv\n"
        "berth compare --trace trace.csv --cluster 16x4 --policies fifo,easy,srtf,las\n"
        "berth simulate --trace examples/traces/philly-small.csv --cluster 16x4 --policy srtf "
        "--out run1\n"
        "berth submit --gpus 2 -- python3 train.py\n"
        "berth queue --watch");
    app_.add_flag("--version", version_, "print the version");
    add_simulate();
    add_compare();
    add_generate();
    add_convert();
    add_check();
    add_report();
    add_serve();
    add_demo();
    add_export();
    add_lists();
    add_models();
    add_topology();
    add_fit();
    add_reproduce();
    add_completion();
    for (CLI::App* sub : app_.get_subcommands({}))
      sub->add_flag("-h,--help", help_, "this text")->group(kOutput);
    app_.add_flag("-h,--help", help_, "this text");
  }

  [[nodiscard]] CliCommand describe() const {
    CliCommand root = describe(app_);
    for (CliCommand& live : live_cli_commands()) root.commands.push_back(std::move(live));
    return root;
  }
  void parse(int argc, const char* const* argv) { app_.parse(argc, argv); }
  [[nodiscard]] bool version_asked() const noexcept { return version_; }
  [[nodiscard]] Result<Command> command() const {
    for (const auto& [sub, make] : makers_) {
      if (sub->parsed()) return make();
    }
    return fail("no command (see `berth --help`)");
  }

 private:
  using Maker = std::function<Result<Command>()>;

  CLI::App* add(const std::string& name, const std::string& summary, const std::string& examples,
                Maker maker) {
    CLI::App* sub = app_.add_subcommand(name, summary);
    sub->set_help_flag();
    sub->footer(examples);
    makers_.emplace_back(sub, std::move(maker));
    return sub;
  }

  template <class T>
  static CLI::Option* take(CLI::App* sub, const std::string& names, T& target,
                           const std::string& value, const std::string& help,
                           const std::string& group = kInput) {
    CLI::Option* option = sub->add_option(names, target, help)->type_name(value)->group(group);
    if constexpr (std::is_unsigned_v<T>) {  // the library would read -1 as the largest number
      option->check([](const std::string& text) -> std::string {
        return text.starts_with('-') ? fmt::format("'{}' is no whole number of 0 or more", text)
                                     : "";
      });
    }
    return option;
  }
  static void flag(CLI::App* sub, const std::string& names, bool& target, const std::string& help,
                   const std::string& group) {
    sub->add_flag(names, target, help)->group(group);
  }

  static void add_window(CLI::App* sub, InputOptions& input) {
    take(sub, "--format", input.format, "FORMAT",
         "format of the trace; see `berth formats` (default: recognised by content)");
    flag(sub, "--skip-invalid", input.skip_invalid,
         "drop rows that break a rule instead of stopping (default: stop)", kInput);
    take(sub, "--limit", input.limit, "N",
         "only the first N jobs by submit time; 0 is all (default 0)");
    take(sub, "--from", input.from, "TIME",
         "only jobs submitted from then on, in seconds after the trace's first submit, or 2h, 3d "
         "(default 0)");
    take(sub, "--until", input.until, "TIME", "only jobs submitted before then (default: the end)");
  }

  static void add_input(CLI::App* sub, InputOptions& input) {
    take(sub, "-t,--trace", input.trace, "FILE",
         "the jobs: our CSV or a published format, packed with gzip or not (required)");
    take(sub, "-c,--cluster", input.cluster, "CLUSTER",
         "the machines: NODESxGPUS[:TYPE],… as in 16x4 or 8x8:a100,16x4:v100, or a YAML file "
         "(required)");
    add_window(sub, input);
  }

  static void add_world(CLI::App* sub, WorldOptions& world) {
    take(sub, "--placement", world.placement, "PLACEMENT",
         "which nodes a job gets; see `berth placements` (default best-fit)", kWorld);
    take(sub, "--set", world.set, "KEY=VALUE",
         "a parameter of the policy, repeatable; POLICY.KEY=VALUE for one of several; see `berth "
         "policies NAME`",
         kWorld)
        ->allow_extra_args(false);
    take(sub, "--estimator", world.estimator, "ESTIMATOR",
         "what is believed about run times; see `berth estimators` (default: the "
         "policy's own, for most the oracle)",
         kWorld);
    take(sub, "--history", world.history, "FILE",
         "jobs that were over before the run, in any trace format: estimators that learn begin "
         "with them (default: they begin with nothing)",
         kWorld);
    take(sub, "--seed", world.seed, "N",
         "drives estimation error, random placement and random outages (default 1)", kWorld);
    take(sub, "--restart-cost", world.restart_cost, "TIME",
         "what a resumed or migrated job pays before it goes on, in seconds, or 2m (default 0)",
         kWorld);
    take(sub, "--start-cost", world.start_cost, "TIME", "what a first start pays (default 0)",
         kWorld);
    take(sub, "--preempt-cost", world.preempt_cost, "TIME",
         "how long a preempted job still holds its GPUs to save its state (default 0)", kWorld);
    take(sub, "--migrate-cost", world.migrate_cost, "TIME",
         "what a move to other GPUs pays (default: as --restart-cost)", kWorld);
    flag(sub, "--spread-slowdown", world.spread_slowdown,
         "jobs on more nodes than needed run slower, by model (default: they do not)", kWorld);
    take(sub, "--effects", world.effects, "EFFECTS",
         "what makes jobs slower or faster than their trace says: none, all, or of sharing, "
         "locality, server, cpu, memory, device, efficiency, joined by commas (default sharing)",
         kWorld);
    take(
        sub, "--profiles", world.profiles, "FILE",
        "profiles of models, YAML, on top of the built-in ones; see `berth models` (default: none)",
        kWorld);
    take(sub, "--profile-error", world.profile_error, "S",
         "the scheduler's profiles err by log-normal factors of this deviation (default 0)", kWorld)
        ->check(CLI::Range(0.0, 10.0));
    take(sub, "--cpu", world.cpu, "MODE", cpu_help(), kWorld);
    take(sub, "--power", world.power, "MODE", power_help(), kWorld);
    take(sub, "--boot-time", world.boot_time, "TIME",
         "from switching a node on until it takes jobs (default 2m)", kWorld);
    take(sub, "--failures", world.failures, "FILE",
         "node outages: CSV node,down_time,up_time in seconds (default: none)", kWorld);
    take(sub, "--mtbf", world.mtbf, "TIME",
         "nodes fail at random, on average after this time of being up (default: never)", kWorld);
    take(sub, "--repair", world.repair, "TIME",
         "mean time until a failed node is back, with --mtbf (default 1h)", kWorld);
    take(sub, "--checkpoint-interval", world.checkpoint_interval, "TIME",
         "a job that loses its node goes back to a multiple of this much work; 0 loses nothing; "
         "auto:COST is as often as its size and --mtbf ask for, saving being so long (default 0)",
         kWorld);
  }

  static void add_output(CLI::App* sub, OutputOptions& output) {
    take(sub, "-o,--out", output.out, "DIR",
         "write jobs.csv, summary.json, actions.csv, timeline.csv and report.html there (default: "
         "nothing is written)",
         kOutput);
    flag(sub, "--force", output.force,
         "replace DIR whatever it holds (default: only an empty folder or an earlier run)",
         kOutput);
    flag(sub, "--figures", output.figures, "SVG figures in DIR/figures too (default: none)",
         kOutput);
    flag(sub, "--json", output.json, "the summary as JSON on standard output (default: a table)",
         kOutput);
    flag(sub, "-q,--quiet", output.quiet, "no notes and no progress bar", kOutput);
    flag(sub, "--no-progress", output.no_progress, "no progress bar (default: one on a terminal)",
         kOutput);
  }

  void add_simulate() {
    CLI::App* sub = add("simulate", "replay a trace under one policy",
                        "berth simulate --trace trace.csv --cluster 16x4 --policy srtf\n"
                        "berth simulate --trace trace.csv --cluster lab.yaml --policy las --set "
                        "quantum=60 --restart-cost 30 --out run1\n"
                        "berth simulate --trace trace.csv --cluster 16x4 --policy sjf --estimator "
                        "oracle:0.5 --json",
                        [this]() -> Result<Command> { return simulate_; });
    add_input(sub, simulate_.input);
    take(sub, "-p,--policy", simulate_.policy, "POLICY",
         "who decides; see `berth policies` (required)");
    add_world(sub, simulate_.world);
    add_output(sub, simulate_.output);
  }

  void add_compare() {
    CLI::App* sub = add("compare", "replay a trace under several policies, side by side",
                        "berth compare --trace trace.csv --cluster 16x4 --policies fifo,easy,srtf\n"
                        "berth compare --trace trace.csv --cluster 16x4 --policies all --set "
                        "las.quantum=300 --out cmp --figures\n"
                        "berth compare --trace trace.csv --cluster 16x4 --policies fifo,sjf "
                        "--estimator oracle:1 --seeds 10",
                        [this]() -> Result<Command> { return compare_; });
    add_input(sub, compare_.input);
    take(sub, "-p,--policies", compare_.policies, "POLICIES",
         "names joined by commas, or all; see `berth policies` (required)");
    take(sub, "--baseline", compare_.baseline, "POLICY",
         "the policy that ratios refer to (default: fifo if it takes part, else the first)");
    add_world(sub, compare_.world);
    take(sub, "--seeds", compare_.seeds, "N",
         "runs of each policy, with seeds from --seed on; figures then carry 95 % confidence "
         "intervals (default 1)",
         kWorld)
        ->check(CLI::Range(1, 10'000));
    add_output(sub, compare_.output);
    take(sub, "-j,--threads,--jobs", compare_.threads, "N",
         "runs at once; results do not depend on it; 0 is one per core (default 0)", kOutput)
        ->check(CLI::Range(0, 1024));
  }

  void add_generate() {
    CLI::App* sub = add(
        "generate", "make a trace that looks like a published one",
        "berth generate --like philly --jobs 2000 --cluster 16x4 --load 0.9 --seed 1 -o trace.csv\n"
        "berth generate --like helios --jobs 100000 --cluster 143x8 --models --deadlines 0.3 -o "
        "big.csv",
        [this]() -> Result<Command> { return generate_; });
    take(sub, "--like", generate_.like, "SOURCE",
         "whose job sizes, run times and arrivals (default philly)");
    take(sub, "-n,--jobs", generate_.jobs, "N", "how many jobs (default 1000)")
        ->check(CLI::Range(1ULL, 100'000'000ULL));
    take(sub, "-c,--cluster", generate_.cluster, "CLUSTER",
         "no job is larger than this cluster (default: sizes as in the source)");
    take(sub, "--load", generate_.load, "X",
         "demanded share of the cluster's GPU time: 1 asks for all of it (default: arrivals as in "
         "the source)")
        ->check(CLI::Range(0.0, 1000.0));
    take(sub, "--seed", generate_.seed, "N", "same seed, same trace (default 1)");
    take(sub, "--burst", generate_.burst, "X",
         "runs of like jobs: 0 none, 1 as in the source (default 1)")
        ->check(CLI::Range(0.0, 1000.0));
    take(sub, "--diurnal", generate_.diurnal, "X",
         "day and week cycles: 0 none, 1 as in the source (default 1)")
        ->check(CLI::Range(0.0, 1000.0));
    flag(sub, "--models", generate_.models, "name a model for every job (default: none)", kInput);
    take(sub, "--deadlines", generate_.deadlines, "X",
         "share of jobs with a deadline, 0 to 1 (default 0)")
        ->check(CLI::Range(0.0, 1.0));
    take(sub, "--users", generate_.users, "N", "how many users submit; 0 names none (default 100)")
        ->check(CLI::Range(0, 1'000'000));
    take(sub, "-o,--out", generate_.out, "FILE",
         "the CSV to write; - is standard output (required)", kOutput);
  }

  void add_convert() {
    CLI::App* sub =
        add("convert", "turn a published trace into our CSV",
            "berth convert cluster_log.csv --format helios -o trace.csv\n"
            "berth convert sacct.txt --skip-invalid -o -",
            [this]() -> Result<Command> {
              if (convert_.input.trace.empty())
                return fail("convert: which trace? As in `berth convert IN -o OUT.csv`");
              return convert_;
            });
    take(sub, "IN", convert_.input.trace, "FILE", "the trace to read");
    add_window(sub, convert_.input);
    take(sub, "-o,--out", convert_.out, "FILE", "the CSV to write; - is standard output (required)",
         kOutput);
    flag(sub, "-q,--quiet", convert_.quiet, "no notes", kOutput);
  }

  void add_check() {
    CLI::App* sub =
        add("check", "look at traces, cluster files and outage lists without running anything",
            "berth check trace.csv examples/clusters/philly.yaml\n"
            "berth check outages.csv --cluster 16x4",
            [this]() -> Result<Command> { return check_; });
    take(sub, "FILES", check_.files, "FILE",
         "the files; a cluster by its name (.yaml), outages by their header, else a trace");
    take(sub, "--format", check_.format, "FORMAT",
         "format of the traces (default: recognised by content)");
    take(sub, "-c,--cluster", check_.cluster, "CLUSTER",
         "whose node names outage lists must use (default: any)");
    flag(sub, "--json", check_.json, "findings as a JSON array (default: text)", kOutput);
  }

  void add_serve() {
    CLI::App* sub =
        add("serve", "run the live scheduler: this machine, or what --cluster says",
            "berth serve\nberth serve --policy tiresias-l --listen 127.0.0.1:6420\n"
            "berth serve --config /etc/berth/berth.yaml",
            [this]() -> Result<Command> {
              ServeOptions options = serve_;
              for (const std::string& text : serve_settings_) {
                const std::size_t equals = text.find('=');
                if (equals == std::string::npos || equals == 0)
                  return fail(fmt::format("--set: '{}' is not KEY=VALUE", text));
                options.settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
              }
              return options;
            });
    take(sub, "--config", serve_.config, "FILE", "a YAML configuration (default: none)");
    take(sub, "-p,--policy", serve_.policy, "POLICY", "who decides (default: easy)");
    take(sub, "--set", serve_settings_, "KEY=VALUE", "a parameter of the policy")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    take(sub, "--cluster", serve_.cluster, "CLUSTER", "as of simulate (default: this machine)");
    take(sub, "--devices", serve_.devices, "N",
         "CPU slots where the machine has no GPU (default: one per two cores)");
    take(sub, "--state-dir", serve_.state_dir, "DIR", "where the journal is");
    take(sub, "--socket", serve_.socket, "PATH", "the Unix socket");
    take(sub, "--listen", serve_.listen, "HOST:PORT", "TCP as well, with tokens (default: none)");
    take(sub, "--placement", serve_.placement, "PLACEMENT", "where jobs go (default: best-fit)");
    take(sub, "--estimator", serve_.estimator, "ESTIMATOR",
         "who estimates run times (default: history)");
    take(sub, "--cpu", serve_.cpu, "WAY", "who shares out cores (default: off)");
    take(sub, "--log-level", serve_.log_level, "LEVEL", "debug, info, warn, error, off");
    take(sub, "--log-format", serve_.log_format, "FORMAT", "text or json");
    flag(sub, "--check", serve_.check, "say what would be served, and leave", kOutput);
  }

  void add_demo() {
    CLI::App* sub =
        add("demo", "a minute of the live scheduler: small jobs, the queue, the result",
            "berth demo\nberth demo --policy easy", [this]() -> Result<Command> { return demo_; });
    take(sub, "-p,--policy", demo_.policy, "POLICY", "who decides (default: sjf)");
    take(sub, "--trainer", demo_.trainer, "PROGRAM",
         "examples/trainer as it was built (default: a small training of our own)");
    take(sub, "--speed", demo_.speed, "X", "jobs are so many times shorter (default 1)");
    take(sub, "--train", demo_.train, "EPOCHS",
         "be one of the jobs: train so long, print the loss, leave")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  }

  void add_export() {
    CLI::App* sub =
        add("export", "write the history of a live scheduler as a trace",
            "berth export -o last-week.csv --since 7d\n"
            "berth compare --trace last-week.csv --cluster 1x8 --policies fifo,easy,srtf",
            [this]() -> Result<Command> { return export_; });
    take(sub, "--since", export_.since, "TIME", "jobs that ended since: 2h, 7d, 2026-11-20");
    take(sub, "--until", export_.until, "TIME", "jobs that ended before");
    take(sub, "-u,--user", export_.user, "USER", "only this user's (default: everybody's)");
    take(sub, "--group", export_.group, "GROUP", "only this group's");
    take(sub, "--queue", export_.queue, "QUEUE", "only of this queue");
    take(sub, "--server", export_.server, "ADDRESS",
         "socket path or URL (default: BERTH_URL, BERTH_SOCKET)");
    take(sub, "-o,--out", export_.out, "FILE", "the CSV to write; - is standard output (required)",
         kOutput);
    flag(sub, "-q,--quiet", export_.quiet, "no notes", kOutput);
  }

  void add_report() {
    CLI::App* sub = add("report", "build report.html and the figures of a result folder anew",
                        "berth report run1", [this]() -> Result<Command> { return report_; });
    take(sub, "DIR", report_.dir, "DIR", "a folder that --out made");
  }

  void add_lists() {
    CLI::App* policies = add("policies", "list the policies, or the parameters of one",
                             "berth policies\nberth policies las --json",
                             [this]() -> Result<Command> { return policies_; });
    take(policies, "NAME", policies_.name, "POLICY",
         "the policy to describe (default: all of them)");
    flag(policies, "--json", policies_.json, "as JSON (default: a table)", kOutput);
    const auto add_list = [this](const std::string& name, const std::string& summary,
                                 ListKind kind) {
      CLI::App* sub = add(name, summary, "berth " + name, [this, kind]() -> Result<Command> {
        return ListOptions{.kind = kind, .json = list_json_};
      });
      flag(sub, "--json", list_json_, "as JSON (default: a table)", kOutput);
    };
    add_list("placements", "list what --placement takes", ListKind::Placements);
    add_list("estimators", "list what --estimator takes", ListKind::Estimators);
    add_list("formats", "list the trace formats", ListKind::Formats);
  }

  void add_models() {
    CLI::App* sub = add("models", "list the profiles of models, or show one with its sources",
                        "berth models\nberth models resnet50\nberth models --profiles mine.yaml",
                        [this]() -> Result<Command> { return models_; });
    take(sub, "NAME", models_.name, "MODEL", "the model to describe (default: all of them)");
    take(sub, "--profiles", models_.profiles, "FILE", "profiles on top of the built-in ones");
    flag(sub, "--json", models_.json, "as JSON (default: a table)", kOutput);
  }

  void add_topology() {
    CLI::App* sub = add("topology", "draw a cluster as the tree it is, down to NVLink islands",
                        "berth topology 8x8:a100\nberth topology examples/clusters/philly.yaml\n"
                        "berth topology local",
                        [this]() -> Result<Command> {
                          if (topology_.cluster.empty())
                            return fail(
                                "topology: of which cluster? As in `berth topology 8x8:a100`, a "
                                "YAML file, or local for this machine");
                          return topology_;
                        });
    take(sub, "CLUSTER", topology_.cluster, "CLUSTER",
         "NODESxGPUS[:TYPE],…, a YAML file, or local: this machine");
    flag(sub, "--json", topology_.json, "as JSON (default: a drawing)", kOutput);
  }

  void add_fit() {
    CLI::App* sub =
        add("fit", "fit profiles to measurements, with the error on points held back",
            "berth fit iteration steps.csv -o mine.yaml\nberth fit cpu cores.csv\n"
            "berth fit catalogue ../shared/data -o models.yaml",
            [this]() -> Result<Command> {
              if (fit_.kind.empty() || fit_.input.empty())
                return fail(
                    "fit: what and from which file? As in `berth fit iteration steps.csv`; kinds: "
                    "iteration, locality, pairs, cpu, memory, catalogue");
              return fit_;
            });
    take(sub, "KIND", fit_.kind, "KIND",
         "iteration, locality, pairs, cpu, memory, or catalogue (all published sources)");
    take(sub, "FILE", fit_.input, "FILE", "the measurements, CSV; for a catalogue the data folder");
    take(sub, "--gradient-bytes", fit_.gradient_bytes, "BYTES",
         "size of the gradients if it is known (default: fitted)");
    take(sub, "-o,--out", fit_.out, "FILE",
         "the profiles as YAML; - is standard output (default: the table alone)", kOutput);
  }

  void add_reproduce() {
    CLI::App* sub = add("reproduce", "run the headline of a paper and set it beside the published",
                        "berth reproduce\nberth reproduce sjf-bsbf\n"
                        "berth reproduce all --data ../shared/data --markdown",
                        [this]() -> Result<Command> { return reproduce_; });
    take(sub, "NAME", reproduce_.name, "NAME", "which one, or all (default: list them)");
    take(sub, "--data", reproduce_.data, "DIR",
         "folder of public traces and profiles (default: only what needs none)");
    take(sub, "--seed", reproduce_.seed, "N", "of generated workloads (default 1)");
    flag(sub, "--quick", reproduce_.quick, "smaller workloads, fewer seeds", kInput);
    flag(sub, "--markdown", reproduce_.markdown, "as a page (default: a table)", kOutput);
  }

  void add_completion() {
    CLI::App* sub = add("completion", "print a completion script for bash, zsh or fish",
                        "source <(berth completion bash)\nberth completion fish > "
                        "~/.config/fish/completions/berth.fish",
                        [this]() -> Result<Command> {
                          auto script = completion_script(shell_, describe());
                          if (!script) return tl::unexpected<Error>(script.error());
                          return PrintOptions{std::move(*script)};
                        });
    take(sub, "SHELL", shell_, "SHELL", "bash, zsh or fish");
  }

  [[nodiscard]] static CliCommand describe(const CLI::App& app) {
    CliCommand command{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
    for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
      CliOption one;
      for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
      one.positional = option->get_positional();
      if (one.positional) one.names = {option->get_name(true)};
      if (option->get_type_size_max() != 0) one.value = option->get_type_name();
      one.value = one.value.substr(0, one.value.find(':'));  // without what a range check appends
      one.help = option->get_description();
      one.group = option->get_group();
      command.options.push_back(std::move(one));
    }
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
      command.commands.push_back(describe(*sub));
    return command;
  }

  CLI::App app_;
  std::vector<std::pair<CLI::App*, Maker>> makers_;
  SimulateOptions simulate_;
  CompareOptions compare_;
  GenerateCommand generate_;
  ConvertOptions convert_;
  CheckOptions check_;
  ReportOptions report_;
  ServeOptions serve_;
  DemoOptions demo_;
  ExportOptions export_;
  std::vector<std::string> serve_settings_;
  PoliciesOptions policies_;
  ModelsOptions models_;
  TopologyOptions topology_;
  FitOptions fit_;
  ReproduceCommand reproduce_;
  bool list_json_ = false;
  std::string shell_;
  bool version_ = false;
  bool help_ = false;
};

std::vector<std::string> names_of(const std::vector<CliCommand>& commands) {
  std::vector<std::string> names;
  for (const CliCommand& command : commands) names.push_back(command.name);
  return names;
}

/// Options nobody knows, each with the nearest that exist: the library would name only the first.
Result<void> check_options(const CliCommand& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CliOption& option : command.options) {
    if (!option.positional) known.insert(known.end(), option.names.begin(), option.names.end());
  }
  Error error;
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.size() < 2 || argument[0] != '-' ||
        std::isdigit(static_cast<unsigned char>(argument[1])) != 0 || argument[1] == '.')
      continue;
    const std::string name =
        argument[1] == '-' ? argument.substr(0, argument.find('=')) : argument.substr(0, 2);
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto near = nearest_names(name, known);
    error.messages.push_back(
        fmt::format("{}: no option is called '{}'{}", command.name, name,
                    near.empty() ? fmt::format(" (see `berth {} --help`)", command.name)
                                 : fmt::format(" (did you mean {}?)", fmt::join(near, ", "))));
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return {};
}

bool asks_for_help(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
}

}  // namespace

Result<Command> parse_command_line(int argc, const char* const* argv) {
  try {  // the option library throws; nothing of it leaves this function
    CommandLine line;
    const CliCommand root = line.describe();
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.empty()) return fail("no command\n\n" + help_text(root, root));
    std::string first = arguments.front();
    if (first == "help" && arguments.size() > 1) {
      first = arguments[1];
      arguments = {"--help"};
    }
    if (first == "--help" || first == "-h" || first == "help")
      return PrintOptions{help_text(root, root)};
    if (!first.starts_with('-')) {
      const auto command = std::ranges::find(root.commands, first, &CliCommand::name);
      if (command == root.commands.end()) {
        return fail(fmt::format("no command is called '{}'{}", first,
                                suggestion(first, names_of(root.commands))));
      }
      if (asks_for_help(arguments)) return PrintOptions{help_text(root, *command)};
      BERTH_TRY_VOID(check_options(*command, {arguments.begin() + 1, arguments.end()}));
    } else {
      BERTH_TRY_VOID(check_options(root, {first}));
    }
    line.parse(argc, argv);
    if (line.version_asked()) return PrintOptions{"berth " BERTH_VERSION "\n"};
    return line.command();
  } catch (const CLI::ParseError& problem) {
    return fail(fmt::format("{} (see `berth {}--help`)", problem.what(),
                            argc > 1 && argv[1][0] != '-' ? std::string(argv[1]) + " " : ""));
  } catch (const std::exception& problem) {
    return fail(problem.what());
  }
}

}  // namespace berth
