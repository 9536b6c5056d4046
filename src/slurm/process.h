// Runs a command of somebody else's and collects what it says: no shell in between, a process group
// of its own, a deadline after which all of it is killed, and a bound on what it may say. The
// environment is passed on with the changes asked for; of our files only the three streams are.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace berth::slurm {

struct Command {
  std::vector<std::string> words;  // the first is the program: a path, or a name to find by PATH
  std::vector<std::pair<std::string, std::string>> environment{};  // set on top of ours
  std::vector<std::string> without{};  // beginnings of names that are not passed on
};

struct Limits {
  std::chrono::milliseconds time{30'000};
  std::size_t output_bytes = std::size_t{1} << 30;
};

enum class Ending : std::uint8_t {
  Exited,
  Killed,      // by a signal
  OutOfTime,   // we killed it
  TooMuch,     // it said more than the bound, and we killed it
  NotStarted,  // there is no such program, or it may not be run
};
struct Outcome {
  Ending ending = Ending::NotStarted;
  int code = 0;  // of its exit, or the signal, or errno where it was not started
  std::string out{}, error{};
};

/// Waits until it has ended, or its deadline.
[[nodiscard]] Outcome run_command(const Command& command, const Limits& limits);

/// A program that stays, spoken to over one socket that is its stdin and stdout. Its stderr is
/// ours to read as well. Killed with its owner.
class Child {
 public:
  Child() = default;
  Child(Child&& other) noexcept { *this = std::move(other); }
  Child& operator=(Child&& other) noexcept;
  ~Child() { stop(); }

  [[nodiscard]] static Result<Child> start(const Command& command);

  [[nodiscard]] bool is_running() const noexcept { return pid_ > 0; }
  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  /// What it has said on stderr since the last time, up to 64 KiB of it.
  [[nodiscard]] std::string complaints();
  /// Kills its process group and waits for it.
  void stop() noexcept;

 private:
  pid_t pid_ = 0;
  Fd socket_, error_;
};

}  // namespace berth::slurm
