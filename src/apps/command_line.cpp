#include "apps/command_line.h"

#include "apps/live.h"

namespace berth {

namespace {

/// The library's view of a command as plain data.
CliCommand description(const CLI::App& app) {
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
    command.commands.push_back(description(*sub));
  return command;
}

}  // namespace

CommandLine::CommandLine()
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

CliCommand CommandLine::describe() const {
  CliCommand root = description(app_);
  for (CliCommand& live : live_cli_commands()) root.commands.push_back(std::move(live));
  return root;
}

Result<Command> CommandLine::command() const {
  for (const auto& [sub, make] : makers_) {
    if (sub->parsed()) return make();
  }
  return fail("no command (see `berth --help`)");
}

CLI::App* CommandLine::add(const std::string& name, const std::string& summary,
                           const std::string& examples, Maker maker) {
  CLI::App* sub = app_.add_subcommand(name, summary);
  sub->set_help_flag();
  sub->footer(examples);
  makers_.emplace_back(sub, std::move(maker));
  return sub;
}

void CommandLine::add_serve() {
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
  take(sub, "--engine", serve_.engine, "ENGINE",
       "below the scheduler: machine (what --cluster says), or slurm (default: machine)");
  take(sub, "--slurm-commands", serve_.slurm_commands, "DIR",
       "where Slurm's commands are (default: on PATH)");
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
  take(
      sub, "--power", serve_.power, "WAY",
      "who switches nodes off and on by the programs of the configuration: off, ces or spare, with "
      "options as in simulate (default: off)");
  take(sub, "--log-level", serve_.log_level, "LEVEL", "debug, info, warn, error, off");
  take(sub, "--log-format", serve_.log_format, "FORMAT", "text or json");
  flag(sub, "--check", serve_.check, "say what would be served, and leave", kOutput);
}

void CommandLine::add_demo() {
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

void CommandLine::add_export() {
  CLI::App* sub = add("export", "write the history of a live scheduler as a trace",
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

  CLI::App* profiles =
      add("profiles", "write what a live scheduler has measured of its jobs",
          "berth profiles export -o mine.yaml\n"
          "berth simulate --trace last-week.csv --cluster 1x8 --policy srtf --profiles mine.yaml",
          [this]() -> Result<Command> { return profiles_; });
  take(profiles, "VERB", profiles_.verb, "export", "what to do: export")->required();
  take(profiles, "--server", profiles_.server, "ADDRESS",
       "socket path or URL (default: BERTH_URL, BERTH_SOCKET)");
  take(profiles, "-o,--out", profiles_.out, "FILE",
       "the profile file to write; - is standard output (default -)", kOutput);
}

void CommandLine::add_lists() {
  CLI::App* policies = add("policies", "list the policies, or the parameters of one",
                           "berth policies\nberth policies las --json",
                           [this]() -> Result<Command> { return policies_; });
  take(policies, "NAME", policies_.name, "POLICY", "the policy to describe (default: all of them)");
  flag(policies, "--live", policies_.live,
       "what the live scheduler loses of it (default: what it is and takes)", kOutput);
  flag(policies, "--json", policies_.json, "as JSON (default: a table)", kOutput);
  const auto add_list = [this](const std::string& name, const std::string& summary, ListKind kind) {
    CLI::App* sub = add(name, summary, "berth " + name, [this, kind]() -> Result<Command> {
      return ListOptions{.kind = kind, .json = list_json_};
    });
    flag(sub, "--json", list_json_, "as JSON (default: a table)", kOutput);
  };
  add_list("placements", "list what --placement takes", ListKind::Placements);
  add_list("estimators", "list what --estimator takes", ListKind::Estimators);
  add_list("formats", "list the trace formats", ListKind::Formats);
}

void CommandLine::add_models() {
  CLI::App* sub = add("models", "list the profiles of models, or show one with its sources",
                      "berth models\nberth models resnet50\nberth models --profiles mine.yaml",
                      [this]() -> Result<Command> { return models_; });
  take(sub, "NAME", models_.name, "MODEL", "the model to describe (default: all of them)");
  take(sub, "--profiles", models_.profiles, "FILE", "profiles on top of the built-in ones");
  flag(sub, "--json", models_.json, "as JSON (default: a table)", kOutput);
}

void CommandLine::add_topology() {
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

void CommandLine::add_fit() {
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

void CommandLine::add_reproduce() {
  CLI::App* sub =
      add("reproduce", "run the headline experiment of a paper beside its published figure",
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

void CommandLine::add_completion() {
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

}  // namespace berth
