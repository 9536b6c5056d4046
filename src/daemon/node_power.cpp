#include "daemon/node_power.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/crash_point.h"

namespace berth {

namespace {

constexpr Duration kMinute = std::chrono::minutes{1};
constexpr Duration kCheckPause = std::chrono::seconds{1};
constexpr Duration kRetryPause = std::chrono::seconds{2};  // and twice as long the next time
constexpr int kMostTries = 3;

void take(const std::string& own, std::string& into) {
  if (!own.empty()) into = own;
}

/// "off: its suspend program failed" is a state and, for people, why.
NodePower::State state_from(std::string_view value) {
  const std::string_view word = value.substr(0, value.find(':'));
  for (const auto state :
       {NodePower::State::Suspending, NodePower::State::Off, NodePower::State::Booting}) {
    if (word == to_string(state)) return state;
  }
  return NodePower::State::On;
}

constexpr std::string_view kUnsure = "the suspend program failed";

}  // namespace

std::string_view to_string(NodePower::State state) noexcept {
  switch (state) {
    case NodePower::State::On: break;
    case NodePower::State::Suspending: return "suspending";
    case NodePower::State::Off: return "off";
    case NodePower::State::Booting: return "booting";
  }
  return "on";
}

std::vector<NodeUse> node_uses(const NodePower& power, const Cluster& cluster) {
  std::vector<NodeUse> uses(cluster.nodes.size(), NodeUse::Idle);
  for (std::uint32_t i = 0; i < uses.size(); ++i) {
    const auto state = power.state(NodeId{i});
    if (state == NodePower::State::Booting) uses[i] = NodeUse::Booting;
    if (state == NodePower::State::Off && !power.may_be_on(NodeId{i})) uses[i] = NodeUse::Off;
  }
  return uses;
}

NodePrograms PowerOptions::of(const std::string& node) const {
  NodePrograms all = programs;
  if (const auto own = nodes.find(node); own != nodes.end()) {
    take(own->second.suspend, all.suspend);
    take(own->second.resume, all.resume);
    take(own->second.resume_fail, all.resume_fail);
    take(own->second.check, all.check);
  }
  return all;
}

bool PowerOptions::switches(const std::string& node) const {
  const NodePrograms all = of(node);
  const auto is_there = [](const std::string& program) {
    return !program.empty() && ::access(program.c_str(), X_OK) == 0;
  };
  return is_there(all.suspend) && is_there(all.resume) && !stay_on.contains(node);
}

void keep_on(Cluster& cluster, const PowerOptions& options) {
  for (Node& node : cluster.nodes) node.stays_on = !options.switches(node.name);
}

bool can_switch_any(const Cluster& cluster) {
  return std::ranges::any_of(cluster.nodes, [](const Node& node) { return !node.stays_on; });
}

std::vector<std::string> warnings_of(const PowerOptions& options, const Cluster& cluster) {
  std::vector<std::string> warnings;
  std::set<std::string> seen;
  const auto look = [&](const char* key, const std::string& program) {
    if (program.empty() || !seen.insert(program).second) return;
    if (::access(program.c_str(), X_OK) != 0)
      warnings.push_back(
          fmt::format("power: {} {} cannot be executed: nodes that need it stay on", key, program));
  };
  for (const Node& node : cluster.nodes) {
    const NodePrograms programs = options.of(node.name);
    look("suspend_program", programs.suspend);
    look("resume_program", programs.resume);
    look("resume_fail_program", programs.resume_fail);
    look("check_program", programs.check);
  }
  const auto unknown = [&](const std::string& name) {
    if (std::ranges::find(cluster.nodes, name, &Node::name) == cluster.nodes.end())
      warnings.push_back(fmt::format("power: there is no node '{}'", name));
  };
  for (const auto& [name, programs] : options.nodes) unknown(name);
  for (const std::string& name : options.stay_on) unknown(name);
  return warnings;
}

NodePower::NodePower(Parts parts, const std::map<std::string, std::string>& settings)
    : parts_(std::move(parts)),
      rows_(parts_.cluster.nodes.size()),
      next_ticket_(parts_.generation << 32U) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::string& name = parts_.cluster.nodes[i].name;
    programs_.push_back(parts_.options.of(name));
    const auto found = settings.find(kPowerSetting + name);
    if (found == settings.end()) continue;
    Row& row = rows_[i];
    row.state = state_from(found->second);
    const std::size_t colon = found->second.find(": ");
    if (colon != std::string::npos) row.why = found->second.substr(colon + 2);
    row.is_unsure = row.why.starts_with(kUnsure);
    row.since = parts_.clock.now();
    // Whether the program of the life before has done it nobody knows: it is asked again.
    if (row.state == State::Suspending) begin_suspend(row);
    if (row.state == State::Booting) begin_boot(row);
    row.is_changed = record_of(row) != found->second;
  }
}

void NodePower::begin_engine(bool is_managed, std::vector<Event>& events) {
  events_.clear();
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.state == State::On) continue;
    if (!is_managed) switch_on(NodeId{i});
    const bool comes = row.state == State::Booting || row.is_wanted;
    events.push_back(
        {.kind = comes ? EventKind::Boots : EventKind::SwitchedOff, .job = {}, .node = NodeId{i}});
  }
}

void NodePower::resume_engine(const std::function<PowerState(NodeId)>& known,
                              const std::function<bool(NodeId)>& is_in_service,
                              std::vector<Event>& events) {
  events_.clear();
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const NodeId node{i};
    Row& row = rows_[i];
    const auto tell = [&](EventKind kind) {
      events.push_back({.kind = kind, .job = {}, .node = node});
    };
    switch (known(node)) {
      case PowerState::On:
        // It was told that the boot is over, and may have started jobs there, before our record.
        if (row.state == State::Booting) {
          row = Row{};
          row.is_changed = true;
        }
        if (row.state == State::Suspending || row.state == State::Off) tell(EventKind::SwitchedOff);
        break;
      case PowerState::Off:
        if (row.state == State::Booting) tell(EventKind::Boots);
        if (row.state != State::On) break;
        // It died between its decision and our record; else somebody has switched it on by hand.
        can_switch(node) ? switch_off(node) : tell(EventKind::Booted);
        break;
      case PowerState::Booting:
        if (row.state == State::On) tell(EventKind::Booted);
        if (row.state == State::On || row.state == State::Booting) break;
        // Whoever gave up on it has taken it out of service in the same breath.
        can_switch(node) && is_in_service(node) ? switch_on(node) : tell(EventKind::SwitchedOff);
        break;
    }
  }
}

bool NodePower::can_switch(NodeId node) const {
  return parts_.runner != nullptr && !programs_[node.value].resume.empty();
}

void NodePower::forget_program(Row& row) {
  if (row.ticket == 0) return;
  parts_.runner->kill(row.ticket);
  by_ticket_.erase(row.ticket);
  row.ticket = 0;
}

void NodePower::ask(Row& row, Step step, Time due) {
  forget_program(row);
  row.step = step;
  row.is_asked = true;
  row.due = due;
}

void NodePower::begin_suspend(Row& row) {
  row.state = State::Suspending;
  row.why.clear();
  row.is_changed = true;
  row.is_wanted = row.is_unsure = false;
  row.since = parts_.clock.now();
  ask(row, Step::Suspend, row.since);
}

void NodePower::begin_boot(Row& row) {
  row.state = State::Booting;
  row.why.clear();
  row.is_changed = true;
  row.is_wanted = false;
  row.tries = 1;
  row.since = parts_.clock.now();
  ask(row, Step::Resume, row.since);
}

void NodePower::switch_off(NodeId node) {
  Row& row = rows_[node.value];
  switch (row.state) {
    case State::On:
    case State::Booting: begin_suspend(row); break;
    case State::Suspending: row.is_wanted = false; break;
    case State::Off: break;
  }
}

void NodePower::switch_on(NodeId node) {
  Row& row = rows_[node.value];
  if (!can_switch(node)) return;
  if (row.state == State::Suspending) row.is_wanted = true;
  if (row.state == State::Off) begin_boot(row);
}

void NodePower::resume(NodeId node, std::vector<Event>& events) {
  Row& row = rows_[node.value];
  if (row.state != State::Off) return;
  if (can_switch(node)) {
    begin_boot(row);
    events.push_back({.kind = EventKind::Boots, .job = {}, .node = node});
    return;
  }
  set_on(node);  // whoever says so has done it by hand
}

void NodePower::set_on(NodeId node) {
  rows_[node.value] = Row{};
  rows_[node.value].is_changed = true;
  events_.push_back({.kind = EventKind::Booted, .job = {}, .node = node});
}

void NodePower::set_off(Row& row) {
  forget_program(row);
  row.state = State::Off;
  row.step = Step::None;
  row.is_asked = false;
  row.due = kNever;
  row.is_changed = true;
}

void NodePower::handle(const ProgramEnd& end) {
  const auto found = by_ticket_.find(end.ticket);
  if (found == by_ticket_.end()) return;
  const NodeId node = found->second;
  by_ticket_.erase(found);
  rows_[node.value].ticket = 0;
  if (rows_[node.value].step == Step::Suspend)
    end_suspend(node, end);
  else
    end_resume(node, end);
}

void NodePower::end_suspend(NodeId node, const ProgramEnd& end) {
  Row& row = rows_[node.value];
  if (!end.is_good) {
    row.is_unsure = true;
    row.why = fmt::format("{} ({}): it may still be on", kUnsure, end.why);
    row.is_changed = true;
    complain("suspend-program", node, programs_[node.value].suspend, end.why);
  }
  row.step = Step::Settle;
  row.due = std::max(parts_.clock.now(), row.since + parts_.options.suspend_timeout);
}

void NodePower::end_resume(NodeId node, const ProgramEnd& end) {
  Row& row = rows_[node.value];
  const Time now = parts_.clock.now();
  const bool is_check = row.step == Step::Check;
  if (!end.is_good && !is_check) return fail_boot(node, "resume program: " + end.why);
  if (end.is_good && (is_check || programs_[node.value].check.empty())) {
    boot_took_ = now - row.since;
    return set_on(node);
  }
  if (!is_in_time(row, now)) return fail_boot(node, "the check still says no: " + end.why);
  ask(row, Step::Check, is_check ? now + kCheckPause : now);
}

/// It was asked to, and its time runs.
bool NodePower::comes_up(const Row& row) noexcept {
  return row.step == Step::Check || (row.step == Step::Resume && !row.is_asked);
}

bool NodePower::is_in_time(const Row& row, Time now) const {
  return now < row.since + parts_.options.resume_timeout;
}

void NodePower::fail_boot(NodeId node, const std::string& why) {
  Row& row = rows_[node.value];
  if (row.tries >= kMostTries) return give_up(node, why);
  complain("resume-program", node, programs_[node.value].resume, why);
  const Time again = parts_.clock.now() + kRetryPause * row.tries;
  ++row.tries;
  row.since = again;
  ask(row, Step::Resume, again);
}

void NodePower::give_up(NodeId node, const std::string& why) {
  Row& row = rows_[node.value];
  if (parts_.log != nullptr)
    BERTH_LOG(*parts_.log, Error, "power", "a node did not boot and is down", {"node", name(node)},
              {"tries", row.tries}, {"why", why});
  set_off(row);
  row.why.clear();
  events_.push_back({.kind = EventKind::SwitchedOff, .job = {}, .node = node});
  records_.push_back({.key = "node/" + name(node),
                      .value = fmt::format("down: did not boot ({})", why),
                      .by = kSchedulerName});
  if (const std::string& program = programs_[node.value].resume_fail; !program.empty())
    farewells_.push_back({.ticket = ++next_ticket_,
                          .program = program,
                          .node = name(node),
                          .user = parts_.options.user,
                          .limit = parts_.options.program_timeout});
}

void NodePower::complain(std::string_view cause, NodeId node, std::string_view program,
                         const std::string& why) const {
  const auto unsaid = parts_.limit != nullptr ? parts_.limit->admit(cause) : std::nullopt;
  if (parts_.log != nullptr && unsaid)
    BERTH_LOG(*parts_.log, Error, "power", "a program failed", {"node", name(node)},
              {"program", program}, {"why", why}, {"unsaid", *unsaid});
}

void NodePower::collect(Time now, std::vector<Event>& events) {
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.step == Step::Settle && row.due <= now) {
      set_off(row);
      if (row.is_wanted) begin_boot(row);
    }
    if (comes_up(row) && !is_in_time(row, now)) {
      fail_boot(NodeId{i}, fmt::format("not ready after {}",
                                       human_duration(to_seconds(parts_.options.resume_timeout))));
    }
  }
  events.insert(events.end(), events_.begin(), events_.end());
  events_.clear();
}

Time NodePower::next_due() const {
  Time due = events_.empty() ? kNever : parts_.clock.now();
  for (const Row& row : rows_) {
    if (row.step == Step::None) continue;
    if (row.is_asked || row.step == Step::Settle) due = std::min(due, row.due);
    if (comes_up(row)) due = std::min(due, row.since + parts_.options.resume_timeout);
  }
  return due;
}

std::optional<Time> NodePower::ready_about(NodeId node) const {
  const Row& row = rows_[node.value];
  if (row.state != State::Booting || !boot_took_) return std::nullopt;
  return row.since + *boot_took_;
}

std::string NodePower::record_of(const Row& row) const {
  if (row.state == State::On) return {};
  std::string text{to_string(row.state)};
  if (!row.why.empty()) text += ": " + row.why;
  return text;
}

Result<void> NodePower::flush() {
  std::vector<RecordBody> bodies;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!std::exchange(rows_[i].is_changed, false)) continue;
    bodies.emplace_back(SettingRecord{.key = kPowerSetting + parts_.cluster.nodes[i].name,
                                      .value = record_of(rows_[i]),
                                      .by = kSchedulerName});
  }
  for (SettingRecord& record : std::exchange(records_, {})) bodies.emplace_back(std::move(record));
  if (!bodies.empty()) {
    crash_point("power.before-record");
    BERTH_TRY_VOID(parts_.journal.write(std::move(bodies)));
    crash_point("power.recorded");
  }
  start_programs();
  return {};
}

/// At most so many in a minute: a thousand nodes that start at once trip a breaker.
bool NodePower::has_room(Step step, Time now) {
  if (step == Step::Check) return true;
  std::deque<Time>& begun = step == Step::Suspend ? suspended_ : resumed_;
  const double rate =
      step == Step::Suspend ? parts_.options.suspend_rate : parts_.options.resume_rate;
  while (!begun.empty() && begun.front() + kMinute <= now) begun.pop_front();
  if (rate > 0 && static_cast<double>(begun.size()) >= rate) return false;
  begun.push_back(now);
  return true;
}

void NodePower::start_programs() {
  const Time now = parts_.clock.now();
  for (ProgramOrder& order : std::exchange(farewells_, {})) parts_.runner->run(std::move(order));
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    // Whoever waits for a node to be left looks whenever something has happened.
    if (!row.is_asked || (row.due > now && row.step != Step::Suspend)) continue;
    const NodePrograms& programs = programs_[i];
    const std::string& program = row.step == Step::Suspend  ? programs.suspend
                                 : row.step == Step::Resume ? programs.resume
                                                            : programs.check;
    if (parts_.runner == nullptr || program.empty()) {  // they were there in the life before
      if (row.state == State::Booting)
        events_.push_back({.kind = EventKind::SwitchedOff, .job = {}, .node = NodeId{i}});
      set_off(row);
      row.why = "no program is configured that switches it";
      continue;
    }
    if (row.step == Step::Suspend && !parts_.is_vacant(NodeId{i})) {
      row.due = now + kCheckPause;
      continue;
    }
    if (!has_room(row.step, now)) {
      row.due = now + kCheckPause;
      continue;
    }
    row.is_asked = false;
    row.due = kNever;
    if (row.step != Step::Check) row.since = now;
    row.ticket = ++next_ticket_;
    by_ticket_[row.ticket] = NodeId{i};
    parts_.runner->run({.ticket = row.ticket,
                        .program = program,
                        .node = name(NodeId{i}),
                        .user = parts_.options.user,
                        .limit = parts_.options.program_timeout});
  }
}

}  // namespace berth
