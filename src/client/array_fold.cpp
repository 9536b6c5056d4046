#include "client/array_fold.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "client/slurm/words.h"

namespace berth::client {

std::vector<QueueLine> folded_arrays(std::span<const JobRow> jobs) {
  std::vector<QueueLine> lines;
  std::vector<ArraySpec> arrays;  // of each line
  // Jobs of an array that wait for different reasons stay apart: that is what people look for.
  std::map<std::tuple<JobNumber, LiveState, WaitCode>, std::size_t> line_of;
  for (const JobRow& job : jobs) {
    // As Slurm does: once a job of an array has run, it has a line of its own.
    const bool is_folded = job.array != 0 && is_waiting(job.state) && job.attempts == 0;
    std::size_t at = lines.size();
    if (is_folded) at = line_of.try_emplace({job.array, job.state, job.code}, at).first->second;
    if (at == lines.size()) {
      lines.push_back({.job = &job});
      arrays.push_back({.indices = {}, .at_once = job.array_at_once});
    }
    auto& indices = arrays[at].indices;
    // The scheduler may have folded already; its indices then stand for this job too.
    if (is_folded && job.folded.empty()) indices.push_back(job.array_index);
    if (is_folded) indices.insert(indices.end(), job.folded.begin(), job.folded.end());
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::ranges::sort(arrays[i].indices);
    if (arrays[i].indices.empty()) continue;
    // As Slurm writes it: two neighbours are a range.
    lines[i].indices = slurm::index_ranges(arrays[i].indices);
    if (arrays[i].at_once > 0) lines[i].indices += fmt::format("%{}", arrays[i].at_once);
  }
  return lines;
}

std::vector<QueueLine> one_line_each(std::span<const JobRow> jobs) {
  std::vector<QueueLine> lines;
  for (const JobRow& job : jobs) lines.push_back({.job = &job});
  return lines;
}

}  // namespace berth::client
