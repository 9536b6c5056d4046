#include "daemon/waiting_cycle.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "daemon/dependency_targets.h"

namespace berth {

namespace {

class Search {
 public:
  Search(const Ledger& ledger, JobNumber job, const JobSpec& asked)
      : ledger_(ledger), job_(job), asked_(asked) {}

  std::optional<std::string> run() {
    open_.push_back(job_);
    while (!open_.empty()) {
      const JobNumber next = open_.back();
      open_.pop_back();
      if (look_at(next)) return cycle_text();
    }
    return std::nullopt;
  }

 private:
  using Name = std::pair<std::string, std::string>;  // user, name

  [[nodiscard]] const JobSpec& spec_of(const LedgerJob& job) const {
    return job.number == job_ ? asked_ : *job.spec;
  }
  [[nodiscard]] static Name name_of(const JobSpec& spec) { return {spec.user, spec.name}; }

  /// True: the ring is closed.
  bool look_at(JobNumber number) {
    const LedgerJob* job = ledger_.find(number);
    if (job == nullptr || (job->attempt && number != job_)) return false;
    for (const Dependency& dependency : spec_of(*job).dependencies) {
      if (dependency.kind == DependencyKind::Singleton) {
        if (wait_for_namesakes(number, name_of(spec_of(*job)))) return true;
        continue;
      }
      for (const JobNumber one : targets(dependency, *job)) {
        const LedgerJob* target = ledger_.find(one);
        if (target == nullptr) continue;
        if (dependency.kind == DependencyKind::After && target->first_start) continue;
        if (wait_for(number, one)) return true;
      }
    }
    return false;
  }

  [[nodiscard]] std::vector<JobNumber> targets(const Dependency& dependency,
                                               const LedgerJob& waiting) const {
    NamedJob named;
    if (const LedgerJob* live = ledger_.find(dependency.job)) {
      named.array = live->array;
      if (live->spec->array) named.indices = &*live->spec->array;
    }
    return targets_of(dependency, named,
                      waiting.array != 0 ? std::optional{waiting.array_index} : std::nullopt);
  }

  bool wait_for(JobNumber waiting, JobNumber target) {
    const bool is_new = reached_from_.emplace(target, waiting).second;
    if (target == job_) return true;
    if (is_new) open_.push_back(target);
    return false;
  }

  /// All earlier ones of its name. Nobody is looked at twice, however many such jobs there are.
  bool wait_for_namesakes(JobNumber number, const Name& name) {
    if (namesakes_.empty()) {
      for (const auto& [other, job] : ledger_.jobs())
        namesakes_[name_of(spec_of(job))].jobs.push_back(other);
    }
    Namesakes& all = namesakes_[name];
    for (; all.seen < all.jobs.size() && all.jobs[all.seen] < number; ++all.seen) {
      if (wait_for(number, all.jobs[all.seen])) return true;
    }
    return false;
  }

  [[nodiscard]] std::string cycle_text() const {
    std::vector<JobNumber> ring{job_};
    for (JobNumber at = reached_from_.at(job_); at != job_; at = reached_from_.at(at))
      ring.push_back(at);
    std::ranges::reverse(ring);  // ends at the job itself
    constexpr std::size_t kMostShown = 8;
    std::string text;
    JobNumber from = job_;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      if (i == kMostShown) return text + ", and so on";
      text += fmt::format("{}{} waits for {}", text.empty() ? "" : ", ", from, ring[i]);
      from = ring[i];
    }
    return text;
  }

  struct Namesakes {
    std::vector<JobNumber> jobs;
    std::size_t seen = 0;
  };
  const Ledger& ledger_;
  JobNumber job_;
  const JobSpec& asked_;
  std::vector<JobNumber> open_;
  std::unordered_map<JobNumber, JobNumber> reached_from_;
  std::map<Name, Namesakes> namesakes_;
};

}  // namespace

std::optional<std::string> waiting_cycle(const Ledger& ledger, JobNumber job,
                                         const JobSpec& asked) {
  return Search{ledger, job, asked}.run();
}

}  // namespace berth
