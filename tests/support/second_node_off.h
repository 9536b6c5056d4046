// Switches the second of two nodes off at 0 s and on at 40 s, beside any policy.
#pragma once

#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "core/power_manager.h"

namespace berth::test {

class SecondNodeOff final : public PowerManager {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "second-off"; }
  void manage(const View& view, Plan& plan) override {
    if (view.now == kTimeZero) {
      EXPECT_TRUE(plan.power_off(NodeId{1}));
    } else if (view.now == seconds_to_time(40)) {
      EXPECT_TRUE(plan.power_on(NodeId{1}));
    }
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    if (view.now < seconds_to_time(40)) return seconds_to_time(40);
    return std::nullopt;
  }
};

}  // namespace berth::test
