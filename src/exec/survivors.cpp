#include "exec/survivors.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "exec/process_table.h"
#include "exec/shim_protocol.h"

namespace berth {

Result<void> end_survivors(const std::string& claim, const AttemptCgroups& groups) {
  using namespace std::chrono_literals;
  const std::string mark = std::string(kClaimVariable) + "=" + claim;
  const auto give_up = std::chrono::steady_clock::now() + 5s;
  static_cast<void>(groups.kill_all());
  static_cast<void>(groups.set_frozen(false));
  for (auto pause = 1ms;; pause = std::min(pause * 2, 100ms)) {
    const auto found = processes_with(mark);
    if (found.empty()) break;
    for (const ProcessRow& row : found) send_signal(row, SIGKILL);
    if (std::chrono::steady_clock::now() > give_up)
      return fail("process " + std::to_string(found.front().pid) + " of " + claim +
                  " cannot be ended");
    std::this_thread::sleep_for(pause);
  }
  groups.remove();
  return {};
}

}  // namespace berth
