// `berth serve`: the live scheduler in the foreground.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth {

struct ServeOptions {
  std::string config;  // file; empty: defaults
  // What the command line says beats the file.
  std::optional<std::string> policy{}, cluster{}, state_dir{}, socket{}, listen{}, placement{},
      estimator{}, cpu{}, power{}, log_level{}, log_format{};
  std::optional<std::int32_t> devices{};
  std::vector<std::pair<std::string, std::string>> settings{};
  bool check = false;              // say what would be served and leave
  std::string engine = "machine";  // what runs the jobs: "machine" or "slurm"
  std::string slurm_commands{};    // directory of Slurm's commands; empty: by PATH
};

}  // namespace berth
