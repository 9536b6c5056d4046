#include "golden/drawing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace berth::test {
namespace {

struct Sign {
  char sign;
  std::string_view meaning;
};
constexpr Sign kSigns[] = {
    {'.', "waits"},
    {'#', "runs"},
    {'%', "runs on the cluster's second device type"},
    {'1', "a digit: runs on so many GPUs, not on as many as it asked for"},
    {'=', "shares its GPUs with another job"},
    {'o', "holds its GPUs without progress: it starts, restarts or moves"},
    {'~', "suspended: its state stays on the host"},
    {'>', "migrates to other GPUs"},
    {'x', "refused or killed"},
};
constexpr Sign kDeviceSigns[] = {
    {'-', "idle"}, {'&', "several jobs"}, {'_', "switched off"}, {'^', "boots"}};

class Picture {
 public:
  Picture(const RunData& run, const Trace& trace, const Cluster& cluster,
          const DrawOptions& options)
      : run_(run), trace_(trace), cluster_(cluster), options_(options) {
    for (const Node& node : cluster.nodes) {
      for (std::int32_t device = 0; device < node.gpus; ++device)
        lanes_.push_back(
            {NodeId{static_cast<std::uint32_t>(&node - cluster.nodes.data())}, device});
    }
    std::map<std::string, JobId> ids;
    for (std::uint32_t job = 0; job < trace.jobs.size(); ++job)
      ids[std::string(trace.text(trace.jobs[job].id))] = JobId{job};
    bars_of_.resize(trace.jobs.size());
    bars_on_.resize(lanes_.size());
    for (const GanttBar& bar : run.gantt->bars) {
      const JobId job = ids.at(run.gantt->jobs[bar.job].id);
      bars_of_[job.value].push_back({bar, job});
      bars_on_[bar.lane].push_back({bar, job});
      end_ = std::max(end_, bar.end);
    }
    for (const JobOutcome& job : run.jobs.rows) end_ = std::max(end_, job.submit);
  }

  std::string draw() {
    for (std::uint32_t job = 0; job < trace_.jobs.size(); ++job)
      rows_.emplace_back(job_title(JobId{job}),
                         row([&](Time at) { return job_sign(JobId{job}, at); }));
    const std::size_t jobs = rows_.size();
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      rows_.emplace_back(fmt::format("{} gpu {}", cluster_.nodes[lanes_[lane].node.value].name,
                                     lanes_[lane].device),
                         row([&](Time at) { return device_sign(lane, at); }));
    }
    std::size_t width = 0;
    for (const auto& [title, signs] : rows_) width = std::max(width, title.size());
    std::string text = ruler(width);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (i == jobs) text += '\n';
      text += fmt::format("{:<{}} |{}|\n", rows_[i].first, width, rows_[i].second);
    }
    return text + legend(jobs);
  }

 private:
  struct Lane {
    NodeId node;
    std::int32_t device;
  };
  struct Bar {
    GanttBar bar;
    JobId job;
    [[nodiscard]] bool covers(Time at) const { return bar.start <= at && at < bar.end; }
  };

  template <class SignAt>
  [[nodiscard]] std::string row(const SignAt& sign_at) const {
    std::string signs;
    for (Time at{}; at < end_; at += options_.column) signs += sign_at(at);
    return signs;
  }

  [[nodiscard]] std::string job_title(JobId job) const {
    const TraceJob& asked = trace_.jobs[job.value];
    const std::string deadline =
        asked.deadline ? fmt::format(" by {:g}", to_seconds(*asked.deadline)) : "";
    return fmt::format("{} {} x {:g} s{}", trace_.text(asked.id), asked.gpus,
                       to_seconds(asked.duration), deadline);
  }

  /// The column that begins at `at` shows what is true then, but a move within it is shown too.
  [[nodiscard]] char job_sign(JobId job, Time at) const {
    const JobOutcome& outcome = run_.jobs.rows[job.value];
    const std::optional<ActionKind> last = last_action(job, at);
    if (did(job, ActionKind::Reject, at) || did(job, ActionKind::Kill, at)) return 'x';
    if (did(job, ActionKind::Migrate, at)) return '>';
    const GanttBar* held = nullptr;
    std::int32_t gpus = 0;
    bool shares = false;
    for (const Bar& each : bars_of_[job.value]) {
      if (!each.covers(at)) continue;
      held = &each.bar;
      ++gpus;
      for (const Bar& other : bars_on_[each.bar.lane])
        shares = shares || (other.job != job && other.covers(at));
    }
    if (held == nullptr) {
      const bool is_over = outcome.state == JobState::Rejected || *outcome.finish <= at;
      if (at < outcome.submit || is_over) return ' ';
      return last == ActionKind::Suspend ? '~' : '.';
    }
    if (held->kind == IntervalKind::Overhead) return 'o';
    if (gpus != outcome.gpus) return gpus < 10 ? static_cast<char>('0' + gpus) : '*';
    if (shares) return '=';
    return cluster_.nodes[lanes_[held->lane].node.value].pool == PoolId{0} ? '#' : '%';
  }

  [[nodiscard]] char device_sign(std::uint32_t lane, Time at) const {
    if (const char power = power_sign(lanes_[lane].node, at); power != '\0') return power;
    char sign = '-';
    for (const Bar& each : bars_on_[lane]) {
      if (!each.covers(at)) continue;
      sign = sign == '-' ? trace_.text(trace_.jobs[each.job.value].id).front() : '&';
    }
    return sign;
  }

  /// '\0' while it is on.
  [[nodiscard]] char power_sign(NodeId node, Time at) const {
    char sign = '\0';
    for (const ActionRow& action : run_.actions->rows) {
      const bool powers = action.kind == ActionKind::PowerOn || action.kind == ActionKind::PowerOff;
      if (action.at > at || !powers) continue;
      if (run_.actions->slices[action.first_slice].node != node) continue;
      const bool boots = at < action.at + options_.boot;
      sign = action.kind == ActionKind::PowerOff ? '_' : boots ? '^' : '\0';
    }
    return sign;
  }

  [[nodiscard]] std::optional<ActionKind> last_action(JobId job, Time at) const {
    std::optional<ActionKind> last;
    for (const ActionRow& action : run_.actions->rows)
      if (action.job == job && action.at <= at) last = action.kind;
    return last;
  }
  [[nodiscard]] bool did(JobId job, ActionKind kind, Time at) const {
    return std::ranges::any_of(run_.actions->rows, [&](const ActionRow& action) {
      return action.job == job && action.kind == kind && at <= action.at &&
             action.at < at + options_.column;
    });
  }

  /// Every tenth column by its time.
  [[nodiscard]] std::string ruler(std::size_t width) const {
    std::string text(width + 2, ' ');
    const std::int64_t columns = (end_ - Time{} + options_.column - Duration{1}) / options_.column;
    for (std::int64_t column = 0; column <= columns; column += 10) {
      text.resize(width + 2 + static_cast<std::size_t>(column), ' ');
      text += fmt::format("{:g}", to_seconds(options_.column * column));
    }
    return text + " s\n";
  }

  [[nodiscard]] std::string legend(std::size_t jobs) const {
    std::set<char> used;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (const char sign : rows_[i].second) {
        const bool digit = i < jobs && '0' <= sign && sign <= '9';
        used.insert(digit ? '1' : sign);
      }
    }
    std::string text = "\n";
    const auto tell = [&](const Sign& each) {
      if (used.contains(each.sign)) text += fmt::format("{}  {}\n", each.sign, each.meaning);
    };
    for (const Sign& each : kSigns) tell(each);
    for (const Sign& each : kDeviceSigns) tell(each);
    return text;
  }

  const RunData& run_;
  const Trace& trace_;
  const Cluster& cluster_;
  DrawOptions options_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Bar>> bars_of_;  // by JobId
  std::vector<std::vector<Bar>> bars_on_;  // by lane
  Time end_{};
  std::vector<std::pair<std::string, std::string>> rows_;  // title, signs
};

}  // namespace

std::string draw(const RunData& run, const Trace& trace, const Cluster& cluster,
                 const DrawOptions& options) {
  return Picture{run, trace, cluster, options}.draw();
}

}  // namespace berth::test
