// One list over jobs that live (the board) and jobs that are over (the store), by number: a page of
// each becomes a page of both. Ask the board first: a job that ends in between is then found twice,
// never missed, and shown as over.
#pragma once

#include <optional>
#include <vector>

#include "daemon/service.h"

namespace berth {

/// The jobs that are over among those that `filter` wants, one more than fits its page; nothing if
/// it wants none of them.
[[nodiscard]] std::optional<PastQuery> past_part(const JobFilter& filter);

/// `past`: what the above found, `total` in all.
void add_past(JobPage& page, std::vector<JobView> past, std::size_t total, std::size_t limit);

}  // namespace berth
