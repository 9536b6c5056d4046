// sacct's JSON: jobs with their steps inside.
#pragma once

#include <vector>

#include "client/slurm/json.h"
#include "client/slurm/sacct_fields.h"

namespace berth::client::slurm {

/// Rows of a job are followed by those of its steps.
[[nodiscard]] Json account_json(const std::vector<AccountRow>& rows, const AccountFacts& facts);

}  // namespace berth::client::slurm
