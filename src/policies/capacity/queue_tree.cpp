#include "policies/capacity/queue_tree.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

namespace berth::capacity {

namespace {
constexpr std::int64_t kMicro = 1'000'000;
constexpr std::int64_t kTolerance = 10;  // millionths: three times 0.333334 is meant to be one

std::string_view parent_name(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : name.substr(0, slash);
}
}  // namespace

Result<QueueTree> QueueTree::make(const QueueList& list) {
  QueueTree tree;
  tree.queues_.push_back({.name = {}, .share = kMicro, .largest = kMicro, .children = {}});
  tree.ids_[""] = kRoot;
  QueueList sorted = list;  // by name, a parent comes before its children
  std::ranges::sort(sorted, {},
                    [](const auto& entry) -> const std::string& { return entry.first; });
  for (const auto& [name, numbers] : sorted) BERTH_TRY_VOID(tree.add_listed(name, numbers));
  const auto listed = static_cast<QueueId>(tree.queues_.size());
  for (QueueId queue = kRoot; queue < listed; ++queue) {
    if (queue == kRoot || !tree.is_leaf(queue)) BERTH_TRY_VOID(tree.add_default(queue));
  }
  return tree;
}

QueueTree::QueueId QueueTree::add(std::string name, QueueId parent, std::int64_t share,
                                  std::int64_t largest) {
  const auto queue = static_cast<QueueId>(queues_.size());
  ids_[name] = queue;
  queues_.push_back({.name = std::move(name),
                     .parent = parent,
                     .share = share,
                     .largest = largest,
                     .children = {}});
  queues_[parent].children.push_back(queue);
  return queue;
}

Result<void> QueueTree::add_listed(const std::string& name, const std::vector<double>& numbers) {
  const auto parent = ids_.find(parent_name(name));
  if (parent == ids_.end())
    return fail(
        fmt::format("queue '{}' needs its parent '{}' listed too", name, parent_name(name)));
  if (name.empty() || name.back() == '/' || name.front() == '/')
    return fail(fmt::format("'{}' is no queue name", name));
  const double largest = numbers.size() > 1 ? numbers[1] : 1.0;
  if (numbers.empty() || numbers.size() > 2 || numbers[0] > 1 || largest > 1 || largest <= 0 ||
      largest < numbers[0]) {
    return fail(
        fmt::format("queue '{}' must be NAME:share[:max] with 0 <= share <= max <= 1", name));
  }
  add(name, parent->second, std::llround(numbers[0] * kMicro), std::llround(largest * kMicro));
  return {};
}

Result<void> QueueTree::add_default(QueueId parent) {
  std::int64_t sum = 0;
  for (const QueueId child : queues_[parent].children) sum += queues_[child].share;
  const std::string where =
      parent == kRoot ? "the top queues" : fmt::format("the queues of '{}'", queues_[parent].name);
  if (sum > kMicro + kTolerance) {
    return fail(fmt::format("the shares of {} sum to {}, more than 1", where,
                            static_cast<double>(sum) / kMicro));
  }
  const std::string name = parent == kRoot ? "default" : queues_[parent].name + "/default";
  if (!ids_.contains(name)) add(name, parent, std::max<std::int64_t>(0, kMicro - sum), kMicro);
  return {};
}

void QueueTree::set_capacity(std::int64_t gpus) {
  queues_[kRoot].guarantee_micro = queues_[kRoot].largest_micro = gpus * kMicro;
  const auto part = [](std::int64_t whole, std::int64_t share) {
    return std::llround(static_cast<double>(whole) * (static_cast<double>(share) / kMicro));
  };
  for (QueueId id = 1; id < queues_.size(); ++id) {
    Queue& queue = queues_[id];
    queue.guarantee_micro = part(queues_[queue.parent].guarantee_micro, queue.share);
    queue.largest_micro = part(queues_[queue.parent].largest_micro, queue.largest);
  }
}

QueueTree::QueueId QueueTree::leaf_of(std::string_view name) const {
  auto found = ids_.find(name);
  while (found == ids_.end()) {
    name = parent_name(name);
    found = ids_.find(name);
  }
  if (is_leaf(found->second)) return found->second;
  const std::string leaf = name.empty() ? "default" : std::string(name) + "/default";
  return leaf_of(leaf);  // which may be an inner queue somebody listed
}

double QueueTree::guaranteed_gpus(QueueId queue) const noexcept {
  return static_cast<double>(queues_[queue].guarantee_micro) / kMicro;
}
double QueueTree::largest_gpus(QueueId queue) const noexcept {
  return static_cast<double>(queues_[queue].largest_micro) / kMicro;
}

void QueueTree::use(QueueId leaf, std::int64_t gpus) noexcept {
  for (QueueId queue = leaf; queue != kRoot; queue = queues_[queue].parent)
    queues_[queue].used += gpus;
}

bool QueueTree::stays_within_largest(QueueId leaf, std::int64_t more) const noexcept {
  for (QueueId queue = leaf; queue != kRoot; queue = queues_[queue].parent) {
    if ((queues_[queue].used + more) * kMicro > queues_[queue].largest_micro) return false;
  }
  return true;
}

bool QueueTree::can_ever_hold(QueueId leaf, std::int64_t gpus) const noexcept {
  return gpus * kMicro <= queues_[leaf].largest_micro;  // never more than what is above it
}
bool QueueTree::is_within_guarantee(QueueId leaf, std::int64_t used) const noexcept {
  return used * kMicro <= queues_[leaf].guarantee_micro;
}
bool QueueTree::is_below_guarantee(QueueId leaf, std::int64_t used) const noexcept {
  return used * kMicro < queues_[leaf].guarantee_micro;
}

/// used / share without dividing; the parents' part of the share is the same for siblings. A queue
/// without a share is full from the start.
bool QueueTree::is_less_full(QueueId a, QueueId b) const noexcept {
  const Queue& x = queues_[a];
  const Queue& y = queues_[b];
  if ((x.share == 0) != (y.share == 0)) return y.share == 0;
  const std::int64_t x_fill = x.used * (y.share == 0 ? 1 : y.share);
  const std::int64_t y_fill = y.used * (x.share == 0 ? 1 : x.share);
  return std::tie(x_fill, x.name) < std::tie(y_fill, y.name);
}

}  // namespace berth::capacity
