// Nodes that sleep: which are off, which go down or come up, and the programs that do it. To the
// engine a node is on, off or boots; here it is known what was asked of whom and since when. Every
// change is on record ("power/NODE") before a program is started, so that a scheduler that dies in
// the middle knows afterwards what it may not start jobs on: it asks again, and programs must bear
// that.
//
//   on -> suspending (program, then suspend_timeout) -> off -> booting (program, then the check
//   until it says yes, resume_timeout in all) -> on
//
// A suspend program that fails leaves a node of which nobody knows whether it is on: it counts as
// off, so that nothing starts there, until the resume program has brought it back. A node that does
// not boot is tried three times; then it is down, on record, until somebody resumes it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/log_limit.h"
#include "core/cluster_state.h"
#include "core/executor.h"
#include "daemon/energy_meter.h"
#include "daemon/journal_writer.h"
#include "daemon/power_programs.h"
#include "model/cluster.h"

namespace berth {

struct NodePrograms {
  std::string suspend{}, resume{}, resume_fail{}, check{};  // absolute paths; empty: none
};

struct PowerOptions {
  NodePrograms programs;
  std::map<std::string, NodePrograms> nodes{};  // of single nodes; what is empty is as above
  std::set<std::string> stay_on{};              // never suspended
  std::string user{};                           // whose rights programs have; empty: ours
  Duration program_timeout = std::chrono::seconds{60};
  Duration suspend_timeout = std::chrono::seconds{120};
  Duration resume_timeout = std::chrono::seconds{600};
  double suspend_rate = 60, resume_rate = 300;  // nodes a minute; 0: no limit
  // What this machine counts of its energy; empty: nothing is read.
  std::string nvml_library = "libnvidia-ml.so.1";
  std::string powercap = "/sys/class/powercap";
  [[nodiscard]] NodePrograms of(const std::string& node) const;
  [[nodiscard]] bool switches(const std::string& node) const;
};
/// A node that these cannot switch stays on whatever a policy wants.
void keep_on(Cluster& cluster, const PowerOptions& options);
[[nodiscard]] bool can_switch_any(const Cluster& cluster);
/// What an administrator should know before they are needed: programs that are not there.
[[nodiscard]] std::vector<std::string> warnings_of(const PowerOptions& options,
                                                   const Cluster& cluster);

inline constexpr const char* kPowerSetting = "power/";  // and the node's name

class NodePower {
 public:
  enum class State : std::uint8_t { On, Suspending, Off, Booting };
  struct Parts {
    const Cluster& cluster;
    PowerOptions options;
    ProgramRunner* runner = nullptr;  // absent: nobody can switch anything
    Journal& journal;
    const LiveClock& clock;
    std::uint64_t generation = 0;
    /// No process of a job is on the node any more.
    std::function<bool(NodeId)> is_vacant;
    Logger* log = nullptr;
    LogLimit* limit = nullptr;
  };
  /// `settings`: what the life before has written down.
  NodePower(Parts parts, const std::map<std::string, std::string>& settings);

  /// A new engine hears how nodes stand. Where nobody manages power all nodes are switched on.
  void begin_engine(bool is_managed, std::vector<Event>& events);
  /// An engine that stands where the last one stood knows how nodes stood then: what it asked for
  /// and nobody wrote down is asked for now, and it hears of what has come about since.
  void resume_engine(const std::function<PowerState(NodeId)>& known,
                     const std::function<bool(NodeId)>& is_in_service, std::vector<Event>& events);
  void switch_off(NodeId node);
  void switch_on(NodeId node);
  /// A person says that the node is to be used: it is switched on if it is off.
  void resume(NodeId node, std::vector<Event>& events);
  void handle(const ProgramEnd& end);
  /// Appends what the engine has to know of.
  void collect(Time now, std::vector<Event>& events);
  /// When something is due without anybody's word; kNever: nothing is.
  [[nodiscard]] Time next_due() const;
  /// Writes what has changed, then starts programs.
  [[nodiscard]] Result<void> flush();

  [[nodiscard]] State state(NodeId node) const { return rows_[node.value].state; }
  [[nodiscard]] bool is_usable(NodeId node) const { return state(node) == State::On; }
  /// By when a node that boots is ready, by what boots have taken so far.
  [[nodiscard]] std::optional<Time> ready_about(NodeId node) const;
  /// Its suspend program has failed: it may still draw power.
  [[nodiscard]] bool may_be_on(NodeId node) const { return rows_[node.value].is_unsure; }

 private:
  enum class Step : std::uint8_t { None, Suspend, Settle, Resume, Check };
  struct Row {
    State state = State::On;
    Step step = Step::None;
    bool is_asked = false;     // its program has to be started
    std::uint64_t ticket = 0;  // of the program that runs
    Time due = kNever;         // of the step: its program starts, or its time is over
    Time since{};              // of the first program of this state
    bool is_wanted = false;    // while it goes down: on again afterwards
    bool is_unsure = false;    // its suspend program failed
    int tries = 0;
    std::string why{};        // for people
    bool is_changed = false;  // not on record yet
  };
  [[nodiscard]] bool can_switch(NodeId node) const;
  void begin_suspend(Row& row);
  void begin_boot(Row& row);
  void ask(Row& row, Step step, Time due);
  void forget_program(Row& row);
  [[nodiscard]] static bool comes_up(const Row& row) noexcept;
  void end_suspend(NodeId node, const ProgramEnd& end);
  void end_resume(NodeId node, const ProgramEnd& end);
  void set_off(Row& row);
  void set_on(NodeId node);
  void fail_boot(NodeId node, const std::string& why);
  void give_up(NodeId node, const std::string& why);
  void start_programs();
  [[nodiscard]] bool is_in_time(const Row& row, Time now) const;
  [[nodiscard]] bool has_room(Step step, Time now);
  [[nodiscard]] std::string record_of(const Row& row) const;
  void complain(std::string_view cause, NodeId node, std::string_view program,
                const std::string& why) const;
  [[nodiscard]] const std::string& name(NodeId node) const {
    return parts_.cluster.nodes[node.value].name;
  }

  Parts parts_;
  std::vector<Row> rows_;
  std::vector<NodePrograms> programs_;
  std::map<std::uint64_t, NodeId> by_ticket_;
  std::uint64_t next_ticket_;
  std::vector<Event> events_;
  std::vector<SettingRecord> records_;    // beside the states
  std::vector<ProgramOrder> farewells_;   // resume_fail programs: nobody waits for them
  std::deque<Time> suspended_, resumed_;  // programs of the last minute
  std::optional<Duration> boot_took_;
};

[[nodiscard]] std::string_view to_string(NodePower::State state) noexcept;
/// What each node is charged as while no job is on it. One that goes down draws what an idle one
/// does until it is off, and so does one whose suspend program has failed.
[[nodiscard]] std::vector<NodeUse> node_uses(const NodePower& power, const Cluster& cluster);

}  // namespace berth
