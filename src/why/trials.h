// What the policy says in copies of the scheduler in which one thing or another is different.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/engine.h"
#include "model/trace.h"

namespace berth {

struct Lifted {
  bool nodes = false;    // all nodes are in service
  bool running = false;  // running jobs are gone
  bool waiting = false;  // other waiting jobs are gone
};

struct Findings {
  bool starts_now = false;
  bool starts_if_nodes = false;
  bool starts_if_room = false;   // all running jobs gone, all nodes there
  bool starts_if_alone = false;  // all other waiting jobs gone
  bool starts_if_both = false;
  std::optional<double> turn_among;  // seconds until the policy stops somebody for it
  std::optional<double> turn_alone;  // seconds, with the cluster for itself
  std::optional<double> turn_anew;   // … and if it came only now
  std::optional<double> next_turn;   // seconds, if nobody else ran
  std::size_t place = 0;
  std::vector<JobId> ahead;
};

[[nodiscard]] Findings find_out(Engine& engine, JobId job, Trace& slots,
                                std::optional<JobId> spare);
[[nodiscard]] bool starts(Engine& engine, JobId job, const Lifted& lifted);
/// In a copy; nothing if the copy did not answer.
[[nodiscard]] std::optional<nlohmann::json> ask_a_copy(const std::function<nlohmann::json()>& work);
/// Would it start now as this request, in place of the job?
[[nodiscard]] bool starts_as(Engine& engine, JobId job, Trace& slots, JobId spare,
                             const TraceJob& request);

}  // namespace berth
