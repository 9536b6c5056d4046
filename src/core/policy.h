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

/// What a policy is, known before it runs: what it must be told, what is to be kept for it, and
/// what it may do.
struct PolicyTraits {
  Need needs = Need::Nothing;
  bool preempts = false;        // it takes devices from jobs that run
  bool shares_devices = false;  // it puts several jobs on one device: who is where is kept for it
  bool resizes = false;         // it may grant another number of devices than a job asked for
  bool manages_power = false;   // it switches nodes on and off
  bool wants_topology = false;  // it asks the state's topology index, which is kept for it then
  /// It asks the state who is on which server, which is kept for it then if servers are believed to
  /// have an effect.
  bool minds_neighbours = false;
  bool sets_cores = false;       // it shares out cores: they do not limit where a job fits
  bool sets_memory = false;      // the same for the memory of servers
  Capabilities also_uses = {};   // beyond what the other answers say
  bool decides_retries = false;  // retries() decides even where users have a say of their own
  /// It shares by what everybody has used, which counts half after so long (zero: for ever), and
  /// wants to know what that was before the run. Nothing: it does not.
  std::optional<Duration> shares_by_use = std::nullopt;
  bool may_refuse = false;  // admit() may refuse a job that fits, so that people are told before

  /// It cannot work where devices are only counted.
  [[nodiscard]] bool needs_devices() const noexcept {
    return shares_devices || resizes || manages_power;
  }
  /// Everything it may plan beyond starting, stopping and starting again: what it loses where that
  /// cannot be done.
  [[nodiscard]] Capabilities uses() const noexcept {
    const auto if_so = [](bool is_so, Ability ability) {
      return is_so ? Capabilities{ability} : Capabilities{};
    };
    return also_uses | if_so(shares_devices, Ability::Share) |
           if_so(manages_power, Ability::Power) | if_so(sets_cores, Ability::Cores) |
           if_so(sets_memory, Ability::HostMemory);
  }
};

class Policy {
 public:
  virtual ~Policy() = default;
  /// Persisted: new behaviour, new name.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// The same for the whole of its life.
  [[nodiscard]] virtual PolicyTraits traits() const noexcept { return {}; }

  /// Called once, before the first event.
  virtual void begin(const View&) {}
  /// Asked of each job before on_arrival(). May refuse it for good (a quota it can never meet);
  /// no other hook hears of it then. What fits no state of the cluster is refused before, unasked.
  [[nodiscard]] virtual std::optional<Refusal> admit(const View&, JobId) { return std::nullopt; }
  virtual void on_arrival(const View&, JobId) {}
  /// The job is over: completed, failed, cancelled or killed. Called after its devices came back.
  virtual void on_departure(const View&, JobId) {}
  /// The job lost its devices without a decision of ours and waits again: its node is lost (after
  /// on_capacity_change() of that node), or its attempt failed and is tried again.
  virtual void on_requeue(const View&, JobId) {}
  /// An attempt of the job has failed on these devices. True: it is to be tried again from its
  /// beginning; it waits then and on_requeue() follows. False: it is over, and has failed. In an
  /// open run asked only where the executor leaves it to the policy (Event::asks_policy).
  [[nodiscard]] virtual bool retries(const View&, JobId, FailureKind, std::span<const Slice>) {
    return false;
  }
  /// What people are entitled to from now on.
  virtual void on_entitlements(const View&, const Entitlements&) {}
  /// A node takes jobs that did not, or does not that did, or begins to boot. Also after a plan
  /// switched it off, once that is carried out.
  virtual void on_capacity_change(const View&, NodeId) {}
  /// In an open run: a running job's rate or work is not what it was to be expected. Whoever keeps
  /// an order by work left looks at it again.
  virtual void on_rate(const View&, JobId) {}

  /// Once per instant at which something happened or that was wished for, after all its hooks.
  virtual void decide(const View& view, Plan& plan, Rng& rng) = 0;
  /// Asked after every decide(): the earliest time, later than now, at which decide() must be
  /// called again even if nothing happens. The last answer alone counts.
  [[nodiscard]] virtual std::optional<Time> next_wakeup(const View&) { return std::nullopt; }
};

}  // namespace berth
