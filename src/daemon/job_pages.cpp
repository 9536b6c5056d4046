#include "daemon/job_pages.h"

#include <algorithm>
#include <iterator>

namespace berth {

std::optional<PastQuery> past_part(const JobFilter& filter) {
  constexpr auto kEnds = static_cast<std::size_t>(LiveState::OutOfMemory) -
                         static_cast<std::size_t>(LiveState::Completed) + 1;
  PastQuery query{.user = filter.user,
                  .group = filter.group,
                  .queue = filter.queue,
                  .name = filter.name,
                  .numbers = filter.numbers,
                  .since_wall = filter.ended_since,
                  .order = PastQuery::Order::Number,
                  .after = filter.after,
                  .limit = filter.limit + 1};
  for (const LiveState state : filter.states) {
    if (const auto outcome = outcome_from(to_string(state)); outcome && is_over(state))
      query.outcomes.push_back(*outcome);
  }
  std::ranges::sort(query.outcomes);
  const auto rest = std::unique(query.outcomes.begin(), query.outcomes.end());
  query.outcomes.erase(rest, query.outcomes.end());
  if (query.outcomes.empty()) return std::nullopt;
  if (query.outcomes.size() == kEnds) query.outcomes.clear();  // all: an index counts them
  return query;
}

void add_past(JobPage& page, std::vector<JobView> past, std::size_t total, std::size_t limit) {
  std::vector<JobView> both;
  std::ranges::set_union(past, page.jobs, std::back_inserter(both), {}, &JobView::number,
                         &JobView::number);  // of a job in both the first is taken
  const std::size_t twice = past.size() + page.jobs.size() - both.size();
  page.total += total - std::min(twice, total);
  page.jobs = std::move(both);
  if (page.jobs.size() > limit) {
    page.jobs.resize(limit);
    page.next = page.jobs.back().number;
  } else if (page.next) {  // there are more that live
    page.next = page.jobs.back().number;
  }
}

}  // namespace berth
