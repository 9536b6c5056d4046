// The kind of a job: everything that decides where it can go, how fast it is believed to run there
// and which sizes it agrees to. Jobs of one kind differ in how long they are, whose they are and
// when they came. Traces have few kinds, so what a policy computes of a job by the rate model it
// computes once per kind, in a Column<KindId, ...>.
#pragma once

#include <cstdint>
#include <map>

#include "base/id.h"
#include "core/shape.h"
#include "model/elastic.h"
#include "perf/rate_model.h"

namespace berth {

using KindId = Id<struct KindTag>;

struct Kind {
  ShapeId shape;
  ProfileId profile;
  PoolId reference = kNoPool;  // device type its traced duration stands for
  std::int32_t wanted = 1;     // devices it asks for
  std::int32_t batch = 0;      // samples per GPU and iteration; 0: as its profile says
  ElasticRange agreed;         // sizes its request agrees to
  bool says_range = false;     // false: the request says nothing of other sizes
  friend auto operator<=>(const Kind&, const Kind&) = default;
};

/// Kinds in the order in which they were first seen.
class KindTable {
 public:
  KindId intern(const Kind& kind) {
    const auto [entry, is_new] =
        ids_.try_emplace(kind, KindId{static_cast<std::uint32_t>(kinds_.size())});
    if (is_new) kinds_.push_back(kind);
    return entry->second;
  }
  [[nodiscard]] const Kind& operator[](KindId id) const noexcept { return kinds_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return kinds_.size(); }

 private:
  Column<KindId, Kind> kinds_;
  std::map<Kind, KindId> ids_;
};

}  // namespace berth
