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
      estimator{}, cpu{}, power{}, log_level{}, log_format{}, engine{}, slurm_commands{};
  std::optional<std::int32_t> devices{}, poll{};
  std::vector<std::pair<std::string, std::string>> settings{};
  bool advise = false;
  bool check = false;  // say what would be served and leave
};

}  // namespace berth
