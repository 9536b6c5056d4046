// What is free for a job and what lacks, which nodes are not there, who ends first.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "advise/explanation.h"
#include "base/time.h"
#include "slurm/hostlist.h"

namespace berth::advise {

std::string Explanation::fits_text(const Room& room) {
  std::vector<std::string> names;
  for (const NodeRoom& node : room.nodes)
    if (node.fits && names.size() < kMostNamed)
      names.push_back(room.needs.gpus > 0 ? fmt::format("{} of {} GPUs free on {}", node.gpus_free,
                                                        node.gpus, node.node->name)
                                          : fmt::format("{} of {} cores free on {}", node.cpus_free,
                                                        node.node->cpus, node.node->name));
  return fmt::format("{}", fmt::join(names, ", "));
}

void Explanation::add_resources() {
  const Room room = room_for(job_, sight_);
  WhyReason& reason = add(std::string{});
  if (!room.fits()) {
    add_shortage(room, reason);
  } else {
    const auto before = before_it();
    reason.text = fmt::format(
        "asks for {}, and there is room now ({}){}", asked_text(job_, room.needs), fits_text(room),
        before.empty() ? ": Slurm starts it with one of its next passes"
                       : fmt::format("; {} before it", counted(before.size(), "job")));
    reason.numbers = {{"gpus_free", room.gpus_free}, {"gpus_needed", room.gpus_needed}};
  }
  add_nodes_out(room);
  add_next_end(room);
}

/// What is missing: in all, together on a node, or beside the GPUs.
void Explanation::add_shortage(const Room& room, WhyReason& reason) {
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
        fmt::format("{}; {} of {} {} free", asks, room.gpus_free, gpus_text(room.gpus_in_all, type),
                    room.gpus_free == 1 ? "is" : "are");
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
void Explanation::add_shape(const Room& room, const std::string& asks, WhyReason& reason) {
  std::size_t spread = 0;
  for (const NodeRoom& node : room.nodes) spread += node.gpus_free > 0 ? 1U : 0U;
  const auto best = std::ranges::max_element(room.nodes, {}, &NodeRoom::gpus_free);
  reason.kind = "shape";
  reason.text = fmt::format("{}; {} are free but spread over {}, at most {} together, on {}", asks,
                            gpus_text(room.gpus_free, job_.gpu_type()), counted(spread, "node"),
                            best->gpus_free, best->node->name);
  reason.numbers.emplace_back("most_together", std::int64_t{best->gpus_free});
  reason.numbers.emplace_back("node", best->node->name);
  reason.who = "user";
  reason.fix = fmt::format(
      "spread it over more nodes, if it can: scontrol update JobId={} NumNodes=…", job_.key.job);
}

/// The GPUs are there, cores or memory beside them are not; or too few nodes have both.
void Explanation::add_side(const Room& room, const std::string& asks, WhyReason& reason) {
  const PerNode& needs = room.needs;
  const auto lacks = std::ranges::find_if(
      room.nodes, [&](const NodeRoom& node) { return !node.fits && node.gpus_free >= needs.gpus; });
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

void Explanation::add_nodes_out(const Room& room) {
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

std::string Explanation::state_text(const slurm::Node& node) {
  return node.reason.empty() ? fmt::format("{}: {}", node.name, node.state)
                             : fmt::format("{}: {} ({})", node.name, node.state, node.reason);
}

/// Who gives something back first, at the latest.
void Explanation::add_next_end(const Room& room) {
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
  const double left = static_cast<double>(std::max<std::int64_t>(0, until - question_.wall)) * 1e-6;
  WhyReason& reason = add_beside(
      "next end", fmt::format("the first of those that run there ends in at most {} and gives "
                              "back {}",
                              human_duration(left), gpus_text(first->gpus(), first->gpu_type())));
  reason.numbers = {{"seconds", left}, {"gpus", std::int64_t{first->gpus()}}};
  if (may_be_named(*first)) reason.entities.push_back(fmt::format("job {}", id_of(*first)));
  reason.when = "until";
  reason.until = until;
}

/// "ReqNodeNotAvail, UnavailableNodes:n[1-2]": those that Slurm names, or those that it asks for.
void Explanation::add_nodes() {
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
                      : fmt::format("needs {}, not available: {}", slurm::compress_hostlist(names),
                                    fmt::join(states, "; ")));
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

void Explanation::add_constraints() {
  const Room room = room_for(job_, sight_);
  std::string text = fmt::format("{}; it asks for {}", word_.text, asked_text(job_, room.needs));
  if (!job_.features.empty()) text += fmt::format(" with features {}", job_.features);
  if (room.needs.gpus > 0) {
    std::int32_t most = 0;
    for (const slurm::Node& node : sight_.all_nodes())
      if (may_use(job_, node)) most = std::max(most, gpus_of(node, job_.gpu_type()));
    text +=
        fmt::format(", the largest node that it may use has {}", gpus_text(most, job_.gpu_type()));
  }
  WhyReason& reason = add(std::move(text));
  reason.numbers = {{"gpus_needed", room.gpus_needed}, {"gpus_in_all", room.gpus_in_all}};
}

}  // namespace berth::advise
