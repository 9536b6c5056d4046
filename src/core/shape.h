// The shape of a request: everything that decides where a job can go and nothing else. Traces have
// few distinct shapes (tens, not millions), so queues are kept per shape: "does anything waiting
// fit" is asked once per shape instead of once per job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/id.h"

namespace berth {

using ShapeId = Id<struct ShapeTag>;

/// Relaxed: as few nodes as possible now. Consolidated: the fewest nodes that could ever hold it,
/// or wait.
enum class Locality : std::uint8_t { Relaxed, Consolidated };

struct Shape {
  std::int32_t gpus = 1;
  std::int32_t gpu_milli = 1000;  // less: a fraction of one device
  std::int32_t cpus_milli_per_gpu = 0;
  std::int32_t memory_mib_per_gpu = 0;
  Locality locality = Locality::Relaxed;
  std::int32_t bus_milli = 0;  // of a server's bus; 0 also where nobody minds its neighbours
  std::vector<PoolId> pools;   // acceptable device types, preferred first

  [[nodiscard]] bool is_fraction() const noexcept { return gpu_milli < 1000; }
  [[nodiscard]] bool needs_side_resources() const noexcept {
    return cpus_milli_per_gpu > 0 || memory_mib_per_gpu > 0;
  }
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

class ShapeTable {
 public:
  ShapeId intern(const Shape& shape) {
    const auto [entry, is_new] =
        ids_.try_emplace(shape, ShapeId{static_cast<std::uint32_t>(shapes_.size())});
    if (is_new) {
      shapes_.push_back(shape);
      never_reason_.emplace_back();
    }
    return entry->second;
  }
  [[nodiscard]] const Shape& operator[](ShapeId id) const noexcept { return shapes_[id.value]; }
  [[nodiscard]] std::size_t size() const noexcept { return shapes_.size(); }
  /// Why no state of the whole cluster could hold this shape; empty if some state can. Holds no
  /// text of any request: ShapeMaker::why_never says it to the one who asked.
  [[nodiscard]] const std::string& never_reason(ShapeId id) const noexcept {
    return never_reason_[id.value];
  }
  void set_never_reason(ShapeId id, std::string reason) {
    never_reason_[id.value] = std::move(reason);
  }

 private:
  std::vector<Shape> shapes_;
  std::vector<std::string> never_reason_;
  std::map<Shape, ShapeId> ids_;
};

}  // namespace berth
