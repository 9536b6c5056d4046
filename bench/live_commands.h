// Submitting by command, as people and their scripts do: the same `sbatch` lines against Berth and
// against a real Slurm.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace berth::bench {

/// From before `submit` to the first instruction of a job that is BERTH_FIRST_INSTRUCTION and
/// writes to `output`.
[[nodiscard]] double millis_to_first_instruction(const std::string& output,
                                                 const std::function<void()>& submit);
/// Our program under Slurm's name, in `directory`.
[[nodiscard]] std::string berth_sbatch(const std::string& directory);

struct CommandFigures {
  double submits_per_second = 0;  // 16 shells at once
  double submit_millis = 0;       // one after the other, median
  double start_millis = 0;        // median
};

class CommandBench {
 public:
  struct Options {
    std::string sbatch;
    std::vector<std::pair<std::string, std::string>> environment;
    std::string directory;
    int submits = 400;
    int starts = 20;
  };
  explicit CommandBench(Options options) : options_(std::move(options)) {}
  [[nodiscard]] CommandFigures run() const;

 private:
  /// Ends the program if the command fails.
  void command(std::vector<std::string> words) const;
  void hold_one() const;

  Options options_;
};

/// A Slurm test cluster from a folder with the scripts `up` and `down`, for as long as this lives.
class SlurmCluster {
 public:
  SlurmCluster(std::string scripts, std::string directory);
  ~SlurmCluster();
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;
  [[nodiscard]] bool is_up() const noexcept { return !conf_.empty(); }
  [[nodiscard]] const std::string& conf() const noexcept { return conf_; }

 private:
  std::string scripts_, directory_, conf_;
};

}  // namespace berth::bench
