// The policy interface. A policy is a deterministic function of the view, its own state and the
// rng. It never blocks, does I/O or keeps time; it does not know which executor is below it. Hooks
// keep its incremental state; decide() is called once per instant, after everything due then was
// absorbed, and writes its decision into the Plan. It asks for its own wake-ups; nothing ticks for
// nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "core/capabilities.h"
#include "core/plan.h"
#include "core/view.h"

namespace berth {

struct Refusal {
  Reason reason = Reason::None;
  std::string text;  // one sentence with numbers, for the user
};

class Policy {
 public:
  virtual ~Policy() = default;
  [[nodiscard]] virtual std::string_view name()
      const noexcept = 0;  // persisted: new behaviour, new name
  [[nodiscard]] virtual Need needs() const noexcept { return Need::Nothing; }

  /// True: it puts several jobs on one device, so the cluster keeps track of who is where.
  [[nodiscard]] virtual bool shares_devices() const noexcept { return false; }

  /// True: it may grant a job another number of devices than it asked for.
  [[nodiscard]] virtual bool resizes() const noexcept { return false; }

  /// True: it switches nodes on and off.
  [[nodiscard]] virtual bool manages_power() const noexcept { return false; }

  /// It cannot work where devices are only counted.
  [[nodiscard]] bool needs_devices() const noexcept {
    return shares_devices() || resizes() || manages_power();
  }

  /// True: it asks the state's topology index, which is kept for it then.
  [[nodiscard]] virtual bool wants_topology() const noexcept { return false; }

  /// True: it asks the state who is on which server, which is kept for it then if servers are
  /// believed to have an effect.
  [[nodiscard]] virtual bool minds_neighbours() const noexcept { return false; }

  /// True: it shares out the cores of servers itself, so that they do not limit where a job fits.
  [[nodiscard]] virtual bool sets_cores() const noexcept { return false; }
  /// The same for their memory.
  [[nodiscard]] virtual bool sets_memory() const noexcept { return false; }

  /// Everything it may plan beyond starting, stopping and starting again: what it loses where that
  /// cannot be done.
  [[nodiscard]] Capabilities uses() const noexcept {
    const auto if_so = [](bool is_so, Ability ability) {
      return is_so ? Capabilities{ability} : Capabilities{};
    };
    return also_uses() | if_so(shares_devices(), Ability::Share) |
           if_so(manages_power(), Ability::Power) | if_so(sets_cores(), Ability::Cores) |
           if_so(sets_memory(), Ability::HostMemory);
  }
  /// Beside what the other answers say.
  [[nodiscard]] virtual Capabilities also_uses() const noexcept { return {}; }
  /// True: retries() decides whether an attempt that failed is repeated, also where users have a
  /// say of their own.
  [[nodiscard]] virtual bool decides_retries() const noexcept { return false; }

  /// It shares by what everybody has used, which counts half after so long (zero: for ever), and
  /// wants to know what that was before the run. Nothing: it does not.
  [[nodiscard]] virtual std::optional<Duration> shares_by_use() const noexcept {
    return std::nullopt;
  }

  /// Called once, before the first event.
  virtual void begin(const View&) {}
  /// True: admit() may refuse a job that fits the cluster, so that people are told before.
  [[nodiscard]] virtual bool may_refuse() const noexcept { return false; }
  /// May refuse a new job for good (a quota it can never meet). What fits no node is refused
  /// before.
  [[nodiscard]] virtual std::optional<Refusal> admit(const View&, JobId) { return std::nullopt; }
  virtual void on_arrival(const View&, JobId) {}
  /// The job is over: completed, failed, cancelled or killed. Called after its devices came back.
  virtual void on_departure(const View&, JobId) {}
  /// The job lost its devices without a decision of ours (node lost) and waits again.
  virtual void on_requeue(const View&, JobId) {}
  /// An attempt of the job has failed on these devices. True: it is to be tried again from its
  /// beginning; it waits then and on_requeue() follows. False: it is over, and has failed.
  [[nodiscard]] virtual bool retries(const View&, JobId, FailureKind, std::span<const Slice>) {
    return false;
  }
  /// What people are entitled to from now on.
  virtual void on_entitlements(const View&, const Entitlements&) {}
  virtual void on_capacity_change(const View&, NodeId) {}
  /// In an open run: a running job's rate or work is not what it was to be expected. Whoever keeps
  /// an order by work left looks at it again.
  virtual void on_rate(const View&, JobId) {}

  virtual void decide(const View& view, Plan& plan, Rng& rng) = 0;
  /// Earliest time at which decide() must be called again even if nothing happens.
  [[nodiscard]] virtual std::optional<Time> next_wakeup(const View&) { return std::nullopt; }
};

}  // namespace berth
