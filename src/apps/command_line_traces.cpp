// Commands about traces: replaying, making, converting and checking them, and the options they
// share.
#include "apps/command_line.h"
#include "apps/mode_help.h"

namespace berth {

void CommandLine::add_window(CLI::App* sub, InputOptions& input) {
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

void CommandLine::add_input(CLI::App* sub, InputOptions& input) {
  take(sub, "-t,--trace", input.trace, "FILE",
       "the jobs: our CSV or a published format, packed with gzip or not (required)");
  take(sub, "-c,--cluster", input.cluster, "CLUSTER",
       "the machines: NODESxGPUS[:TYPE],… as in 16x4 or 8x8:a100,16x4:v100, or a YAML file "
       "(required)");
  add_window(sub, input);
}

void CommandLine::add_world(CLI::App* sub, WorldOptions& world) {
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
  take(sub, "--profiles", world.profiles, "FILE",
       "profiles of models, YAML, on top of the built-in ones; see `berth models` (default: none)",
       kWorld);
  take(sub, "--profile-error", world.profile_error, "S",
       "the scheduler's profiles err by log-normal factors of this deviation (default 0)", kWorld)
      ->check(CLI::Range(0.0, 10.0));
  take(sub, "--cpu", world.cpu, "MODE", cpu_help(), kWorld);
  take(sub, "--power", world.power, "MODE", power_help(), kWorld);
  take(sub, "--boot-time", world.boot_time, "TIME",
       "from switching a node on until it takes jobs (default 2m)", kWorld);
  take(sub, "--boot-failures", world.boot_failures, "SHARE",
       "of boots that fail; a node is tried twice more and then counts as broken (default 0)",
       kWorld)
      ->check(CLI::Range(0.0, 1.0));
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

void CommandLine::add_output(CLI::App* sub, OutputOptions& output) {
  take(sub, "-o,--out", output.out, "DIR",
       "write jobs.csv, summary.json, actions.csv, timeline.csv and report.html there (default: "
       "nothing is written)",
       kOutput);
  flag(sub, "--force", output.force,
       "replace DIR whatever it holds (default: only an empty folder or an earlier run)", kOutput);
  flag(sub, "--figures", output.figures, "SVG figures in DIR/figures too (default: none)", kOutput);
  flag(sub, "--json", output.json, "the summary as JSON on standard output (default: a table)",
       kOutput);
  flag(sub, "-q,--quiet", output.quiet, "no notes and no progress bar", kOutput);
  flag(sub, "--no-progress", output.no_progress, "no progress bar (default: one on a terminal)",
       kOutput);
}

void CommandLine::add_simulate() {
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

void CommandLine::add_compare() {
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

void CommandLine::add_generate() {
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
  take(sub, "-o,--out", generate_.out, "FILE", "the CSV to write; - is standard output (required)",
       kOutput);
}

void CommandLine::add_convert() {
  CLI::App* sub = add("convert", "turn a published trace into our CSV",
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

void CommandLine::add_check() {
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

void CommandLine::add_report() {
  CLI::App* sub = add("report", "rebuild report.html and the figures of a result folder",
                      "berth report run1\nberth report --live -o energy.html",
                      [this]() -> Result<Command> { return report_; });
  take(sub, "DIR", report_.dir, "DIR", "a folder that --out made");
  flag(sub, "--live", report_.live,
       "energy of a live scheduler instead: by job, user, node and what it was doing", kOutput);
  take(sub, "--server", report_.server, "ADDRESS",
       "of --live: socket path or URL (default: BERTH_URL, BERTH_SOCKET)");
  take(sub, "-o,--out", report_.out, "FILE", "of --live: write it as a page too (default: none)",
       kOutput);
}

}  // namespace berth
