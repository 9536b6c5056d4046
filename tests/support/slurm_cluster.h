// A real Slurm of several nodes on this machine, for tests: made by ../shared/slurm/up from the chroot
// of a Debian suite, gone with its owner. Skips are for the test to say: why_not() tells the reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "slurm/process.h"

namespace berth::test {

class SlurmCluster {
 public:
  /// Nothing, or why there can be no Slurm of this suite here: in words of tests/allowed_skips.txt.
  [[nodiscard]] static std::optional<std::string> why_not(const std::string& suite);

  /// `options` for up: {"-n", "4", "--hold"}. Fails the test if it does not come up.
  SlurmCluster(const std::string& suite, const std::vector<std::string>& options);
  ~SlurmCluster();
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  [[nodiscard]] bool is_up() const noexcept { return is_up_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string commands() const { return path_ + "/bin"; }
  /// The link program, built for this Slurm, with what runs it there. Empty if it does not build.
  [[nodiscard]] std::vector<std::string> link_program();

  /// One of its commands, with its output; fails the test if that fails.
  std::string run(const std::vector<std::string>& words);
  /// sbatch with these words: the job's id.
  std::uint32_t submit(std::vector<std::string> words);
  void kill_controller();
  void start_controller();

 private:
  std::string suite_, path_;
  bool is_up_ = false;
};

}  // namespace berth::test
