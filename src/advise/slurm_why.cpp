#include "advise/slurm_why.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "advise/job_views.h"
#include "advise/limits.h"
#include "advise/reasons.h"
#include "advise/room.h"
#include "base/split.h"
#include "base/time.h"
#include "slurm/hostlist.h"

namespace berth::advise {

namespace {

constexpr std::size_t kMostNamed = 5;

std::string gpus_text(std::int64_t count, const std::string& type) {
  if (!type.empty()) return fmt::format("{} {}", count, type);
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

std::string counted(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

/// For people, as squeue writes it.
std::string id_of(const slurm::Job& job) {
  if (job.array == 0) return fmt::format("{}", job.key.job);
  const bool is_one = job.array_tasks.find_first_of("-,%") == std::string::npos;
  return is_one ? fmt::format("{}_{}", job.array, job.array_tasks)
                : fmt::format("{}_[{}]", job.array, job.array_tasks);
}

std::string with_job(std::string_view pattern, const slurm::Job& job) {
  std::string text;
  constexpr std::string_view kMark = "{job}";
  for (std::size_t at = pattern.find(kMark); at != std::string_view::npos;
       at = pattern.find(kMark)) {
    text += pattern.substr(0, at);
    text += fmt::format("{}", job.key.job);
    pattern.remove_prefix(at + kMark.size());
  }
  return text + std::string{pattern};
}

/// "8 a100 with 16 cores on each of 2 nodes": what it asks for.
std::string asked_text(const slurm::Job& job, const PerNode& needs) {
  std::vector<std::string> parts;
  if (needs.gpus > 0) parts.push_back(gpus_text(needs.gpus, job.gpu_type()));
  if (job.shards() > 0) parts.push_back(counted(static_cast<std::size_t>(job.shards()), "shard"));
  if (needs.cpus > 0) parts.push_back(counted(static_cast<std::size_t>(needs.cpus), "core"));
  if (needs.memory_mib > 0)
    parts.push_back(fmt::format("{:.4g} GiB", static_cast<double>(needs.memory_mib) / 1024));
  if (parts.empty()) parts.emplace_back("a node");
  return fmt::format(
      "{} on {}", fmt::join(parts, ", "),
      needs.nodes == 1 ? std::string{"one node"} : fmt::format("each of {} nodes", needs.nodes));
}

class Explanation {
 public:
  explicit Explanation(const WhyQuestion& question)
      : question_(question),
        job_(question.job),
        sight_(question.sight),
        word_(explain_word(question.job.reason)) {}

  Why tell() {
    why_.job = job_.key.job;
    why_.state = live_state(job_);
    if (job_.phase != slurm::JobPhase::Pending || job_.completing) {
      why_.summary = not_waiting();
      return std::move(why_);
    }
    switch (word_.family) {
      case ReasonFamily::Priority: add_priority(); break;
      case ReasonFamily::Resources: add_resources(); break;
      case ReasonFamily::None: add_unread(); break;
      case ReasonFamily::Reservation: add_reservation(); break;
      case ReasonFamily::Limit: add_limit(); break;
      case ReasonFamily::Dependency: add_dependency(); break;
      case ReasonFamily::Begin: add_begin(); break;
      case ReasonFamily::Nodes: add_nodes(); break;
      case ReasonFamily::Partition: add_partition(); break;
      case ReasonFamily::Constraints: add_constraints(); break;
      case ReasonFamily::Array: add_array(); break;
      default: add(std::string{word_.text.empty() ? unknown_text() : std::string{word_.text}});
    }
    add_expected_start();
    why_.summary = fmt::format("Slurm says {}: {}", shown_reason(), why_.reasons.front().text);
    return std::move(why_);
  }

 private:
  [[nodiscard]] std::string shown_reason() const {
    return job_.reason.empty() ? "nothing" : job_.reason;
  }
  [[nodiscard]] std::string unknown_text() const {
    return fmt::format("'{}' is a word of Slurm that Berth does not know: see the manual of squeue",
                       job_.reason);
  }

  [[nodiscard]] std::string not_waiting() const {
    if (is_over(job_.phase)) return fmt::format("is over: {}", to_string(job_.phase));
    if (job_.completing) return "its processes are being ended";
    std::vector<std::string> nodes;
    for (const slurm::HeldNode& held : job_.held) nodes.push_back(held.node);
    const std::string what = job_.gpus() > 0 ? gpus_text(job_.gpus(), job_.gpu_type())
                                             : counted(static_cast<std::size_t>(job_.cpus), "core");
    return fmt::format(
        "{} {} on {}",
        job_.phase == slurm::JobPhase::Suspended ? "is suspended and holds" : "runs on", what,
        slurm::compress_hostlist(nodes));
  }

  WhyReason& add(std::string text) {
    return add(std::string{to_string(word_.family)}, std::move(text));
  }
  WhyReason& add(std::string kind, std::string text) {
    WhyReason reason{.kind = std::move(kind), .text = std::move(text)};
    reason.fix = with_job(word_.fix, job_);
    reason.who = word_.who;
    if (word_.is_never) reason.when = "never";
    why_.reasons.push_back(std::move(reason));
    return why_.reasons.back();
  }

  /// Beside the first one, which has the word's own remedy.
  WhyReason& add_beside(std::string kind, std::string text) {
    why_.reasons.push_back({.kind = std::move(kind), .text = std::move(text)});
    return why_.reasons.back();
  }

  [[nodiscard]] bool may_be_named(const slurm::Job& other) const {
    return question_.may_see_all || other.user == job_.user;
  }

  /// The largest first where it is said so; five at most, and the rest as a number.
  [[nodiscard]] std::vector<std::string> named(const std::vector<const slurm::Job*>& jobs) const {
    std::vector<std::string> names;
    std::size_t hidden = 0, more = 0;
    for (const slurm::Job* other : jobs) {
      if (!may_be_named(*other)) {
        ++hidden;
      } else if (names.size() == kMostNamed) {
        ++more;
      } else {
        names.push_back(fmt::format("job {} ({}, {}, priority {})", id_of(*other), other->user,
                                    gpus_text(other->gpus(), other->gpu_type()), other->priority));
      }
    }
    if (more > 0) names.push_back(fmt::format("{} more", more));
    if (hidden > 0) names.push_back(counted(hidden, "job") + " of other users");
    return names;
  }

  // --- order

  /// Those that wait in a partition of its own and come before it.
  [[nodiscard]] std::vector<const slurm::Job*> before_it() const {
    const auto partitions = names_in(job_.partition);
    std::vector<const slurm::Job*> before;
    for (const slurm::Job& other : sight_.all_jobs()) {
      if (!competes(other) || other.key == job_.key) continue;
      const auto theirs = names_in(other.partition);
      const bool is_rival = std::ranges::any_of(theirs, [&](const std::string& name) {
        return std::ranges::find(partitions, name) != partitions.end();
      });
      const bool is_before =
          std::tuple(other.priority, job_.key.job) > std::tuple(job_.priority, other.key.job);
      if (is_rival && is_before) before.push_back(&other);
    }
    std::ranges::sort(before, [](const slurm::Job* a, const slurm::Job* b) {
      return std::tuple(b->priority, a->key.job) < std::tuple(a->priority, b->key.job);
    });
    return before;
  }

  void add_priority() {
    const auto before = before_it();
    std::int64_t gpus = 0;
    for (const slurm::Job* other : before) gpus += other->gpus();
    std::string text =
        before.empty() ? fmt::format(
                             "Slurm puts others before it; none of higher priority than {} is seen "
                             "to wait in {}",
                             job_.priority, job_.partition)
                       : fmt::format("{} of higher priority wait{} before it in {}, for {} in all",
                                     counted(before.size(), "job"), before.size() == 1 ? "s" : "",
                                     job_.partition, gpus_text(gpus, {}));
    if (!before.empty() && may_be_named(*before.front()))
      text += fmt::format("; the first is job {} of {}, which asks for {}", id_of(*before.front()),
                          before.front()->user,
                          gpus_text(before.front()->gpus(), before.front()->gpu_type()));
    WhyReason& reason = add(std::move(text));
    reason.numbers = {{"before_it", static_cast<std::int64_t>(before.size())},
                      {"gpus_before_it", gpus},
                      {"priority", std::int64_t{job_.priority}}};
    if (!before.empty())
      reason.numbers.emplace_back("highest_priority", std::int64_t{before.front()->priority});
    reason.entities = named(before);
    why_.place = before.size() + 1;
    for (const slurm::Job& other : sight_.all_jobs())
      why_.of += competes(other) && other.partition == job_.partition ? 1U : 0U;
    const Room room = room_for(job_, sight_);
    if (!room.fits()) {
      add_shortage(room, add_beside("resources", {}));
      return add_nodes_out(room);
    }
    WhyReason& free = add_beside(
        "resources", fmt::format("there is room for it ({}): Slurm keeps it for those before it, "
                                 "or has not come to it",
                                 fits_text(room)));
    free.numbers = {{"gpus_free", room.gpus_free}, {"gpus_needed", room.gpus_needed}};
  }

  void add_unread() {
    const Room room = room_for(job_, sight_);
    WhyReason& reason = add(
        fmt::format("Slurm has not said why it waits; {}",
                    room.fits() ? "there is room: " + fits_text(room) : "there is no room now"));
    reason.numbers = {{"gpus_free", room.gpus_free}, {"gpus_needed", room.gpus_needed}};
    if (!room.fits()) add_shortage(room, add_beside("resources", {}));
  }

  // --- room

  [[nodiscard]] static std::string fits_text(const Room& room) {
    std::vector<std::string> names;
    for (const NodeRoom& node : room.nodes)
      if (node.fits && names.size() < kMostNamed)
        names.push_back(room.needs.gpus > 0
                            ? fmt::format("{} of {} GPUs free on {}", node.gpus_free, node.gpus,
                                          node.node->name)
                            : fmt::format("{} of {} cores free on {}", node.cpus_free,
                                          node.node->cpus, node.node->name));
    return fmt::format("{}", fmt::join(names, ", "));
  }

  void add_resources() {
    const Room room = room_for(job_, sight_);
    WhyReason& reason = add(std::string{});
    if (!room.fits()) {
      add_shortage(room, reason);
    } else {
      const auto before = before_it();
      reason.text = fmt::format("asks for {}, and there is room now ({}){}",
                                asked_text(job_, room.needs), fits_text(room),
                                before.empty()
                                    ? ": Slurm starts it with one of its next passes"
                                    : fmt::format("; {} before it", counted(before.size(), "job")));
      reason.numbers = {{"gpus_free", room.gpus_free}, {"gpus_needed", room.gpus_needed}};
    }
    add_nodes_out(room);
    add_next_end(room);
  }

  /// What is missing: in all, together on a node, or beside the GPUs.
  void add_shortage(const Room& room, WhyReason& reason) {
    const std::string type = job_.gpu_type();
    const std::string asks = fmt::format("asks for {}", asked_text(job_, room.needs));
    const auto best = std::ranges::max_element(room.nodes, {}, [](const NodeRoom& node) {
      return std::tuple(node.gpus_free, node.cpus_free);
    });
    const bool has_nodes = best != room.nodes.end();
    reason.numbers = {{"gpus_needed", room.gpus_needed},
                      {"gpus_free", room.gpus_free},
                      {"nodes_needed", std::int64_t{room.needs.nodes}},
                      {"nodes_that_fit", std::int64_t{room.fitting}}};
    if (!has_nodes) {
      reason.text = fmt::format("{}; no node that has it is in service", asks);
    } else if (room.needs.gpus > 0 && room.gpus_free < room.gpus_needed) {
      reason.text =
          fmt::format("{}; {} of {} {} free", asks, room.gpus_free,
                      gpus_text(room.gpus_in_all, type), room.gpus_free == 1 ? "is" : "are");
      if (room.other_types_free > 0) {
        reason.text += fmt::format(" ({} of other types)", room.other_types_free);
        reason.numbers.emplace_back("free_of_other_types", room.other_types_free);
      }
    } else if (room.needs.gpus > 0 && best->gpus_free < room.needs.gpus) {
      add_shape(room, asks, reason);
    } else {
      add_side(room, asks, reason);
    }
    for (const NodeRoom& node : room.nodes) {
      if (node.gpus_free == 0 && room.needs.gpus > 0) continue;
      if (reason.entities.size() == kMostNamed) break;
      reason.entities.push_back(fmt::format("{} ({} of {} GPUs, {} of {} cores free)",
                                            node.node->name, node.gpus_free, node.gpus,
                                            node.cpus_free, node.node->cpus));
    }
  }

  /// Enough of them, but not together.
  void add_shape(const Room& room, const std::string& asks, WhyReason& reason) {
    std::size_t spread = 0;
    for (const NodeRoom& node : room.nodes) spread += node.gpus_free > 0 ? 1U : 0U;
    const auto best = std::ranges::max_element(room.nodes, {}, &NodeRoom::gpus_free);
    reason.kind = "shape";
    reason.text = fmt::format("{}; {} are free but spread over {}, at most {} together, on {}",
                              asks, gpus_text(room.gpus_free, job_.gpu_type()),
                              counted(spread, "node"), best->gpus_free, best->node->name);
    reason.numbers.emplace_back("most_together", std::int64_t{best->gpus_free});
    reason.numbers.emplace_back("node", best->node->name);
    reason.who = "user";
    reason.fix = fmt::format(
        "spread it over more nodes, if it can: scontrol update JobId={} NumNodes=…", job_.key.job);
  }

  /// The GPUs are there, cores or memory beside them are not; or too few nodes have both.
  void add_side(const Room& room, const std::string& asks, WhyReason& reason) {
    const PerNode& needs = room.needs;
    const auto lacks = std::ranges::find_if(room.nodes, [&](const NodeRoom& node) {
      return !node.fits && node.gpus_free >= needs.gpus;
    });
    if (room.fitting > 0 || lacks == room.nodes.end()) {
      reason.text = fmt::format("{}; {} of {} nodes could take {} part now", asks, room.fitting,
                                needs.nodes, needs.nodes == 1 ? "its" : "their");
      return;
    }
    std::vector<std::string> missing;
    if (lacks->cpus_free < needs.cpus) {
      missing.push_back(fmt::format("{} of {} cores", lacks->cpus_free, needs.cpus));
      reason.numbers.emplace_back("cores_free", std::int64_t{lacks->cpus_free});
      reason.numbers.emplace_back("cores_needed", std::int64_t{needs.cpus});
    }
    if (lacks->memory_free_mib < needs.memory_mib) {
      missing.push_back(
          fmt::format("{} of {} MiB of memory", lacks->memory_free_mib, needs.memory_mib));
      reason.numbers.emplace_back("memory_free_mib", lacks->memory_free_mib);
      reason.numbers.emplace_back("memory_needed_mib", needs.memory_mib);
    }
    reason.kind = "side resource";
    reason.text =
        fmt::format("{}; {} has {} free but only {}", asks, lacks->node->name,
                    gpus_text(lacks->gpus_free, job_.gpu_type()), fmt::join(missing, " and "));
    reason.who = "user";
  }

  void add_nodes_out(const Room& room) {
    if (room.out.empty()) return;
    std::vector<std::string> names;
    for (const slurm::Node* node : room.out) names.push_back(node->name);
    WhyReason& reason = add_beside(
        "node state",
        fmt::format("{} that it could use {} not in service: {}", counted(names.size(), "node"),
                    names.size() == 1 ? "is" : "are", slurm::compress_hostlist(names)));
    reason.numbers = {{"nodes", static_cast<std::int64_t>(names.size())}, {"gpus", room.gpus_out}};
    for (const slurm::Node* node : room.out)
      if (reason.entities.size() < kMostNamed) reason.entities.push_back(state_text(*node));
    reason.who = "operator";
    reason.fix =
        fmt::format("scontrol update NodeName={} State=RESUME", slurm::compress_hostlist(names));
  }

  [[nodiscard]] static std::string state_text(const slurm::Node& node) {
    return node.reason.empty() ? fmt::format("{}: {}", node.name, node.state)
                               : fmt::format("{}: {} ({})", node.name, node.state, node.reason);
  }

  /// Who gives something back first, at the latest.
  void add_next_end(const Room& room) {
    const slurm::Job* first = nullptr;
    const auto end_of = [](const slurm::Job& job) { return job.started + job.time_limit; };
    for (const slurm::Job& other : sight_.all_jobs()) {
      if (other.phase != slurm::JobPhase::Running || other.time_limit == 0) continue;
      const bool is_here = std::ranges::any_of(other.held, [&](const slurm::HeldNode& held) {
        return std::ranges::any_of(
            room.nodes, [&](const NodeRoom& node) { return node.node->name == held.node; });
      });
      const bool gives = room.needs.gpus == 0 || other.gpus() > 0;
      if (is_here && gives && (first == nullptr || end_of(other) < end_of(*first))) first = &other;
    }
    if (first == nullptr) return;
    const std::int64_t until = end_of(*first) * kMicro;
    const double left =
        static_cast<double>(std::max<std::int64_t>(0, until - question_.wall)) * 1e-6;
    WhyReason& reason = add_beside(
        "next end", fmt::format("the first of those that run there ends in at most {} and gives "
                                "back {}",
                                human_duration(left), gpus_text(first->gpus(), first->gpu_type())));
    reason.numbers = {{"seconds", left}, {"gpus", std::int64_t{first->gpus()}}};
    if (may_be_named(*first)) reason.entities.push_back(fmt::format("job {}", id_of(*first)));
    reason.when = "until";
    reason.until = until;
  }

  // --- the rest

  void add_reservation() {
    const slurm::Reservation* its = sight_.reservation(job_.reservation);
    if (its == nullptr) {
      add(job_.reservation.empty()
              ? std::string{word_.text}
              : fmt::format("its reservation {} is not there: {}", job_.reservation, word_.text));
      return;
    }
    const std::int64_t wall = question_.wall / kMicro;
    const bool is_early = its->begins > wall;
    WhyReason& reason =
        add(is_early ? fmt::format("its reservation {} begins in {}", its->name,
                                   human_duration(static_cast<double>(its->begins - wall)))
                     : fmt::format("its reservation {} of {} has no room for it now", its->name,
                                   counted(its->nodes.size(), "node")));
    reason.numbers = {{"nodes", static_cast<std::int64_t>(its->nodes.size())}};
    reason.entities = {
        fmt::format("reservation {} on {}", its->name, slurm::compress_hostlist(its->nodes))};
    if (!is_early) return;
    reason.when = "until";
    reason.until = its->begins * kMicro;
  }

  void add_limit() {
    const std::string_view whole = job_.reason;
    const auto limit = limit_of(whole.substr(0, whole.find_first_of(",:( ")));
    if (!limit) {
      add(std::string{word_.text});
      return;
    }
    const LimitHolder holder{.user = job_.user, .account = job_.account, .qos = job_.qos};
    const bool is_qos = limit->owner == LimitOwner::Qos;
    const std::string what = limit->what == "gres"     ? "GPUs and other devices"
                             : limit->what == "cpu"    ? "cores"
                             : limit->what == "mem"    ? "memory"
                             : limit->what == "node"   ? "nodes"
                             : limit->what == "submit" ? "submitted jobs"
                             : limit->what == "wall"   ? "time"
                                                       : limit->what;
    const bool is_minutes = limit->key.find("Mins") != std::string::npos;
    const std::string owner = is_qos ? fmt::format("QOS {}", job_.qos)
                                     : fmt::format("account {} or its user", job_.account);
    const std::string meaning =
        limit->is_least ? fmt::format("{} asks for more {} than it wants", owner, what)
                        : fmt::format("{} has a limit of {}{} {}", owner,
                                      is_minutes ? "minutes of " : "", what, limit->scope);
    const auto uses = uses_of(*limit, question_.limits, holder);
    if (uses.empty()) {
      WhyReason& reason =
          add(fmt::format("{}; how much of it is used Slurm does not tell", meaning));
      reason.fix = limit_fix(*limit);
      return;
    }
    for (const LimitUse& use : uses) {
      const std::string used =
          use.used.empty() ? std::string{} : fmt::format("{} in use of ", use.used);
      WhyReason& reason =
          add(fmt::format("{}: {}{} {} {}", use.of, used, use.allowed, use.what, limit->scope));
      reason.text += fmt::format("; it asks for {}", asks_for(*limit));
      reason.numbers = {{"allowed", use.allowed}, {"used", use.used}, {"what", use.what}};
      reason.entities = {use.of};
      reason.fix = limit_fix(*limit);
    }
  }

  [[nodiscard]] std::string asks_for(const Limit& limit) const {
    if (limit.what == "jobs" || limit.what == "submit") return "one more";
    if (limit.what == "wall") return human_duration(static_cast<double>(job_.time_limit));
    if (limit.what == "cpu") return counted(static_cast<std::size_t>(job_.cpus), "core");
    if (limit.what == "node")
      return counted(static_cast<std::size_t>(std::max(1, job_.min_nodes)), "node");
    return gpus_text(job_.gpus(), job_.gpu_type());
  }

  [[nodiscard]] std::string limit_fix(const Limit& limit) const {
    return limit.owner == LimitOwner::Qos
               ? fmt::format(
                     "another QOS: scontrol update JobId={} QOS=…; or an administrator: "
                     "sacctmgr modify qos {} set {}=…",
                     job_.key.job, job_.qos, sacctmgr_word(limit))
               : fmt::format("an administrator: sacctmgr modify account {} set {}=…", job_.account,
                             sacctmgr_word(limit));
  }
  [[nodiscard]] static std::string sacctmgr_word(const Limit& limit) {
    if (limit.key == "MaxTRESPU") return "MaxTRESPerUser";
    if (limit.key == "MaxTRESPA") return "MaxTRESPerAccount";
    if (limit.key == "MaxTRESPJ") return "MaxTRESPerJob";
    if (limit.key == "MaxTRESPN") return "MaxTRESPerNode";
    if (limit.key == "MaxJobsPU") return "MaxJobsPerUser";
    if (limit.key == "MaxJobsPA") return "MaxJobsPerAccount";
    if (limit.key == "MaxSubmitJobsPU") return "MaxSubmitJobsPerUser";
    if (limit.key == "MaxSubmitJobsPA") return "MaxSubmitJobsPerAccount";
    if (limit.key == "MaxWallPJ") return "MaxWall";
    return limit.key;
  }

  /// "afterok:12(unfulfilled),afterany:13_4(failed)": each job with what became of it.
  void add_dependency() {
    WhyReason& reason = add({});
    std::vector<std::string> texts;
    std::string one;
    for (const char c : job_.dependency + ",") {
      if (c != ',' && c != '?') {
        one += c;
        continue;
      }
      if (one.empty()) continue;
      texts.push_back(dependency_text(one, reason));
      one.clear();
    }
    const bool any = job_.dependency.find('?') != std::string::npos;
    reason.text = texts.empty()
                      ? std::string{word_.text}
                      : fmt::format("waits for {}{}{}", any ? "any of " : "",
                                    fmt::join(texts, any ? ", " : " and "),
                                    word_.is_never ? ", which can never happen any more" : "");
  }

  std::string dependency_text(std::string_view one, WhyReason& reason) {
    const std::size_t colon = one.find(':');
    const std::string_view kind = one.substr(0, colon);
    if (colon == std::string_view::npos)
      return fmt::format("{}{}", kind == "singleton" ? "other jobs of its name and user" : "",
                         kind == "singleton" ? std::string_view{} : kind);
    std::vector<std::string> jobs;
    for (const std::string_view part : split(one.substr(colon + 1), ':')) {
      const std::string name{part.substr(0, part.find_first_of("(+"))};
      const std::string state = state_of(name);
      reason.entities.push_back(fmt::format("job {} ({})", name, state));
      jobs.push_back(fmt::format("job {} ({})", name, state));
    }
    const std::string_view deed = kind == "afterok"      ? "to complete"
                                  : kind == "afternotok" ? "to fail"
                                  : kind == "afterany"   ? "to end"
                                  : kind == "after"      ? "to start"
                                  : kind == "aftercorr"  ? "to complete, task by task"
                                                         : kind;
    return fmt::format("{} {}", fmt::join(jobs, ", "), deed);
  }

  [[nodiscard]] std::string state_of(const std::string& name) const {
    JobNumber number = 0;
    const std::size_t underscore = name.find('_');
    const auto whole = [](const std::string& text) {
      const bool is_number = !text.empty() && text.size() < 10 &&
                             text.find_first_not_of("0123456789") == std::string::npos;
      return is_number ? std::stoul(text) : 0UL;
    };
    number = whole(name.substr(0, underscore));
    if (underscore != std::string::npos && name.substr(underscore + 1) != "*")
      number = task_number(static_cast<std::uint32_t>(number),
                           static_cast<std::uint32_t>(whole(name.substr(underscore + 1))));
    const FoundJob found = find_job(sight_, number);
    if (found.job == nullptr || number == 0) return "no longer known to Slurm";
    if (!may_be_named(*found.job)) return "of another user";
    std::string state{to_string(live_state(*found.job))};
    if (is_waiting(live_state(*found.job)) && !found.job->reason.empty())
      state += ", " + found.job->reason;
    return state;
  }

  void add_begin() {
    const std::int64_t left = job_.eligible - question_.wall / kMicro;
    const std::string when = left > 0
                                 ? fmt::format("in {}", human_duration(static_cast<double>(left)))
                                 : std::string{"now, with Slurm's next pass"};
    WhyReason& reason =
        add(word_.is_never ? std::string{word_.text}
                           : fmt::format("may not begin before its time, which comes {}{}", when,
                                         job_.key.restarts > 0
                                             ? " (Slurm lets a job that was put back wait a while)"
                                             : ""));
    if (left <= 0 || word_.is_never) return;
    reason.numbers = {{"seconds", left}};
    reason.when = "until";
    reason.until = job_.eligible * kMicro;
  }

  /// "ReqNodeNotAvail, UnavailableNodes:n[1-2]": those that Slurm names, or those that it asks for.
  void add_nodes() {
    std::vector<std::string> names = job_.required_nodes;
    constexpr std::string_view kNamed = "UnavailableNodes:";
    if (const std::size_t at = job_.reason.find(kNamed); at != std::string::npos) {
      const auto told = slurm::expand_hostlist(job_.reason.substr(at + kNamed.size()));
      if (told && !told->empty()) names = *told;
    }
    std::vector<std::string> states;
    std::vector<std::string> out;
    for (const std::string& name : names) {
      const slurm::Node* node = sight_.node(name);
      if (node != nullptr && node->is_usable()) continue;
      out.push_back(name);
      states.push_back(node == nullptr ? fmt::format("{}: unknown", name) : state_text(*node));
    }
    WhyReason& reason =
        add(out.empty() ? fmt::format("{}{}", word_.text,
                                      names.empty() ? std::string{}
                                                    : fmt::format(" ({}): they are up, reserved or "
                                                                  "in use",
                                                                  slurm::compress_hostlist(names)))
                        : fmt::format("needs {}, not available: {}",
                                      slurm::compress_hostlist(names), fmt::join(states, "; ")));
    reason.entities = states;
    reason.numbers = {{"nodes", static_cast<std::int64_t>(names.size())},
                      {"out_of_service", static_cast<std::int64_t>(out.size())}};
    if (!out.empty())
      reason.fix =
          fmt::format("scontrol update NodeName={} State=RESUME", slurm::compress_hostlist(out));
    const Room room = room_for(job_, sight_);
    if (out.empty() && !room.fits()) add_shortage(room, add_beside("resources", {}));
    add_reservations_ahead(names);
  }

  /// A reservation to come keeps nodes free of jobs that would run into it.
  void add_reservations_ahead(const std::vector<std::string>& names) {
    const std::int64_t wall = question_.wall / kMicro;
    for (const slurm::Reservation& each : sight_.reservations) {
      const bool is_ahead =
          each.ends > wall && (job_.time_limit == 0 || each.begins < wall + job_.time_limit);
      const bool is_met = names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
                            return std::ranges::find(each.nodes, name) != each.nodes.end();
                          });
      if (!is_ahead || !is_met || each.name == job_.reservation) continue;
      WhyReason& reason = add_beside(
          "reservation",
          fmt::format("reservation {} has {} {}", each.name, slurm::compress_hostlist(each.nodes),
                      each.begins > wall
                          ? fmt::format("in {}, before it would end",
                                        human_duration(static_cast<double>(each.begins - wall)))
                          : fmt::format("for another {}",
                                        human_duration(static_cast<double>(each.ends - wall)))));
      reason.entities = {fmt::format("reservation {}", each.name)};
      reason.who = "user";
      reason.fix =
          fmt::format("a shorter limit: scontrol update JobId={} TimeLimit=…", job_.key.job);
      reason.when = "until";
      reason.until = each.ends * kMicro;
    }
  }

  void add_partition() {
    const slurm::Partition* its = sight_.partition(job_.partition);
    std::string text = fmt::format("partition {}: {}", job_.partition, word_.text);
    WhyNumbers numbers;
    const bool is_time = its != nullptr && its->max_time > 0 && job_.time_limit > its->max_time;
    if (is_time) {
      text = fmt::format("asks for {}, partition {} gives {}",
                         human_duration(static_cast<double>(job_.time_limit)), its->name,
                         human_duration(static_cast<double>(its->max_time)));
      numbers = {{"asked_seconds", job_.time_limit}, {"allowed_seconds", its->max_time}};
    } else if (its != nullptr && job_.min_nodes > static_cast<std::int32_t>(its->nodes.size())) {
      text = fmt::format("asks for {}, partition {} has {}",
                         counted(static_cast<std::size_t>(job_.min_nodes), "node"), its->name,
                         its->nodes.size());
      numbers = {{"asked_nodes", std::int64_t{job_.min_nodes}},
                 {"nodes", static_cast<std::int64_t>(its->nodes.size())}};
    }
    WhyReason& reason = add(std::move(text));
    reason.numbers = std::move(numbers);
    reason.entities = {fmt::format("partition {}", job_.partition)};
    constexpr std::string_view kAny = "PartitionName=…";
    if (const std::size_t at = reason.fix.find(kAny); at != std::string::npos)
      reason.fix.replace(at, kAny.size(), "PartitionName=" + job_.partition);
    if (is_time)
      reason.fix =
          fmt::format("scontrol update JobId={} TimeLimit={}", job_.key.job, its->max_time / 60);
  }

  void add_constraints() {
    const Room room = room_for(job_, sight_);
    std::string text = fmt::format("{}; it asks for {}", word_.text, asked_text(job_, room.needs));
    if (!job_.features.empty()) text += fmt::format(" with features {}", job_.features);
    if (room.needs.gpus > 0) {
      std::int32_t most = 0;
      for (const slurm::Node& node : sight_.all_nodes())
        if (may_use(job_, node)) most = std::max(most, gpus_of(node, job_.gpu_type()));
      text += fmt::format(", the largest node that it may use has {}",
                          gpus_text(most, job_.gpu_type()));
    }
    WhyReason& reason = add(std::move(text));
    reason.numbers = {{"gpus_needed", room.gpus_needed}, {"gpus_in_all", room.gpus_in_all}};
  }

  void add_array() {
    std::int64_t running = 0;
    for (const slurm::Job& other : sight_.all_jobs())
      running += other.array == job_.array && other.phase == slurm::JobPhase::Running ? 1 : 0;
    const auto array = parse_array(job_.array_tasks);
    const std::int64_t most = array ? array->at_once : 0;
    WhyReason& reason =
        add(most > 0 ? fmt::format("{} of its array run, {} may run together", running, most)
                     : std::string{word_.text});
    reason.numbers = {{"running", running}, {"at_once", most}};
  }

  void add_expected_start() {
    if (job_.started <= question_.wall / kMicro) return;
    const double left = static_cast<double>(job_.started - question_.wall / kMicro);
    WhyReason& reason = add_beside(
        "expected start", fmt::format("Slurm expects to start it in {}", human_duration(left)));
    reason.numbers = {{"seconds", left}};
    reason.when = "until";
    reason.until = job_.started * kMicro;
  }

  const WhyQuestion& question_;
  const slurm::Job& job_;
  const Sight& sight_;
  ReasonWord word_;
  Why why_;
};

}  // namespace

Why explain_slurm(const WhyQuestion& question) { return Explanation{question}.tell(); }

bool wants_limits(const slurm::Job& job) {
  return job.phase == slurm::JobPhase::Pending &&
         explain_word(job.reason).family == ReasonFamily::Limit;
}

}  // namespace berth::advise
