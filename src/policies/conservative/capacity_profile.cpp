#include "policies/conservative/capacity_profile.h"

#include <algorithm>

namespace berth::conservative {

CapacityProfile::CapacityProfile(std::int64_t free) : nodes_(1) { root_ = make(begin_, free); }

CapacityProfile::Index CapacityProfile::make(Time at, std::int64_t level) {
  random_ ^= random_ << 13U;  // xorshift: good enough to keep a treap balanced
  random_ ^= random_ >> 7U;
  random_ ^= random_ << 17U;
  Index index = kNone;
  if (spare_.empty()) {
    index = static_cast<Index>(nodes_.size());
    nodes_.emplace_back();
  } else {
    index = spare_.back();
    spare_.pop_back();
  }
  nodes_[index] = {.at = at,
                   .level = level,
                   .least = level,
                   .most = level,
                   .priority = static_cast<std::uint32_t>(random_ >> 32U)};
  ++live_;
  return index;
}

void CapacityProfile::release(Index tree) {
  if (tree == kNone) return;
  release(nodes_[tree].left);
  release(nodes_[tree].right);
  spare_.push_back(tree);
  --live_;
}

void CapacityProfile::apply(Index tree, std::int64_t change) noexcept {
  if (tree == kNone) return;
  Node& node = nodes_[tree];
  node.level += change;
  node.least += change;
  node.most += change;
  node.pending += change;
}

void CapacityProfile::push(Index tree) noexcept {
  Node& node = nodes_[tree];
  if (node.pending == 0) return;
  apply(node.left, node.pending);
  apply(node.right, node.pending);
  node.pending = 0;
}

/// Only on a node without pending change.
void CapacityProfile::pull(Index tree) noexcept {
  Node& node = nodes_[tree];
  node.least = node.most = node.level;
  for (const Index child : {node.left, node.right}) {
    if (child == kNone) continue;
    node.least = std::min(node.least, nodes_[child].least);
    node.most = std::max(node.most, nodes_[child].most);
  }
}

std::pair<CapacityProfile::Index, CapacityProfile::Index> CapacityProfile::split(Index tree,
                                                                                 Time at) noexcept {
  if (tree == kNone) return {kNone, kNone};
  push(tree);
  Node& node = nodes_[tree];
  if (node.at < at) {
    const auto [left, right] = split(node.right, at);
    node.right = left;
    pull(tree);
    return {tree, right};
  }
  const auto [left, right] = split(node.left, at);
  node.left = right;
  pull(tree);
  return {left, tree};
}

CapacityProfile::Index CapacityProfile::merge(Index left, Index right) noexcept {
  if (left == kNone || right == kNone) return left == kNone ? right : left;
  if (nodes_[left].priority > nodes_[right].priority) {
    push(left);
    nodes_[left].right = merge(nodes_[left].right, right);
    pull(left);
    return left;
  }
  push(right);
  nodes_[right].left = merge(left, nodes_[right].left);
  pull(right);
  return right;
}

/// Merges, leaving out a step that goes on at the level before it: the function stays as short as
/// it can be.
CapacityProfile::Index CapacityProfile::join(Index left, Index right) noexcept {
  if (left != kNone && right != kNone && first(right).second == last_level(left))
    right = drop_first(right);
  return merge(left, right);
}

CapacityProfile::Index CapacityProfile::drop_first(Index tree) noexcept {
  push(tree);
  Node& node = nodes_[tree];
  if (node.left == kNone) {
    const Index rest = node.right;
    spare_.push_back(tree);
    --live_;
    return rest;
  }
  node.left = drop_first(node.left);
  pull(tree);
  return tree;
}

std::pair<Time, std::int64_t> CapacityProfile::first(Index tree) const noexcept {
  std::int64_t pending = 0;
  while (nodes_[tree].left != kNone) {
    pending += nodes_[tree].pending;
    tree = nodes_[tree].left;
  }
  return {nodes_[tree].at, nodes_[tree].level + pending};
}

std::int64_t CapacityProfile::last_level(Index tree) const noexcept {
  std::int64_t pending = 0;
  while (nodes_[tree].right != kNone) {
    pending += nodes_[tree].pending;
    tree = nodes_[tree].right;
  }
  return nodes_[tree].level + pending;
}

void CapacityProfile::add(Time from, Time to, std::int64_t change) {
  from = std::max(from, begin_);
  if (from >= to || change == 0) return;
  const auto [before, rest] = split(root_, from);
  auto [inside, after] = to == kNever ? std::pair{rest, Index{kNone}} : split(rest, to);
  if (inside == kNone || first(inside).first != from)
    inside = merge(make(from, last_level(before)), inside);
  if (to != kNever && (after == kNone || first(after).first != to)) {
    after = merge(make(to, last_level(inside)), after);
  }
  apply(inside, change);
  root_ = join(join(before, inside), after);
}

void CapacityProfile::forget_before(Time now) {
  const auto [past, rest] = split(root_, now + Duration{1});
  const std::int64_t level = last_level(past);
  release(past);
  begin_ = now;
  root_ = merge(make(begin_, level), rest);
}

std::int64_t CapacityProfile::at(Time time) const noexcept {
  std::int64_t level = 0;
  std::int64_t pending = 0;
  for (Index tree = root_; tree != kNone;) {
    const Node& node = nodes_[tree];
    const bool begun = node.at <= time;
    if (begun) level = node.level + pending;
    pending += node.pending;
    tree = begun ? node.right : node.left;
  }
  return level;
}

/// The next step of the function, or of a stretch that is all high or all low.
void CapacityProfile::Search::see(Time at, bool is_high) noexcept {
  const bool in_run = start != kNever;
  if (in_run && (at >= enough || at - start >= length)) {
    done = true;
  } else if (in_run ? start >= before : at >= before) {
    start = kNever;
    done = true;
  } else if (!is_high) {
    start = kNever;
  } else if (!in_run) {
    start = std::max(at, from);
  }
}

void CapacityProfile::walk(Index tree, std::int64_t pending, Search& search) const noexcept {
  if (tree == kNone || search.done) return;
  const Node& node = nodes_[tree];
  const std::int64_t wanted = search.gpus - pending;
  const bool all_high = node.least >= wanted;
  if (all_high || node.most < wanted) {  // one stretch: only its beginning matters
    if (all_high != (search.start != kNever)) search.see(first(tree).first, all_high);
    return;
  }
  walk(node.left, pending + node.pending, search);
  if (search.done) return;
  search.see(node.at, node.level >= wanted);
  walk(node.right, pending + node.pending, search);
}

Time CapacityProfile::earliest_run(Search search) const noexcept {
  walk(root_, 0, search);
  return search.start < search.before ? search.start : kNever;  // a run at the end lasts for ever
}

}  // namespace berth::conservative
