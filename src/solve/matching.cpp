#include "solve/matching.h"

#include <lemon/matching.h>
#include <lemon/smart_graph.h>

namespace berth {

std::vector<int> max_weight_matching(int nodes, const std::vector<MatchingEdge>& edges) {
  using Graph = lemon::SmartGraph;
  Graph graph;
  graph.reserveNode(nodes);
  for (int i = 0; i < nodes; ++i) graph.addNode();

  std::vector<std::int64_t> weights;
  for (const MatchingEdge& edge : edges) {
    // Such an edge is in no matching of maximum weight, and edges must keep their own numbers.
    if (edge.weight <= 0 || edge.a == edge.b) continue;
    graph.addEdge(Graph::nodeFromId(edge.a), Graph::nodeFromId(edge.b));
    weights.push_back(edge.weight);
  }
  Graph::EdgeMap<std::int64_t> weight_of(graph);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weight_of[Graph::edgeFromId(static_cast<int>(i))] = weights[i];

  lemon::MaxWeightedMatching<Graph, Graph::EdgeMap<std::int64_t>> matching(graph, weight_of);
  matching.run();

  std::vector<int> partner(static_cast<std::size_t>(nodes), kUnmatched);
  for (int i = 0; i < nodes; ++i) {
    const Graph::Node mate = matching.mate(Graph::nodeFromId(i));
    if (mate != lemon::INVALID) partner[static_cast<std::size_t>(i)] = Graph::id(mate);
  }
  return partner;
}

}  // namespace berth
