#include "policies/lucid/packing_index.h"

#include <algorithm>
#include <bit>

namespace berth::lucid {

namespace {
auto run_order(const PackingPartner& partner) noexcept {
  return std::tuple(partner.start, partner.job);
}
}  // namespace

void PackingIndex::add(const PackingPartner& partner) {
  lists_[{partner.pool, partner.gpus, partner.score}].add(partner);
}

void PackingIndex::remove(const PackingPartner& partner) {
  const auto list = lists_.find({partner.pool, partner.gpus, partner.score});
  if (list != lists_.end()) list->second.remove(partner);
}

bool PackingIndex::is_before(const PackingPartner& a, const PackingPartner& b) const noexcept {
  if (choice_ == Choice::LeastScore && a.score != b.score) return a.score < b.score;
  return run_order(a) < run_order(b);
}

std::optional<PackingPartner> PackingIndex::find(PoolId pool, const Newcomer& newcomer,
                                                 Time now) const {
  if (newcomer.gpus > kMaxGpus) return std::nullopt;
  // priority(J) <= 2 priority(R) with equal GPUs: R must last at least half as long as J
  const Time end = now + (newcomer.left + Duration{1}) / 2;
  std::optional<PackingPartner> best;
  for (int score = 0; score + static_cast<int>(newcomer.score) <= kMaxScoreSum; ++score) {
    const auto list = lists_.find({pool, newcomer.gpus, static_cast<SharingScore>(score)});
    if (list == lists_.end()) continue;
    const PackingPartner* found = list->second.first(newcomer.memory_mib, end);
    if (found != nullptr && (!best || is_before(*found, *best))) best = *found;
  }
  return best;
}

std::size_t PackingIndex::List::position_of(const PackingPartner& partner) const noexcept {
  const auto at = std::ranges::lower_bound(jobs_, run_order(partner), {}, run_order);
  return static_cast<std::size_t>(at - jobs_.begin());
}

PackingIndex::List::Most PackingIndex::List::leaf(std::size_t position) const noexcept {
  if (position >= jobs_.size() || !is_present_[position]) return kNobody;
  return {jobs_[position].memory_left_mib, jobs_[position].expected_end};
}

void PackingIndex::List::update(std::size_t position) noexcept {
  std::size_t node = width_ + position;
  most_[node] = leaf(position);
  for (node /= 2; node > 0; node /= 2) {
    const Most& left = most_[2 * node];
    const Most& right = most_[2 * node + 1];
    most_[node] = {std::max(left.memory_left_mib, right.memory_left_mib),
                   std::max(left.expected_end, right.expected_end)};
  }
}

/// Forgets those removed and makes room for as many again.
void PackingIndex::List::rebuild() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (is_present_[i]) jobs_[kept++] = jobs_[i];
  }
  jobs_.resize(kept);
  is_present_.assign(kept, true);
  width_ = std::bit_ceil(std::max<std::size_t>(2 * kept, 16));
  most_.assign(2 * width_, kNobody);
  for (std::size_t i = 0; i < kept; ++i) update(i);
}

void PackingIndex::List::add(const PackingPartner& partner) {
  if (jobs_.size() == width_) rebuild();
  std::size_t position = position_of(partner);
  if (position < jobs_.size() && jobs_[position].job == partner.job) {  // it is back
    jobs_[position] = partner;
    if (!is_present_[position]) ++present_;
    is_present_[position] = true;
    return update(position);
  }
  const auto offset = static_cast<std::ptrdiff_t>(position);
  jobs_.insert(jobs_.begin() + offset, partner);
  is_present_.insert(is_present_.begin() + offset, true);
  ++present_;
  for (; position < jobs_.size(); ++position) update(position);  // usually the last one only
}

void PackingIndex::List::remove(const PackingPartner& partner) {
  const std::size_t position = position_of(partner);
  if (position >= jobs_.size() || jobs_[position].job != partner.job || !is_present_[position])
    return;
  is_present_[position] = false;
  --present_;
  update(position);
}

const PackingPartner* PackingIndex::List::first(double memory_mib, Time end) const noexcept {
  const auto may_hold = [&](std::size_t node) {
    return most_[node].memory_left_mib >= memory_mib && most_[node].expected_end >= end;
  };
  if (present_ == 0 || !may_hold(1)) return nullptr;
  // Depth first, left before right. The two maxima of a subtree may belong to different jobs, so a
  // promising one can disappoint; then the search goes on to its right.
  std::size_t node = 1;
  for (;;) {
    if (may_hold(node)) {
      if (node >= width_) return &jobs_[node - width_];
      node *= 2;
      continue;
    }
    while ((node & 1U) != 0) {  // a right child: its parent is done
      node /= 2;
      if (node <= 1) return nullptr;
    }
    ++node;
  }
}

}  // namespace berth::lucid
