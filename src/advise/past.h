// Jobs that are over, page by page: from Slurm's accounting where there is one, else from what was
// seen to end. Accounting is asked for spans of time, from the latest backwards and wider and
// wider, until a page is full; it is never asked for all it has.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "advise/books.h"
#include "base/result.h"
#include "store/store.h"

namespace berth::advise {

struct PastSource {
  Books* books = nullptr;                           // nothing: there is no accounting
  std::function<std::vector<slurm::Job>()> seen{};  // instead
};
/// One more than `query.limit` if there are more, in the order asked for.
[[nodiscard]] Result<std::vector<slurm::Job>> past_jobs(const PastSource& source,
                                                        const PastQuery& query, std::int64_t wall);

}  // namespace berth::advise
