#include "placements/fgd.h"

#include <algorithm>
#include <array>
#include <bit>

#include "model/cluster.h"

namespace berth {

namespace {

constexpr std::size_t kMostScores = 4'000'000;  // over all boards; the longest unused goes
using FreeList = std::array<std::uint16_t, kMaxGpusPerNode>;

std::span<std::uint16_t> rising(std::span<const std::uint16_t> free, FreeList& list) {
  std::ranges::copy(free, list.begin());
  const std::span<std::uint16_t> copy{list.data(), free.size()};
  std::ranges::sort(copy);
  return copy;
}

/// The node with the demand taken from its cores, memory and sum of free devices.
NodeRooms::Room room_after(NodeRooms::Room room, const NodeDemand& demand) {
  room.cpus_milli -= demand.cpus_milli;
  room.memory_mib -= demand.memory_mib;
  room.free_milli -= demand.gpus * demand.gpu_milli;
  return room;
}

/// Lowers one value of a rising list and keeps it rising.
void lower(std::span<std::uint16_t> list, std::size_t at, std::uint16_t value) {
  while (at > 0 && list[at - 1] > value) {
    list[at] = list[at - 1];
    --at;
  }
  list[at] = value;
}

}  // namespace

FragmentationIndex::FragmentationIndex(const NodeRooms& rooms, TargetWorkload target)
    : rooms_(&rooms),
      target_(std::move(target)),
      width_(std::bit_ceil(std::max<std::size_t>(rooms.size(), 2))) {}

void FragmentationIndex::set_target(TargetWorkload target) {
  target_ = std::move(target);
  boards_.clear();
}

std::int64_t FragmentationIndex::fragment_of(NodeId node) const {
  FreeList list;
  return target_.fragment((*rooms_)[node], rising(rooms_->free(node), list));
}

double FragmentationIndex::fragmentation() const {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < rooms_->size(); ++i) sum += fragment_of(NodeId{i});
  return static_cast<double>(sum) / static_cast<double>(target_.total_weight()) / kWholeDevice;
}

std::int64_t FragmentationIndex::growth(const NodeChoice& choice, const NodeDemand& demand) const {
  FreeList list;
  std::ranges::copy(rooms_->free(choice.node), list.begin());
  for (std::uint64_t rest = choice.devices; rest != 0; rest &= rest - 1) {
    std::uint16_t& milli = list[static_cast<std::size_t>(std::countr_zero(rest))];
    milli = static_cast<std::uint16_t>(milli - demand.gpu_milli);
  }
  const auto gpus = static_cast<std::size_t>((*rooms_)[choice.node].gpus);
  const std::span<std::uint16_t> after{list.data(), gpus};
  std::ranges::sort(after);
  return target_.fragment(room_after((*rooms_)[choice.node], demand), after) -
         fragment_of(choice.node);
}

FragmentationIndex::Score FragmentationIndex::fraction_score(NodeId node,
                                                             const NodeDemand& demand) const {
  const auto free = rooms_->free(node);
  const NodeRooms::Room& room = (*rooms_)[node];
  const NodeRooms::Room after = room_after(room, demand);
  FreeList list, tried;
  const auto sorted = rising(free, list);
  const std::int64_t before = target_.fragment(room, sorted);
  Score best{.version = room.version};
  std::uint16_t best_free = 0;
  // Equal devices give equal fragments, so each size of room is tried once, the least first.
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] < demand.gpu_milli || (i > 0 && sorted[i] == sorted[i - 1])) continue;
    std::ranges::copy(sorted, tried.begin());
    const std::span<std::uint16_t> trial{tried.data(), sorted.size()};
    lower(trial, i, static_cast<std::uint16_t>(sorted[i] - demand.gpu_milli));
    const std::int64_t growth = target_.fragment(after, trial) - before;
    if (growth >= best.growth) continue;
    best.growth = growth;
    best_free = sorted[i];
  }
  if (best.growth == kImpossible) return best;
  best.device = static_cast<std::uint8_t>(std::ranges::find(free, best_free) - free.begin());
  return best;
}

FragmentationIndex::Score FragmentationIndex::score_of(NodeId node,
                                                       const NodeDemand& demand) const {
  const std::uint32_t version = (*rooms_)[node].version;
  if (!rooms_->holds(node, demand)) return {.version = version};
  if (demand.is_fraction()) return fraction_score(node, demand);
  const NodeChoice choice{node, rooms_->whole_devices(node, demand.gpus)};
  return {.growth = growth(choice, demand), .version = version};
}

/// Of the device a fraction would go to; whole devices are all alike.
std::uint16_t FragmentationIndex::room_of(const Board& board, NodeId node) const noexcept {
  const std::uint8_t device = board.score[node].device;
  return device == kNoDevice ? std::uint16_t{0} : rooms_->free(node)[device];
}

bool FragmentationIndex::is_before(const Board& board, NodeId a, NodeId b) const noexcept {
  const Score& x = board.score[a];
  const Score& y = board.score[b];
  if (x.growth != y.growth) return x.growth < y.growth;
  if (x.growth == kImpossible) return a < b;
  const std::int32_t left_a = (*rooms_)[a].free_milli;
  const std::int32_t left_b = (*rooms_)[b].free_milli;
  if (left_a != left_b) return left_a < left_b;
  const std::uint16_t room_a = room_of(board, a);
  const std::uint16_t room_b = room_of(board, b);
  return room_a != room_b ? room_a < room_b : a < b;
}

/// Who plays from a slot of the tree: an earlier winner, or the node of a leaf. Leaves beyond the
/// last node repeat it, which changes nobody's victory.
NodeId FragmentationIndex::entrant(const Board& board, std::size_t slot) const noexcept {
  if (slot < width_) return board.winner[slot];
  return NodeId{static_cast<std::uint32_t>(std::min(slot - width_, rooms_->size() - 1))};
}

void FragmentationIndex::play(Board& board, std::size_t slot) const noexcept {
  const NodeId left = entrant(board, 2 * slot);
  const NodeId right = entrant(board, 2 * slot + 1);
  board.winner[slot] = is_before(board, right, left) ? right : left;
}

void FragmentationIndex::rescore_all(Board& board, const NodeDemand& demand) const {
  board.score.resize(rooms_->size());
  board.winner.resize(width_);
  for (std::uint32_t i = 0; i < board.score.size(); ++i) {
    const NodeId node{i};
    if (!board.is_made || board.score[node].version != (*rooms_)[node].version)
      board.score[node] = score_of(node, demand);
  }
  for (std::size_t slot = width_ - 1; slot > 0; --slot) play(board, slot);
  board.is_made = true;
}

void FragmentationIndex::refresh(Board& board, const NodeDemand& demand) const {
  const auto changed = rooms_->changes().since(board.seen);
  board.seen = rooms_->changes().position();
  if (!board.is_made || !changed || changed->size() > rooms_->size())
    return rescore_all(board, demand);
  for (const NodeId node : *changed) {
    if (board.score[node].version == (*rooms_)[node].version) continue;
    board.score[node] = score_of(node, demand);
    for (std::size_t slot = (width_ + node.value) / 2; slot > 0; slot /= 2) play(board, slot);
  }
}

FragmentationIndex::Board& FragmentationIndex::board_of(const NodeDemand& demand) {
  // Demands of a trace are few, but nothing bounds them; a board costs as much as there are nodes.
  const auto [entry, is_new] = boards_.try_emplace(demand);
  entry->second.used = ++asked_;
  if (is_new && boards_.size() > 1 && boards_.size() * rooms_->size() > kMostScores) {
    boards_.erase(
        std::ranges::min_element(boards_, {}, [](const auto& each) { return each.second.used; }));
  }
  return entry->second;
}

std::optional<NodeChoice> FragmentationIndex::choose(const NodeDemand& demand) {
  if (rooms_->size() == 0) return std::nullopt;
  Board& board = board_of(demand);
  refresh(board, demand);
  const NodeId best = board.winner[1];
  const Score& score = board.score[best];
  if (score.growth == kImpossible) return std::nullopt;
  if (demand.is_fraction()) return NodeChoice{best, std::uint64_t{1} << score.device};
  return NodeChoice{best, rooms_->whole_devices(best, demand.gpus)};
}

}  // namespace berth
