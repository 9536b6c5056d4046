// Tables by job size and by user, and the distributions of the report. Everything here comes from
// the rows of jobs alone, so that `berth report` can do it again from jobs.csv.

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "metrics/derive.h"

namespace berth {

namespace {

constexpr std::size_t kUsersShown = 30;
constexpr std::size_t kRejectionsShown = 100;

// Sums and all completion times: quantiles need the values themselves.
class Group {
 public:
  void add(const JobOutcome& job) {
    jct_.push_back(to_seconds(job.jct()));
    queue_ += to_seconds(job.queue_time());
    gpu_seconds_ += to_seconds(job.run_time) * job.gpus;
    preemptions_ += job.preemptions;
  }
  void add(const Group& other) {
    jct_.insert(jct_.end(), other.jct_.begin(), other.jct_.end());
    queue_ += other.queue_;
    gpu_seconds_ += other.gpu_seconds_;
    preemptions_ += other.preemptions_;
  }
  [[nodiscard]] bool empty() const noexcept { return jct_.empty(); }
  [[nodiscard]] double gpu_seconds() const noexcept { return gpu_seconds_; }
  [[nodiscard]] GroupRow row(std::string label) && {
    std::ranges::sort(jct_);
    return {.label = std::move(label),
            .jobs = jct_.size(),
            .avg_jct = mean(jct_).value_or(0),
            .median_jct = quantile(jct_, 0.5).value_or(0),
            .p95_jct = quantile(jct_, 0.95).value_or(0),
            .avg_queue_time = jct_.empty() ? 0 : queue_ / static_cast<double>(jct_.size()),
            .gpu_hours = gpu_seconds_ / 3600,
            .preemptions = preemptions_};
  }

 private:
  std::vector<double> jct_;
  double queue_ = 0;
  double gpu_seconds_ = 0;
  std::uint64_t preemptions_ = 0;
};

struct SizeClass {
  std::int32_t most;
  std::string_view label;
};
constexpr std::array kSizeClasses{
    SizeClass{1, "1"},      SizeClass{2, "2"},
    SizeClass{4, "3-4"},    SizeClass{8, "5-8"},
    SizeClass{16, "9-16"},  SizeClass{32, "17-32"},
    SizeClass{64, "33-64"}, SizeClass{std::numeric_limits<std::int32_t>::max(), ">64"}};

}  // namespace

std::vector<GroupRow> groups_by_size(const Outcomes& jobs) {
  std::array<Group, kSizeClasses.size()> groups;
  for (const JobOutcome& job : jobs.rows) {
    if (!job.ran_to_an_end()) continue;
    const auto found = std::ranges::lower_bound(kSizeClasses, job.gpus, {}, &SizeClass::most);
    groups[static_cast<std::size_t>(found - kSizeClasses.begin())].add(job);
  }
  std::vector<GroupRow> rows;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].empty())
      rows.push_back(std::move(groups[i]).row(std::string(kSizeClasses[i].label)));
  }
  return rows;
}

std::vector<GroupRow> groups_by_user(const Outcomes& jobs) {
  std::map<NameId, Group> by_user;
  for (const JobOutcome& job : jobs.rows) {
    if (job.ran_to_an_end()) by_user[job.user].add(job);
  }
  std::vector<std::pair<NameId, Group*>> order;
  for (auto& [user, group] : by_user) order.emplace_back(user, &group);
  std::ranges::sort(order, {}, [&](const auto& entry) {
    // By name where GPU time is equal: the 30 shown are the same on every machine.
    return std::tuple(-entry.second->gpu_seconds(), jobs.names.text(entry.first));
  });
  std::vector<GroupRow> rows;
  Group others;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string_view name = jobs.names.text(order[i].first);
    if (i >= kUsersShown)
      others.add(*order[i].second);
    else
      rows.push_back(
          std::move(*order[i].second).row(name.empty() ? "(no user)" : std::string(name)));
  }
  if (!others.empty())
    rows.push_back(std::move(others).row(fmt::format("{} others", order.size() - kUsersShown)));
  if (rows.size() == 1 && rows.front().label == "(no user)")
    rows.clear();  // the trace names no users
  return rows;
}

void derive_from_jobs(RunData& run) {
  std::vector<double> jct, queue, slowdown, ftf;
  run.preemption_histogram.clear();
  run.rejected.clear();
  const auto put = [](std::vector<double>& values, std::optional<double> value) {
    if (value) values.push_back(*value);
  };
  for (const JobOutcome& job : run.jobs.rows) {
    if (job.state == JobState::Rejected && run.rejected.size() < kRejectionsShown) {
      run.rejected.emplace_back(run.jobs.names.text(job.id), run.jobs.names.text(job.reason));
    }
    if (!job.ran_to_an_end()) continue;
    ++run.preemption_histogram[job.preemptions];
    jct.push_back(to_seconds(job.jct()));
    queue.push_back(to_seconds(job.queue_time()));
    put(slowdown, job.slowdown());
    put(ftf, job.ftf(static_cast<double>(run.cluster.gpus)));
  }
  for (auto* values : {&jct, &queue, &slowdown, &ftf}) std::ranges::sort(*values);
  run.jct = cdf_of(jct);
  run.queue_time = cdf_of(queue);
  run.slowdown = cdf_of(slowdown);
  run.ftf = cdf_of(ftf);
  run.by_size = groups_by_size(run.jobs);
  run.by_user = groups_by_user(run.jobs);
}

}  // namespace berth
