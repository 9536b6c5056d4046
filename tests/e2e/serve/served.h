// A real `berth serve` in a folder of its own: begun, killed and begun again as a test likes. Its
// jobs take locks on their own name and on their devices, so that the kernel, not a sample of the
// process table, notices two at once. Whatever happens, nothing is left running.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <nlohmann/json.hpp>

#include "client/http.h"
#include "e2e/cli/program.h"

namespace berth::test {

inline constexpr std::chrono::seconds kServedPatience{60};
/// Looks again and again until it is so; false after a minute.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

class Served {
 public:
  /// `place`: where the state is; empty: in the folder.
  explicit Served(std::string place = "");
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// Begins a life and waits until it answers. False: it left before.
  bool begin(const Environment& environment = {});
  /// Done in the process that becomes the scheduler, each time; false ends it. For mounts of its
  /// own, another user, other limits.
  void set_before(std::function<bool()> before) { before_ = std::move(before); }
  [[nodiscard]] pid_t pid() const noexcept { return daemon_; }
  /// Without waiting.
  void launch(const Environment& environment = {});
  void kill_now();                // -9
  [[nodiscard]] int stop();       // SIGTERM; its exit code
  void hang_up();                 // SIGHUP: reads the configuration again
  [[nodiscard]] bool is_alive();  // reaps it
  [[nodiscard]] bool answers();
  /// How often it died of a crash point.
  [[nodiscard]] int crashes() const noexcept { return crashes_; }
  /// How the last life ended by itself: its exit code, or the signal below zero.
  [[nodiscard]] int last_exit() const noexcept { return exit_; }

  [[nodiscard]] const TempFolder& folder() const noexcept { return folder_; }
  [[nodiscard]] std::string socket() const { return state_ + "/berth.sock"; }
  [[nodiscard]] const std::string& state() const noexcept { return state_; }
  [[nodiscard]] std::string config() const { return folder_ / "serve.yaml"; }
  [[nodiscard]] std::string log() const { return folder_.read("log"); }
  [[nodiscard]] client::Endpoint endpoint() const;

  /// A connection per request: the other side may have died meanwhile.
  [[nodiscard]] std::optional<client::HttpReply> ask(const std::string& method,
                                                     const std::string& target,
                                                     const nlohmann::json& body = {},
                                                     const std::string& key = "") const;
  /// The number, if it was acknowledged.
  [[nodiscard]] std::optional<std::uint64_t> submit(const nlohmann::json& spec,
                                                    const std::string& key = "") const;
  [[nodiscard]] std::string state_of(std::uint64_t job) const;
  /// As the API shows it; null if it does not.
  [[nodiscard]] nlohmann::json view_of(std::uint64_t job) const;
  [[nodiscard]] bool is_over(std::uint64_t job) const;
  [[nodiscard]] std::size_t shims() const;

  /// A job that writes its start and its end into out/NAME, sleeps in between, and complains there
  /// if another attempt of it, or another job on its device, is alive.
  [[nodiscard]] nlohmann::json job(const std::string& name, const std::string& seconds,
                                   int gpus = 1) const;
  [[nodiscard]] std::string written_by(const std::string& name) const;

 private:
  void clean_up();

  TempFolder folder_;
  std::string state_;
  std::function<bool()> before_;
  pid_t daemon_ = 0;
  int exit_ = 0;
  int crashes_ = 0;
};

/// Words that begin a line of this text, counted.
[[nodiscard]] std::map<std::string, int> lines_by_word(const std::string& text);

}  // namespace berth::test
