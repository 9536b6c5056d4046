// Makes the processes of an attempt: from the job to an order for the host. What a library throws
// over a request is that request's matter, so that nothing leaves here as an exception.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "daemon/attempt.h"
#include "exec/host.h"

namespace berth {

class AttemptLauncher {
 public:
  /// Everything the host needs to run this attempt; an error says why it cannot be run.
  using OrderMaker = std::function<Result<LaunchOrder>(const LedgerJob&, const Attempt&)>;
  AttemptLauncher(Host& host, OrderMaker order) : host_(host), order_(std::move(order)) {}

  struct Failure {
    std::string why;
    bool is_of_request = false;  // it will not change; what the machine lacks may
  };
  /// Nothing: the host has it.
  [[nodiscard]] std::optional<Failure> launch(const LedgerJob& job, const Attempt& attempt) const;

 private:
  Host& host_;
  OrderMaker order_;
};

}  // namespace berth
