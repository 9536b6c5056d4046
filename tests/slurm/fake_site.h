// A Slurm's site for tests of setup: a folder with slurm.conf, and commands that keep state as
// slurmctld and slurmdbd do. Settings are in force after a reconfigure, which fails where Slurm's
// would; any command can be made to fail.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "slurm/commands.h"
#include "slurm/setup.h"
#include "support/temporary_directory.h"

namespace berth::test {

struct FakeJob {
  std::uint32_t id = 0;
  std::string name = "train", admin_comment{}, required_nodes{}, reason = "JobHeldUser";
  std::uint32_t priority = 0;
  std::int64_t eligible = 0;
  std::string tasks{};  // of an array that waits together
  std::string qos = "normal";
};

class FakeSite final : public slurm::SlurmCommands {
 public:
  explicit FakeSite(const std::string& conf_text);

  [[nodiscard]] Result<slurm::Said> run(const std::vector<std::string>& words) override;
  void pause(std::chrono::milliseconds) override { ++pauses; }

  [[nodiscard]] std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  [[nodiscard]] std::string conf() const { return path("slurm.conf"); }
  void write(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::optional<std::string> read(const std::string& name) const;
  /// Every file with its text and mode: what undo must bring back.
  [[nodiscard]] std::map<std::string, std::string> everything() const;
  [[nodiscard]] std::string qos_table() const;
  [[nodiscard]] slurm::SetupWishes wishes() const;
  [[nodiscard]] FakeJob* job(std::uint32_t id);

  // --- what tests set and look at
  int fails_at = 0;             // the n-th command from now; 0: none
  bool is_down = false;         // slurmctld does not answer
  bool ignores_script = false;  // the script has no effect
  std::string refused_id{};     // scontrol does nothing with this job
  std::string enforce = "associations,limits,qos";
  std::string live_plugins{}, live_parameters{};
  std::vector<FakeJob> jobs{};
  std::map<std::string, std::string> qos{{"normal", ""}, {"long", "7"}};
  std::vector<std::string> log{};
  int pauses = 0;

 private:
  slurm::Said answer(const std::vector<std::string>& words);
  slurm::Said scontrol(const std::vector<std::string>& words);
  slurm::Said sacctmgr(const std::vector<std::string>& words);
  slurm::Said reconfigure();
  slurm::Said submit();
  [[nodiscard]] std::string queue() const;

  TemporaryDirectory dir_;
  std::uint32_t next_id_ = 1000;
};

}  // namespace berth::test
