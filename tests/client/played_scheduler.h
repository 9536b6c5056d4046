// A scheduler played by a script: a small cluster with a few jobs, answering the routes of the API
// as the real one does. For end-to-end tests of the command line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/scripted_server.h"
#include "e2e/cli/program.h"

namespace berth::test {

class PlayedScheduler {
 public:
  PlayedScheduler();

  /// Answers instead of the script when it returns something with a status above 0.
  std::function<Told(const Asked&)> first;
  /// The jobs, as the API shows them; guarded by the mutex while the server lives.
  void set_job(const nlohmann::json& job);
  [[nodiscard]] ScriptedServer& server() { return *server_; }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }
  [[nodiscard]] std::string socket() const { return folder_ / "berth.sock"; }

  /// `berth ARGUMENTS` with BERTH_SOCKET set; as a shell command so that tests read as people type.
  [[nodiscard]] Ran run(const std::string& arguments) const;
  /// Any shell command in which $BERTH is the program, sbatch and its like are in the PATH.
  [[nodiscard]] Ran sh(const std::string& command) const;

  /// The body of the last request of this method and path.
  [[nodiscard]] nlohmann::json sent(const std::string& method, const std::string& path) const;

 private:
  [[nodiscard]] Told answer(const Asked& asked);
  [[nodiscard]] Told list_jobs(const Asked& asked);
  [[nodiscard]] Told job_route(const Asked& asked, const std::string& rest);
  [[nodiscard]] Told submit(const Asked& asked);
  [[nodiscard]] Told steps(const Asked& asked);
  [[nodiscard]] Told act(const Asked& asked);

  TempFolder folder_;
  mutable std::mutex mutex_;
  std::vector<nlohmann::json> jobs_;
  std::uint64_t next_ = 100;
  std::unique_ptr<ScriptedServer> server_;
};

/// {"error":{"code":…,"messages":[…]}}
[[nodiscard]] Told refusal(int status, const std::string& message);

}  // namespace berth::test
