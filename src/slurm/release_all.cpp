#include "slurm/release_all.h"

#include <algorithm>

#include <fmt/format.h>

namespace berth::slurm {

namespace {

constexpr std::size_t kAtOnce = 100;  // ids in one command

class Releaser {
 public:
  Releaser(SlurmCommands& commands, const ReleaseOptions& options)
      : commands_(commands), options_(options) {}

  Result<Released> run() {
    BERTH_TRY(const auto jobs, waiting_jobs(commands_));
    for (const WaitingJob& job : jobs) {
      restore_request(job);
      if (done_.was_stopped) return std::move(done_);
    }
    std::vector<std::string> single, arrays;
    for (const WaitingJob& job : jobs) {
      const Holder holder = holder_of(job);
      if (holder == Holder::Berth)
        (job.ref.find('[') == std::string::npos ? single : arrays).push_back(job.ref);
      else if (job.is_held)
        ++done_.left_held;
    }
    for (std::size_t at = 0; at < single.size(); at += kAtOnce)
      release(
          {single.begin() + static_cast<std::ptrdiff_t>(at),
           single.begin() + static_cast<std::ptrdiff_t>(std::min(at + kAtOnce, single.size()))});
    // Not joined to others: their own commas would be taken for ends.
    for (const std::string& array : arrays) release({array});
    if (options_.is_rehearsal) return std::move(done_);
    single.insert(single.end(), arrays.begin(), arrays.end());
    BERTH_TRY_VOID(count_what_is_left(single));
    return std::move(done_);
  }

 private:
  bool act(const std::vector<std::string>& words) {
    if (!done_.was_stopped && options_.should_stop && options_.should_stop())
      done_.was_stopped = true;
    if (done_.was_stopped) return false;
    done_.actions.push_back(fmt::format("{}", fmt::join(words, " ")));
    if (options_.is_rehearsal) return true;
    const auto said = commands_.run(words);
    if (said && said->exit == 0) return true;
    done_.failures.push_back(fmt::format("`{}`: {}", done_.actions.back(),
                                         said ? said->complaint() : said.error().text()));
    return false;
  }

  /// What the user had asked for, where Berth has asked for something else since.
  void restore_request(const WaitingJob& job) {
    if (!job.mark || holder_of(job) == Holder::Admin) return;
    std::vector<std::string> words{"scontrol", "update", "jobid=" + job.ref};
    if (job.required_nodes != job.mark->nodes) {
      words.push_back("reqnodelist=" + job.mark->nodes);
      if (!job.mark->node_count.empty()) words.push_back("numnodes=" + job.mark->node_count);
    }
    const bool clears = words.size() > 3;
    const bool frees_begin = options_.is_for_good && job.eligible >= kUserHold;
    if (frees_begin)
      words.push_back(job.mark->begin > 0 ? fmt::format("starttime=uts{}", job.mark->begin)
                                          : std::string("starttime=now"));
    if (options_.is_for_good) words.push_back("admincomment=" + without_mark(job.admin_comment));
    if (words.size() == 3 || !act(words)) return;
    if (clears) ++done_.nodes_cleared;
    if (frees_begin) ++done_.user_held;
  }

  void release(const std::vector<std::string>& refs) {
    if (act({"scontrol", "release", fmt::format("{}", fmt::join(refs, ","))})) {
      if (options_.is_rehearsal) done_.released += refs.size();
      return;
    }
    // One that has begun or gone meanwhile must not keep the others: each by itself.
    if (refs.size() > 1 && !done_.was_stopped) {
      done_.failures.pop_back();
      for (const std::string& ref : refs) release({ref});
    }
  }

  /// Only a second look tells what was released; marks may be gone by then.
  Result<void> count_what_is_left(const std::vector<std::string>& wanted) {
    if (wanted.empty()) return {};
    BERTH_TRY(const auto jobs, waiting_jobs(commands_));
    std::size_t left = 0;
    for (const WaitingJob& job : jobs)
      left += job.is_held && std::ranges::find(wanted, job.ref) != wanted.end() ? 1U : 0U;
    done_.released = wanted.size() - std::min(wanted.size(), left);
    return {};
  }

  SlurmCommands& commands_;
  const ReleaseOptions& options_;
  Released done_;
};

}  // namespace

Result<Released> release_all(SlurmCommands& commands, const ReleaseOptions& options) {
  return Releaser(commands, options).run();
}

}  // namespace berth::slurm
