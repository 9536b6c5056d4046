// How a job of a kind would run as a newcomer: the sub-batches it needs on devices of its own, and
// its pace and sub-batches beside jobs of a group. Each is computed once, by kind: the rate model
// is slow, and a pass asks for thousands of pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/view.h"
#include "policies/bsbf/partners.h"
#include "policies/kit/memo.h"

namespace berth::bsbf {

class Newcomers {
 public:
  /// So much device memory stays free beside two jobs.
  explicit Newcomers(std::int32_t reserve_mib) : reserve_mib_(reserve_mib) {}

  /// Sub-batches on devices of its own; nothing if its model does not fit with single samples.
  [[nodiscard]] std::optional<std::int32_t> steps_alone(const View& view, KindId kind, PoolId pool);
  /// The same in the memory that is left on a device beside its job.
  [[nodiscard]] std::optional<std::int32_t> steps_beside(const View& view, KindId kind,
                                                         std::int64_t free_mib) const;
  [[nodiscard]] const Beside& beside(const View& view, KindId kind, const PartnerIndex& partners,
                                     BucketId bucket);

 private:
  struct Row {
    std::vector<std::optional<std::int32_t>> alone;  // by PoolId
    std::vector<std::optional<Beside>> beside;       // by BucketId, once known
  };
  [[nodiscard]] Row& row(const View& view, KindId kind);
  [[nodiscard]] Beside compute(const View& view, const Kind& kind, const PartnerGroup& group) const;

  std::int32_t reserve_mib_;
  Memo<KindId, Row> rows_;
};

}  // namespace berth::bsbf
