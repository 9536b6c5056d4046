#include "advise/past.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "advise/job_views.h"

namespace berth::advise {

namespace {

constexpr std::int64_t kHour = 3'600, kDay = 24 * kHour;
constexpr std::int64_t kFirstSpan = 6 * kHour;
constexpr std::int64_t kFarthest = 366 * kDay;  // back from where a page begins
constexpr std::int64_t kAhead = kHour;          // of Slurm's clock before ours
constexpr std::size_t kMostRows = 50'000;       // read for one page

std::string name_of(JobNumber number) {
  const auto array = number >> 32U;
  return array != 0 ? fmt::format("{}_{}", array, number & 0xffffffffU) : fmt::format("{}", number);
}

bool is_meant(const slurm::Job& job, const PastQuery& query) {
  const std::int64_t ended = job.ended * kMicro;
  const JobNumber number = job.key.job;
  if (query.user && job.user != *query.user) return false;
  if (query.group && job.account != *query.group) return false;
  if (query.queue && job.partition != *query.queue) return false;
  if (query.name && job.name != *query.name) return false;
  if (query.since_wall && ended < *query.since_wall) return false;
  if (query.until_wall && ended >= *query.until_wall) return false;
  if (query.before && std::pair{ended, number} >= *query.before) return false;
  if (query.after && number <= *query.after) return false;
  if (query.outcomes.empty()) return true;
  const auto outcome = outcome_from(to_string(live_state(job)));
  return outcome && std::ranges::find(query.outcomes, *outcome) != query.outcomes.end();
}

void add_meant(std::vector<slurm::Job> jobs, const PastQuery& query,
               std::vector<slurm::Job>& page) {
  for (slurm::Job& job : jobs)
    if (is_meant(job, query)) page.push_back(std::move(job));
}

void put_in_order(const PastQuery& query, std::vector<slurm::Job>& page) {
  const bool by_number = query.order == PastQuery::Order::Number;
  std::ranges::sort(page, [&](const slurm::Job& a, const slurm::Job& b) {
    if (by_number) return std::tuple(a.key.job, a.ended) < std::tuple(b.key.job, b.ended);
    return std::tuple(b.ended, b.key.job) < std::tuple(a.ended, a.key.job);
  });
  // An id that a killed slurmctld gave out again: the later job is the one people mean.
  if (by_number) {
    const auto same = [](const slurm::Job& a, const slurm::Job& b) {
      return a.key.job == b.key.job;
    };
    std::ranges::reverse(page);
    page.erase(std::unique(page.begin(), page.end(), same), page.end());
    std::ranges::reverse(page);
  }
}

Result<std::vector<slurm::Job>> from_books(Books& books, const PastQuery& query,
                                           std::int64_t wall) {
  PastSpan span{
      .user = query.user, .account = query.group, .partition = query.queue, .name = query.name};
  for (const JobNumber number : query.numbers) span.jobs.push_back(name_of(number));
  std::int64_t until = wall / kMicro + kAhead;
  if (query.until_wall) until = std::min(until, *query.until_wall / kMicro + 1);
  if (query.before) until = std::min(until, query.before->first / kMicro + 1);
  const std::int64_t farthest =
      query.since_wall ? *query.since_wall / kMicro : std::max<std::int64_t>(1, until - kFarthest);
  // By number there is no latest: all that is asked for, and of a whole list the last day.
  const bool by_number = query.order == PastQuery::Order::Number;
  std::int64_t width = !by_number                                   ? kFirstSpan
                       : !query.numbers.empty() || query.since_wall ? until - farthest
                                                                    : kDay;
  std::vector<slurm::Job> page;
  for (std::size_t read = 0; until > farthest && read < kMostRows; width *= 4) {
    span.until = until;
    span.from = std::max(farthest, until - width);
    BERTH_TRY(auto jobs, books.ended(span));
    read += jobs.size();
    add_meant(std::move(jobs), query, page);
    until = span.from;
    if (by_number || page.size() > query.limit) break;
  }
  return page;
}

}  // namespace

Result<std::vector<slurm::Job>> past_jobs(const PastSource& source, const PastQuery& query,
                                          std::int64_t wall) {
  std::vector<slurm::Job> page;
  if (source.books != nullptr) {
    BERTH_TRY(page, from_books(*source.books, query, wall));
  } else {
    auto seen = source.seen();
    if (!query.numbers.empty())
      std::erase_if(seen, [&](const slurm::Job& job) {
        return std::ranges::none_of(query.numbers, [&](JobNumber number) {
          return number == job.key.job || number == job.array ||
                 (job.array != 0 &&
                  name_of(number) == fmt::format("{}_{}", job.array, job.array_tasks));
        });
      });
    add_meant(std::move(seen), query, page);
  }
  put_in_order(query, page);
  if (page.size() > query.limit + 1) page.resize(query.limit + 1);
  return page;
}

}  // namespace berth::advise
