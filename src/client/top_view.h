// The screen of `berth top` as lines of text. Pure: what is known and what the user chose in, lines
// out; it fits 80 by 24 and uses more when there is more.
#pragma once

#include <string>
#include <vector>

#include "client/answers.h"

namespace berth::client {

/// What the scheduler said last.
struct TopSnapshot {
  ClusterView cluster;
  std::vector<NodeView> nodes;
  std::vector<JobRow> jobs;
  std::uint64_t jobs_in_all = 0;
  std::string trouble;  // no answer; empty: all is well
  std::int64_t at = 0;  // Unix seconds
};

enum class TopSort : unsigned char { Number, State, User, Gpus, Time };
inline constexpr int kTopSorts = 5;
[[nodiscard]] std::string_view to_string(TopSort sort);

/// What the user chose.
struct TopChoice {
  TopSort sort = TopSort::State;
  std::string filter;  // in name, user, state or where
  bool is_typing = false;
  JobNumber selected = 0;  // 0: none
  std::string question;    // "cancel job 12? (y/n)"
  std::string message;
};

/// The jobs that are shown, in order.
[[nodiscard]] std::vector<const JobRow*> top_jobs(const TopSnapshot& snapshot,
                                                  const TopChoice& choice);
struct TopSize {
  int width = 80;
  int height = 24;
  bool has_colour = false;
};
/// At most `height` lines of at most `width` columns.
[[nodiscard]] std::vector<std::string> top_lines(const TopSnapshot& snapshot,
                                                 const TopChoice& choice, const TopSize& size);
/// For pipes and files: everything once.
[[nodiscard]] std::string top_once(const TopSnapshot& snapshot, bool has_colour);

}  // namespace berth::client
