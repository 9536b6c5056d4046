// Maximum weight matching in a general graph (Edmonds' blossom algorithm, from LEMON). Weights are
// integers, so the optimum is exact; the same edges in the same order give the same matching. Edges
// that weigh nothing or less are never taken. O(n m log n).
//
// LEMON does not compile as C++20: this header is plain C++17 and includes nothing of the project.
#pragma once

#include <cstdint>
#include <vector>

namespace berth {

struct MatchingEdge {
  int a = 0;
  int b = 0;
  std::int64_t weight = 0;
};

inline constexpr int kUnmatched = -1;

/// The partner of each node 0..nodes-1, or kUnmatched. Loops are ignored; of parallel edges the
/// heaviest counts. Weights must stay below 2^60 / nodes.
[[nodiscard]] std::vector<int> max_weight_matching(int nodes,
                                                   const std::vector<MatchingEdge>& edges);

}  // namespace berth
