// The partial-allocation auction: GPUs are shared out so that the product of all bidders' values is
// largest (proportional fairness), and each bidder pays a hidden price by keeping only a part of
// what it won: the product of the others' values with it over that without it. Telling the truth is
// the best bid then. Nothing is known here of jobs, devices or time.
//
// A bidder is a curve: what it would be worth to it to have so many of the offered GPUs. Curves
// whose logarithm is concave in equal steps are shared out by a heap in O(gpus log n), exactly;
// others by dynamic programming while bidders x gpus x rows is small, exactly; beyond that by the
// same heap on the upper envelope of each curve.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth {

struct BidRow {
  std::int32_t gpus = 0;  // of the offer, beyond what the bidder holds anyway
  double value = 0;       // with them; larger is better
};

/// Rows rise in GPUs, the first is for none of the offer. Value 0 there: it must get something, and
/// the first rows with a value of all such bidders fit together (`who_can_take_part`).
using BidCurve = std::vector<BidRow>;

/// A row is worth at least what a smaller one is.
void make_monotone(BidCurve& curve);

/// Row of each bidder.
using RowChoice = std::vector<std::uint32_t>;

struct PartialAllocation {
  RowChoice rows;             // ties: more for the bidder named earlier
  std::vector<double> parts;  // the part of its row each bidder keeps, in (0, 1]
};
[[nodiscard]] PartialAllocation hold_auction(std::span<const BidCurve> bidders, std::int32_t gpus);
/// The two ways by which hold_auction() goes, for tests and for those who know their curves.
[[nodiscard]] PartialAllocation hold_auction_greedily(std::span<const BidCurve> bidders,
                                                      std::int32_t gpus);
[[nodiscard]] PartialAllocation hold_auction_exactly(std::span<const BidCurve> bidders,
                                                     std::int32_t gpus);

/// Whole GPUs of `gpus` that a part leaves; sums that should be whole are not cut by rounding.
[[nodiscard]] std::int32_t gpus_kept(double part, std::int32_t gpus) noexcept;
/// The largest row within what the bidder keeps of its row: gangs are not cut.
[[nodiscard]] std::uint32_t row_kept(const BidCurve& curve, std::uint32_t row, double part);

/// Sum of the logarithms of the values: what is maximised.
[[nodiscard]] double log_welfare(std::span<const BidCurve> bidders, const RowChoice& rows);

/// Gives what is left row by row to the bidder whose value is the smallest (ties: lower id; among
/// those with nothing the bidder named earlier) and whose next row fits. Answers what nobody took.
std::int32_t hand_out(std::span<const BidCurve> bidders, std::span<const std::uint32_t> ids,
                      RowChoice& rows, std::int32_t left);

/// In the order given, those who can all get their smallest useful row at once: `least` GPUs each,
/// 0 for those who can do without.
[[nodiscard]] std::vector<std::size_t> who_can_take_part(std::span<const std::int32_t> least,
                                                         std::int32_t gpus);

}  // namespace berth
