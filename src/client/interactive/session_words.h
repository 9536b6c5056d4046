// What srun, salloc and sattach do with their words before anything else.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "client/console.h"
#include "client/draft.h"
#include "client/slurm/help.h"

namespace berth::client {

struct SessionManner {
  slurm::HelpPage page;
  std::string_view prefix;  // of its variables: "SLURM_", "SALLOC_"
};

/// From the command line, and below it the environment (SALLOC_PARTITION …).
[[nodiscard]] Result<Draft> session_draft(const SessionManner& manner, const OptionTable& table,
                                          const Parsed& parsed);

/// Of a path.
[[nodiscard]] std::string last_part(std::string_view path);

}  // namespace berth::client
