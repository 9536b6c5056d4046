// Reservations, dependencies, begin times, partitions and arrays.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "advise/explanation.h"
#include "advise/job_views.h"
#include "base/split.h"
#include "base/time.h"
#include "slurm/hostlist.h"

namespace berth::advise {

void Explanation::add_reservation() {
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

/// "afterok:12(unfulfilled),afterany:13_4(failed)": each job with what became of it.
void Explanation::add_dependency() {
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

std::string Explanation::dependency_text(std::string_view one, WhyReason& reason) {
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

std::string Explanation::state_of(const std::string& name) const {
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

void Explanation::add_begin() {
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

/// A reservation to come keeps nodes free of jobs that would run into it.
void Explanation::add_reservations_ahead(const std::vector<std::string>& names) {
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
    reason.fix = fmt::format("a shorter limit: scontrol update JobId={} TimeLimit=…", job_.key.job);
    reason.when = "until";
    reason.until = each.ends * kMicro;
  }
}

void Explanation::add_partition() {
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

void Explanation::add_array() {
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

void Explanation::add_expected_start() {
  if (job_.started <= question_.wall / kMicro) return;
  const double left = static_cast<double>(job_.started - question_.wall / kMicro);
  WhyReason& reason = add_beside(
      "expected start", fmt::format("Slurm expects to start it in {}", human_duration(left)));
  reason.numbers = {{"seconds", left}};
  reason.when = "until";
  reason.until = job_.started * kMicro;
}

}  // namespace berth::advise
