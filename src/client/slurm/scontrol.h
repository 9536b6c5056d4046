// The parts of scontrol; each answers the exit code.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/commands.h"
#include "client/console.h"
#include "client/scheduler.h"

namespace berth::client::slurm {

struct ControlStyle {
  bool is_oneliner = false;
  bool has_details = false;
  bool is_quiet = false;
  bool is_json = false;
};

struct Control {
  Scheduler& scheduler;
  Console& console;
  ControlStyle style;
};

/// The words behind "show".
[[nodiscard]] int show(const Control& control, std::span<const std::string> words);
/// The words behind "update": KEY=VALUE…
[[nodiscard]] int update(const Control& control, std::span<const std::string> words);
/// hold, uhold, release, requeue, requeuehold, suspend, resume; the words behind.
[[nodiscard]] int act(const Control& control, const std::string& verb,
                      std::span<const std::string> words);

[[nodiscard]] int show_jobs(const Control& control, const std::string& id);
[[nodiscard]] int show_steps(const Control& control, const std::string& id);
[[nodiscard]] int show_nodes(const Control& control, const std::string& list);
[[nodiscard]] int show_partitions(const Control& control, const std::string& name);
[[nodiscard]] int show_config(const Control& control);

/// Records of lines "   KEY=VALUE …" with a blank line behind each, or one line each.
[[nodiscard]] std::string record(const std::vector<std::string>& lines, const ControlStyle& style);

}  // namespace berth::client::slurm
