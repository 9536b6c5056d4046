// An ordered set with weights and prefix sums: insert, erase, "sum of weights before this key" and
// "first entry at which the running sum reaches x", all in O(log n) with short, contiguous moves.
// Entries live in sorted blocks of at most 128; sums over blocks in a Fenwick tree. After warm-up
// it allocates nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace berth {

template <class Key>
class RankedSet {
 public:
  struct Entry {
    Key key;
    std::int64_t weight;
  };

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::int64_t total() const noexcept { return total_; }

  void insert(const Key& key, std::int64_t weight) {
    if (blocks_.empty()) add_block(0);
    std::size_t b = block_for(key);
    if (blocks_[b].size() == kBlock) {
      split(b);
      if (!(key < blocks_[b + 1].front().key)) ++b;
    }
    auto& block = blocks_[b];
    block.insert(position(block, key), Entry{key, weight});
    change(b, weight);
    ++size_;
    total_ += weight;
  }

  void erase(const Key& key) {
    const std::size_t b = block_for(key);
    auto& block = blocks_[b];
    const auto at = position(block, key);
    BERTH_CHECK(at != block.end() && !(key < at->key), "only a member is erased");
    const std::int64_t weight = at->weight;
    block.erase(at);
    change(b, -weight);
    --size_;
    total_ -= weight;
    if (block.empty() && blocks_.size() > 1) remove_block(b);
  }

  /// Sum of the weights of all entries before `key`.
  [[nodiscard]] std::int64_t sum_before(const Key& key) const {
    if (empty()) return 0;
    const std::size_t b = block_for(key);
    std::int64_t sum = prefix(b);
    for (const Entry& entry : blocks_[b]) {
      if (!(entry.key < key)) break;
      sum += entry.weight;
    }
    return sum;
  }

  /// First entry at which the sum of weights up to and including it reaches `target`; null if none.
  [[nodiscard]] const Entry* reach(std::int64_t target) const {
    if (target > total_ || empty()) return nullptr;
    std::size_t b = 0;
    std::int64_t sum = 0;
    for (std::size_t step = std::size_t{1} << (std::bit_width(sums_.size()) - 1); step > 0;
         step >>= 1U) {
      if (b + step <= sums_.size() && sum + sums_[b + step - 1] < target) {
        b += step;
        sum += sums_[b - 1];
      }
    }
    for (const Entry& entry : blocks_[b]) {
      sum += entry.weight;
      if (sum >= target) return &entry;
    }
    return nullptr;
  }

  [[nodiscard]] const Entry& front() const { return first_block().front(); }
  [[nodiscard]] const Entry& back() const {
    for (std::size_t b = blocks_.size(); b-- > 0;) {
      if (!blocks_[b].empty()) return blocks_[b].back();
    }
    return blocks_.front().back();
  }
  template <class Visit>  // in order, until visit answers false
  void for_each(Visit visit) const {
    for (const auto& block : blocks_) {
      for (const Entry& entry : block) {
        if (!visit(entry)) return;
      }
    }
  }
  template <class Visit>  // entries that come after `key`, in order
  void for_each_after(const Key& key, Visit visit) const {
    if (empty()) return;
    for (std::size_t b = block_for(key); b < blocks_.size(); ++b) {
      for (const Entry& entry : blocks_[b]) {
        if (key < entry.key) visit(entry);
      }
    }
  }

 private:
  static constexpr std::size_t kBlock = 128;
  using Block = std::vector<Entry>;

  [[nodiscard]] static auto position(Block& block, const Key& key) {
    return std::lower_bound(block.begin(), block.end(), key,
                            [](const Entry& e, const Key& k) { return e.key < k; });
  }
  [[nodiscard]] const Block& first_block() const {
    for (const Block& block : blocks_) {
      if (!block.empty()) return block;
    }
    return blocks_.front();
  }
  /// The last block whose first key is not after `key`; blocks other than the only one are never
  /// empty.
  [[nodiscard]] std::size_t block_for(const Key& key) const {
    std::size_t low = 0;
    std::size_t high = blocks_.size();
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      if (key < blocks_[middle].front().key) {
        high = middle;
      } else {
        low = middle;
      }
    }
    return low;
  }
  [[nodiscard]] std::int64_t prefix(std::size_t blocks) const {
    std::int64_t sum = 0;
    for (std::size_t i = blocks; i > 0; i &= i - 1) sum += sums_[i - 1];
    return sum;
  }
  void change(std::size_t block, std::int64_t by) {
    weights_[block] += by;
    for (std::size_t i = block + 1; i <= sums_.size(); i += i & (~i + 1)) sums_[i - 1] += by;
  }
  void add_block(std::size_t at) {
    Block fresh;
    if (!spare_.empty()) {
      fresh = std::move(spare_.back());
      spare_.pop_back();
    }
    fresh.reserve(kBlock);
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at), std::move(fresh));
    weights_.insert(weights_.begin() + static_cast<std::ptrdiff_t>(at), 0);
    rebuild();
  }
  void remove_block(std::size_t at) {
    spare_.push_back(std::move(blocks_[at]));
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
    weights_.erase(weights_.begin() + static_cast<std::ptrdiff_t>(at));
    rebuild();
  }
  void split(std::size_t at) {
    add_block(at + 1);
    Block& full = blocks_[at];
    Block& fresh = blocks_[at + 1];
    fresh.assign(full.begin() + kBlock / 2, full.end());
    full.resize(kBlock / 2, full.front());
    std::int64_t moved = 0;
    for (const Entry& entry : fresh) moved += entry.weight;
    weights_[at] -= moved;
    weights_[at + 1] = moved;
    rebuild();
  }
  void rebuild() {
    sums_.assign(weights_.begin(), weights_.end());
    for (std::size_t i = 1; i <= sums_.size(); ++i) {
      const std::size_t parent = i + (i & (~i + 1));
      if (parent <= sums_.size()) sums_[parent - 1] += sums_[i - 1];
    }
  }

  std::vector<Block> blocks_;
  std::vector<Block> spare_;           // emptied blocks keep their memory
  std::vector<std::int64_t> weights_;  // per block
  std::vector<std::int64_t> sums_;     // Fenwick tree over weights_
  std::size_t size_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace berth
