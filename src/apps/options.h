// What the command line says, as plain data: one struct per command. Texts are as typed; prepare.h
// and the commands give them their meaning and complain about the wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "apps/demo.h"
#include "apps/export.h"
#include "apps/fit.h"
#include "apps/serve.h"
#include "apps/topology.h"

namespace berth {

struct InputOptions {
  std::string trace;
  std::string format;  // empty: recognised
  std::string cluster;
  bool skip_invalid = false;
  std::size_t limit = 0;    // first jobs only; 0 = all
  std::string from, until;  // window of submit times, from the trace's zero; empty: open
};

struct WorldOptions {
  std::string placement = "best-fit";
  std::vector<std::string> set;  // KEY=VALUE or POLICY.KEY=VALUE
  std::string estimator;         // empty: the policy's own
  std::string history;           // trace of jobs that were over before; empty: none
  std::uint64_t seed = 1;
  std::string restart_cost = "0";
  std::string start_cost = "0";
  std::string preempt_cost = "0";
  std::string migrate_cost;  // empty: as restart_cost
  bool spread_slowdown = false;
  std::string effects = "sharing";
  std::string profiles;  // YAML on top of the built-in catalogue
  double profile_error = 0;
  std::string cpu = "off";
  std::string power = "off";
  std::string boot_time = "2m";
  double boot_failures = 0;
  std::string failures;             // CSV of outages
  std::string mtbf, repair = "1h";  // random outages; empty mtbf: none
  std::string checkpoint_interval = "0";
};

struct OutputOptions {
  std::string out;
  bool force = false;
  bool figures = false;
  bool json = false;
  bool quiet = false;
  bool no_progress = false;
};

struct SimulateOptions {
  InputOptions input;
  WorldOptions world;
  OutputOptions output;
  std::string policy;
};

struct CompareOptions {
  InputOptions input;
  WorldOptions world;
  OutputOptions output;
  std::string policies;  // "a,b,c" or "all"
  std::string baseline;  // empty: fifo if present, else the first
  std::uint32_t seeds = 1;
  std::uint32_t threads = 0;  // 0 = one per core
};

struct GenerateCommand {
  std::string like = "philly";
  std::uint64_t jobs = 1000;
  std::string cluster;
  double load = 0;  // 0 = as in the source
  std::uint64_t seed = 1;
  double burst = 1;
  double diurnal = 1;
  bool models = false;
  double deadlines = 0;
  int users = 100;
  std::string out;  // "-": standard output
};

struct ConvertOptions {
  InputOptions input;  // no cluster
  std::string out;
  bool quiet = false;
};

struct CheckOptions {
  std::vector<std::string> files;
  std::string format;
  std::string cluster;  // whose node names outage files are held against
  bool json = false;
};

struct ReportOptions {
  std::string dir;
  bool live = false;   // of a scheduler that runs
  std::string server;  // empty: as every live command finds it
  std::string out;     // of a live one: the page; empty: none
};

struct PoliciesOptions {
  std::string name;  // empty: all
  bool live = false;
  bool json = false;
};

struct ModelsOptions {
  std::string name;      // empty: all
  std::string profiles;  // YAML on top of the built-in catalogue
  bool json = false;
};

struct ReproduceCommand {
  std::string name;  // empty: list them; "all"
  std::string data;  // folder of public traces and profiles
  bool quick = false;
  bool markdown = false;
  std::uint64_t seed = 1;
};

enum class ListKind : unsigned char { Placements, Estimators, Formats };
struct ListOptions {
  ListKind kind{};
  bool json = false;
};

/// A text that is all the answer: help, version, a completion script.
struct PrintOptions {
  std::string text;
};

using Command =
    std::variant<SimulateOptions, CompareOptions, GenerateCommand, ConvertOptions, CheckOptions,
                 ReportOptions, PoliciesOptions, ListOptions, ModelsOptions, TopologyOptions,
                 FitOptions, ReproduceCommand, ServeOptions, DemoOptions, ExportOptions,
                 ProfilesOptions, PrintOptions>;

}  // namespace berth
