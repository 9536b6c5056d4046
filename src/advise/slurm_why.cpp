#include "advise/slurm_why.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "advise/explanation.h"
#include "advise/job_views.h"
#include "slurm/hostlist.h"

namespace berth::advise {

namespace {

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

}  // namespace

std::string gpus_text(std::int64_t count, const std::string& type) {
  if (!type.empty()) return fmt::format("{} {}", count, type);
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

std::string counted(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string id_of(const slurm::Job& job) {
  if (job.array == 0) return fmt::format("{}", job.key.job);
  const bool is_one = job.array_tasks.find_first_of("-,%") == std::string::npos;
  return is_one ? fmt::format("{}_{}", job.array, job.array_tasks)
                : fmt::format("{}_[{}]", job.array, job.array_tasks);
}

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

Explanation::Explanation(const WhyQuestion& question)
    : question_(question),
      job_(question.job),
      sight_(question.sight),
      word_(explain_word(question.job.reason)) {}

Why Explanation::tell() {
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

std::string Explanation::shown_reason() const {
  return job_.reason.empty() ? "nothing" : job_.reason;
}

std::string Explanation::unknown_text() const {
  return fmt::format("'{}' is a word of Slurm that Berth does not know: see the manual of squeue",
                     job_.reason);
}

std::string Explanation::not_waiting() const {
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

WhyReason& Explanation::add(std::string text) {
  return add(std::string{to_string(word_.family)}, std::move(text));
}

WhyReason& Explanation::add(std::string kind, std::string text) {
  WhyReason reason{.kind = std::move(kind), .text = std::move(text)};
  reason.fix = with_job(word_.fix, job_);
  reason.who = word_.who;
  if (word_.is_never) reason.when = "never";
  why_.reasons.push_back(std::move(reason));
  return why_.reasons.back();
}

/// Beside the first one, which has the word's own remedy.
WhyReason& Explanation::add_beside(std::string kind, std::string text) {
  why_.reasons.push_back({.kind = std::move(kind), .text = std::move(text)});
  return why_.reasons.back();
}

bool Explanation::may_be_named(const slurm::Job& other) const {
  return question_.may_see_all || other.user == job_.user;
}

/// The largest first where it is said so; five at most, and the rest as a number.
std::vector<std::string> Explanation::named(const std::vector<const slurm::Job*>& jobs) const {
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

/// Those that wait in a partition of its own and come before it.
std::vector<const slurm::Job*> Explanation::before_it() const {
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

void Explanation::add_priority() {
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

void Explanation::add_unread() {
  const Room room = room_for(job_, sight_);
  WhyReason& reason =
      add(fmt::format("Slurm has not said why it waits; {}",
                      room.fits() ? "there is room: " + fits_text(room) : "there is no room now"));
  reason.numbers = {{"gpus_free", room.gpus_free}, {"gpus_needed", room.gpus_needed}};
  if (!room.fits()) add_shortage(room, add_beside("resources", {}));
}

Why explain_slurm(const WhyQuestion& question) { return Explanation{question}.tell(); }

bool wants_limits(const slurm::Job& job) {
  return job.phase == slurm::JobPhase::Pending &&
         explain_word(job.reason).family == ReasonFamily::Limit;
}

}  // namespace berth::advise
