#include "exec/survivors.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "base/boot_clock.h"
#include "exec/process_table.h"
#include "exec/shim_protocol.h"

namespace berth {

namespace {

/// What runs below a guard has lost its shim: it goes when they are gone.
bool is_guarded(const Claim& claim) {
  if (claim.guard <= 1 || claim.boot_id != boot_id()) return false;
  const auto guard = process_row(claim.guard);
  return guard && guard->is_alive() && guard->start == claim.guard_start;
}

}  // namespace

Result<bool> end_survivors(const std::string& path, const std::optional<Claim>& claim,
                           const AttemptCgroups& groups) {
  using namespace std::chrono_literals;
  const std::string mark = std::string(kClaimVariable) + "=" + path;
  const auto give_up = std::chrono::steady_clock::now() + 2s;
  bool were_there = groups.has_processes();
  static_cast<void>(groups.kill_all());
  static_cast<void>(groups.set_frozen(false));
  // A process on its way from one program to the next has no environment for a moment: gone is who
  // is not seen twice.
  int quiet = 0;
  for (auto pause = 1ms; quiet < 2; pause = std::min(pause * 2, 100ms)) {
    const auto found = processes_with(mark);
    for (const ProcessRow& row : found) send_signal(row, SIGKILL);
    were_there = were_there || !found.empty();
    const bool is_over = found.empty() && !(claim && is_guarded(*claim));
    quiet = is_over ? quiet + 1 : 0;
    if (!is_over && std::chrono::steady_clock::now() > give_up) {
      const std::string who = found.empty() ? "guard " + std::to_string(claim->guard)
                                            : "process " + std::to_string(found.front().pid);
      return fail(who + " of " + path + " cannot be ended");
    }
    std::this_thread::sleep_for(pause);
  }
  groups.remove();
  return were_there;
}

}  // namespace berth
