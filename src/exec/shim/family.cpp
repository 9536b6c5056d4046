#include "exec/shim/family.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <set>

#include <unistd.h>

#include "exec/process_table.h"

namespace berth {

namespace {

constexpr int kRounds = 64;  // against a family that forks as fast as we look

/// Does it to each process once, and again to those that were made meanwhile.
template <class Action>
void for_all(Action action) {
  std::set<std::pair<pid_t, std::uint64_t>> done;
  for (int round = 0; round < kRounds; ++round) {
    bool is_new = false;
    for (const ProcessRow& row : descendants_of(::getpid())) {
      if (!done.emplace(row.pid, row.start).second) continue;
      is_new = true;
      action(row);
    }
    if (!is_new) return;
  }
}

/// Until two looks find nobody who moves: a child whose parent ended during the first look is in
/// nobody's family for a moment. One that waits in the kernel (D: also a parent whose vfork child
/// was stopped before its exec) stops when it comes out.
void stop_all() {
  int quiet = 0;
  for (int round = 0; round < kRounds && quiet < 2; ++round) {
    ++quiet;
    for (const ProcessRow& row : descendants_of(::getpid())) {
      if (row.is_stopped()) continue;
      send_signal(row, SIGSTOP);
      if (row.state != 'D') quiet = 0;
    }
    const timespec moment{0, quiet == 0 ? 1'000'000 : 0};
    ::nanosleep(&moment, nullptr);
  }
}

}  // namespace

void Family::signal(int number) const {
  // Once over the list: a handler may well start a process of its own, which is not meant.
  for (const ProcessRow& row : descendants_of(::getpid())) send_signal(row, number);
}

void Family::signal_steps(int number) const {
  const std::vector<ProcessRow> all = descendants_of(::getpid());
  std::set<pid_t> in_steps;
  for (const ProcessRow& row : all)
    if (has_variable(row.pid, "SLURM_STEP_ID=")) in_steps.insert(row.pid);
  // A task that is between two programs has no environment, and who wipes theirs stays in the step.
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (const ProcessRow& row : all)
      if (in_steps.contains(row.parent)) is_new |= in_steps.insert(row.pid).second;
  }
  for (const ProcessRow& row : all)
    if (in_steps.contains(row.pid)) send_signal(row, number);
}

void Family::kill() const {
  static_cast<void>(groups_.kill_all());
  for_all([](const ProcessRow& row) { send_signal(row, SIGKILL); });
  // A frozen v1 group holds even the dead.
  if (is_frozen_) static_cast<void>(groups_.set_frozen(false));
}

void Family::suspend() {
  if (is_suspended_) return;
  is_suspended_ = true;
  is_frozen_ = groups_.set_frozen(true);
  if (!is_frozen_) stop_all();
}

void Family::resume() {
  if (!is_suspended_) return;
  is_suspended_ = false;
  if (is_frozen_)
    static_cast<void>(groups_.set_frozen(false));
  else
    signal(SIGCONT);
  is_frozen_ = false;
}

bool Family::let_the_killed_go() const {
  std::vector<ProcessRow> killed, others;
  for (const ProcessRow& row : descendants_of(::getpid()))
    (is_being_killed(row.pid) ? killed : others).push_back(row);
  if (killed.empty()) return false;
  // A signal that waits is heard before the first step.
  for (const ProcessRow& row : others) send_signal(row, SIGSTOP);
  static_cast<void>(groups_.set_frozen(false));
  const auto is_there = [](const ProcessRow& row) {
    const auto now = process_row(row.pid);
    return now && now->start == row.start && now->is_alive();
  };
  const timespec moment{0, 1'000'000};
  for (int round = 0; round < kRounds && std::any_of(killed.begin(), killed.end(), is_there);
       ++round)
    ::nanosleep(&moment, nullptr);
  static_cast<void>(groups_.set_frozen(true));
  for (const ProcessRow& row : others) send_signal(row, SIGCONT);
  return true;
}

void Family::bind(const std::vector<std::int32_t>& cores) const {
  // Both: a smaller set of the group binds everybody, a larger one frees nobody who was bound.
  static_cast<void>(groups_.set_cores(cores));
  for_all([&](const ProcessRow& row) { bind_process(row.pid, cores); });
}

}  // namespace berth
