// Slurm's own commands, run one after the other by those who change its settings or hand its queue
// back: rare work in which an exit code and what was said on stderr tell enough. Reading and
// deciding every second goes another way (slurm/link.h). Tests have commands of their own.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::slurm {

struct Said {
  int exit = 0;
  std::string out{}, error{};
  /// What it complained of, in one line; its exit code if it said nothing.
  [[nodiscard]] std::string complaint() const;
};

class SlurmCommands {
 public:
  virtual ~SlurmCommands() = default;
  /// The first word is the command's name. An error is a command that could not be run or did not
  /// end in time; one that ran and failed has an exit code.
  [[nodiscard]] virtual Result<Said> run(const std::vector<std::string>& words) = 0;
  virtual void pause(std::chrono::milliseconds time) = 0;
};

/// Runs them as they are installed.
class InstalledCommands final : public SlurmCommands {
 public:
  /// `folder` of the commands (empty: by PATH); `conf`: the slurm.conf they shall read (empty: as
  /// they find it).
  InstalledCommands(std::string folder, std::string conf)
      : folder_(std::move(folder)), conf_(std::move(conf)) {}
  [[nodiscard]] Result<Said> run(const std::vector<std::string>& words) override;
  void pause(std::chrono::milliseconds time) override;

 private:
  const std::string folder_, conf_;
};

/// Its output; what it complained of as the error if it failed.
[[nodiscard]] Result<std::string> output_of(SlurmCommands& commands,
                                            const std::vector<std::string>& words);

}  // namespace berth::slurm
