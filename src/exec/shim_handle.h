// A hold on a living shim: tells when it is gone, and carries commands to it and to nobody else.
#pragma once

#include <optional>

#include "exec/run_dir.h"
#include "exec/shim_protocol.h"

namespace berth {

class ShimHandle {
 public:
  /// Nothing if no living shim holds the claim.
  [[nodiscard]] static std::optional<ShimHandle> open(const RunDir& directory, AttemptId attempt);

  /// Readable when the shim is gone.
  [[nodiscard]] int fd() const noexcept { return process_.get(); }
  /// False if it is gone, or so many commands are waiting that the kernel takes no more.
  bool send(ShimCommand command) const noexcept;

 private:
  explicit ShimHandle(Fd process) : process_(std::move(process)) {}
  Fd process_;
};

}  // namespace berth
