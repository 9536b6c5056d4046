// The programs of an administrator that switch nodes off and on. They are started without a shell,
// with the node's name as the only argument, and are killed with everything they started when their
// time is over, or with the scheduler. What became of one is told later.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth {

struct ProgramOrder {
  std::uint64_t ticket = 0;
  std::string program;
  std::string node;  // its name
  std::string user;  // whose rights it has; empty: ours
  Duration limit{};
};

struct ProgramEnd {
  std::uint64_t ticket = 0;
  bool is_good = false;
  std::string why{};  // not: "exit 3: no such chassis", "killed after 60 s"
};

class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;
  virtual void run(ProgramOrder order) = 0;
  /// Kills it; its end is told all the same.
  virtual void kill(std::uint64_t ticket) = 0;
};

class PowerPrograms final : public ProgramRunner {
 public:
  /// `ended` is called in a thread of its own.
  [[nodiscard]] static Result<std::unique_ptr<PowerPrograms>> open(
      std::function<void(ProgramEnd)> ended);
  /// Kills what still runs.
  ~PowerPrograms() override;
  PowerPrograms(const PowerPrograms&) = delete;
  PowerPrograms& operator=(const PowerPrograms&) = delete;
  void run(ProgramOrder order) override;
  void kill(std::uint64_t ticket) override;

 private:
  class Work;
  explicit PowerPrograms(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

}  // namespace berth
