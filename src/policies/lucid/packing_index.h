// Which running job a new one may be put beside (Lucid's indolent packing). The partner runs alone
// on its GPUs, has as many of them, enough device memory left, a sharing score that adds up to at
// most two, and will not be gone long before the newcomer.
//
// Running jobs lie in lists by (pool, GPUs, score), in run order (start, then id). A list is a
// tournament over memory left and expected end: the first job that has enough of both is found
// without looking at the others, and "none" is usually answered at the root.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "policies/lucid/sharing_score.h"

namespace berth::lucid {

/// A running job as a possible partner.
struct PackingPartner {
  Time start{};
  JobId job;
  PoolId pool;
  std::int32_t gpus = 1;
  SharingScore score = SharingScore::Medium;
  double memory_left_mib = 0;  // of each of its devices
  Time expected_end{};         // now + believed work left
};

/// A job that looks for a partner.
struct Newcomer {
  std::int32_t gpus = 1;
  SharingScore score = SharingScore::Medium;
  double memory_mib = 0;  // on each device
  Duration left{};        // believed work
};

class PackingIndex {
 public:
  enum class Choice : std::uint8_t { FirstStarted, LeastScore };
  static constexpr std::int32_t kMaxGpus = 8;  // one server
  static constexpr int kMaxScoreSum = 2;

  explicit PackingIndex(Choice choice = Choice::FirstStarted) : choice_(choice) {}

  /// A job began to run alone on its devices.
  void add(const PackingPartner& partner);
  /// It shares its devices now, or is over. Nothing happens if it is not there.
  void remove(const PackingPartner& partner);

  /// A partner among the jobs of the pool: its run comes first, or its score is least.
  [[nodiscard]] std::optional<PackingPartner> find(PoolId pool, const Newcomer& newcomer,
                                                   Time now) const;
  /// Does the first of two partners come before the second?
  [[nodiscard]] bool is_before(const PackingPartner& a, const PackingPartner& b) const noexcept;

 private:
  class List {
   public:
    void add(const PackingPartner& partner);
    void remove(const PackingPartner& partner);
    [[nodiscard]] const PackingPartner* first(double memory_mib, Time end) const noexcept;

   private:
    struct Most {
      double memory_left_mib;
      Time expected_end;
    };
    static constexpr Most kNobody{-1, Time{Duration::min()}};
    [[nodiscard]] std::size_t position_of(const PackingPartner& partner) const noexcept;
    [[nodiscard]] Most leaf(std::size_t position) const noexcept;
    void update(std::size_t position) noexcept;
    void rebuild();

    std::vector<PackingPartner> jobs_;  // in run order; a removed one stays until the next rebuild
    std::vector<bool> is_present_;
    std::vector<Most> most_;  // a heap-shaped tree; leaf i is at width_ + i
    std::size_t width_ = 0;
    std::size_t present_ = 0;
  };
  using Key = std::tuple<PoolId, std::int32_t, SharingScore>;

  Choice choice_;
  std::map<Key, List> lists_;
};

}  // namespace berth::lucid
