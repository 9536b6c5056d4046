#include "daemon/status_board.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

/// Jobs 1 to 20: every third is bob's, every fifth is held, every second goes to the queue "b".
Ledger twenty_jobs() {
  std::map<JobNumber, LedgerJob> jobs;
  for (JobNumber number = 1; number <= 20; ++number) {
    JobSpec spec;
    spec.user = number % 3 == 0 ? "bob" : "ann";
    spec.queue = number % 2 == 0 ? "b" : "a";
    LedgerJob& job = jobs[number];
    job.number = number;
    job.is_held = number % 5 == 0;
    job.spec = std::make_shared<const JobSpec>(std::move(spec));
  }
  Ledger ledger;
  ledger.restore(std::move(jobs), {}, 21, 1, kTimeZero);
  return ledger;
}

/// All pages one after the other; every page must tell the same total.
std::vector<JobNumber> paged(const StatusBoard& board, JobFilter filter, std::size_t total) {
  std::vector<JobNumber> numbers;
  for (int pages = 0; pages < 100; ++pages) {
    const JobPage page = board.page(filter, 0);
    EXPECT_EQ(page.total, total);
    EXPECT_LE(page.jobs.size(), filter.limit);
    for (const JobView& job : page.jobs) numbers.push_back(job.number);
    if (!page.next) return numbers;
    filter.after = page.next;
  }
  ADD_FAILURE() << "the pages do not end";
  return numbers;
}

// With and without a filter two different walks are taken: both must tell the same story.
TEST(StatusBoard, PagesTellEveryJobOnceAndTheTotal) {
  const StatusBoard board{twenty_jobs()};
  for (const std::size_t limit : {1U, 3U, 7U, 20U, 100U}) {
    for (int which = 0; which < 16; ++which) {
      JobFilter filter;
      filter.limit = limit;
      if ((which & 1) != 0) filter.user = "bob";
      if ((which & 2) != 0) filter.queue = "b";
      if ((which & 4) != 0) filter.states = {LiveState::Held};
      if ((which & 8) != 0) filter.numbers = {18, 3, 5, 30, 6, 15};
      std::vector<JobNumber> expected;
      for (JobNumber number = 1; number <= 20; ++number) {
        const bool is_named =
            number == 3 || number == 5 || number == 6 || number == 15 || number == 18;
        if (((which & 1) == 0 || number % 3 == 0) && ((which & 2) == 0 || number % 2 == 0) &&
            ((which & 4) == 0 || number % 5 == 0) && ((which & 8) == 0 || is_named))
          expected.push_back(number);
      }
      EXPECT_EQ(paged(board, filter, expected.size()), expected) << which << ", limit " << limit;
    }
  }
}

/// On four devices of n1, and bound to no cores because the machine had none left.
LedgerJob unbound(JobNumber number, std::int32_t gpus, std::int32_t cpus) {
  JobSpec spec;
  spec.gpus = gpus;
  spec.cpus = cpus;
  LedgerJob job;
  job.number = number;
  job.spec = std::make_shared<const JobSpec>(std::move(spec));
  job.attempt.emplace().where = {{.node = "n1", .devices = {}, .cores = {}}};
  for (std::int32_t device = 0; device < gpus; ++device)
    job.attempt->where.front().devices.push_back(device);
  return job;
}

TEST(StatusBoard, WhoIsBoundToNoCoresHoldsThoseItAskedFor) {
  std::map<JobNumber, LedgerJob> jobs;
  jobs[1] = unbound(1, 2, 16);
  jobs[2] = unbound(2, 0, 3);
  jobs[3] = unbound(3, 1, 0);
  jobs[4] = unbound(4, 1, 2);
  jobs[4].attempt->where.front().cores = {5, 6, 7};  // got more than it asked for
  Ledger ledger;
  ledger.restore(std::move(jobs), {}, 5, 1, kTimeZero);
  StatusBoard board{std::move(ledger)};
  board.note(1, [](JobNote& note) { note.cores = std::vector<std::int32_t>{}; });
  std::vector<std::int32_t> cores;
  for (const StatusBoard::Holding& held : board.holdings()) cores.push_back(held.cores);
  EXPECT_EQ(cores, (std::vector<std::int32_t>{16, 3, 0, 3}));
}

TEST(StatusBoard, SuspendedTimeIsNoRunTime) {
  constexpr std::int64_t kSecond = 1'000'000;
  std::map<JobNumber, LedgerJob> jobs;
  jobs[1] = unbound(1, 2, 0);
  jobs[1].run_seconds = 100;  // of a run before
  jobs[1].attempt->wall = 1'000 * kSecond;
  jobs[1].attempt->gpus = 2;
  jobs[1].attempt->suspended_wall = 1'010 * kSecond;
  jobs[1].attempt->suspended_seconds = 3;
  Ledger ledger;
  ledger.restore(std::move(jobs), {}, 2, 1, kTimeZero);
  const StatusBoard board{std::move(ledger)};
  const auto view = board.view(1, 1'015 * kSecond);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->suspended_seconds, 8);  // 3 before, 5 since
  EXPECT_EQ(view->last_run_seconds, 7);   // 15 - 8
  EXPECT_EQ(view->run_seconds, 107);
  EXPECT_EQ(view->suspended, 1'010 * kSecond);
  EXPECT_EQ(view->gpu_seconds, 30);  // who is suspended keeps its devices
}

TEST(StatusBoard, AJobThatIsOverTellsOfItsLastRun) {
  const StatusBoard board{twenty_jobs()};
  PastJob past;
  past.job = unbound(21, 1, 0);
  past.job.attempts = 2;
  past.job.first_start_wall = 5;
  past.job.run_seconds = 24;
  past.last_start_wall = 9;
  past.last_run_seconds = 15;
  const JobView view = board.past_view(past);
  EXPECT_EQ(view.started, 5);
  EXPECT_EQ(view.last_started, 9);
  EXPECT_EQ(view.last_run_seconds, 15);
  EXPECT_EQ(view.run_seconds, 24);
}

TEST(StatusBoard, TheTasksOfABatchScriptAreThoseItAskedFor) {
  std::map<JobNumber, LedgerJob> jobs;
  const auto add = [&](JobNumber number, std::int32_t tasks,
                       std::map<std::string, std::string> env) {
    JobSpec spec;
    spec.tasks = tasks;
    spec.env = std::move(env);
    jobs[number].number = number;
    jobs[number].spec = std::make_shared<const JobSpec>(std::move(spec));
  };
  add(1, 1, {{"SLURM_NTASKS", "2"}});
  add(2, 4, {{"SLURM_NTASKS", "2"}});
  add(3, 1, {});
  add(4, 1, {{"SLURM_NTASKS", "many"}});
  Ledger ledger;
  ledger.restore(std::move(jobs), {}, 5, 1, kTimeZero);
  const StatusBoard board{std::move(ledger)};
  EXPECT_EQ(board.view(1, 0)->tasks, 2);
  EXPECT_EQ(board.view(2, 0)->tasks, 4);  // a gang of ours
  EXPECT_EQ(board.view(3, 0)->tasks, 1);
  EXPECT_EQ(board.view(4, 0)->tasks, 1);
}

TEST(StatusBoard, APageBehindTheLastJobIsEmpty) {
  const StatusBoard board{twenty_jobs()};
  JobFilter filter;
  filter.after = 20;
  const JobPage page = board.page(filter, 0);
  EXPECT_TRUE(page.jobs.empty());
  EXPECT_EQ(page.next, std::nullopt);
  EXPECT_EQ(page.total, 20U);
}

}  // namespace
}  // namespace berth
