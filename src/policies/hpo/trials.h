// The trials of all studies as jobs: to which study each belongs, up to which rung it is trained,
// when it is looked at next, and what a study's deadline leaves room for. Asks training code for
// epochs and losses; starts and stops nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/view.h"
#include "policies/hpo/study.h"
#include "policies/kit/job_timers.h"

namespace berth::hpo {

using StudyId = Id<struct HpoStudyTag>;
inline constexpr StudyId kNoStudy{0xffffffffU};

class Trials {
 public:
  struct Row {
    Study study;
    std::vector<JobId> jobs;  // by TrialId
    double weight = 1;
    std::int32_t held = 0;  // GPUs of all its trials
    std::size_t unfinished = 0;
    std::optional<Time> deadline;  // a hard one
    double seconds_per_epoch = 0;  // of a trial on its own number of GPUs; 0 = not seen yet
  };
  /// `whole` 0: as the profile of the model says. A trial is first looked at after `probe`.
  Trials(const StudyRules& rules, Duration probe) : rules_(rules), probe_(probe) {}
  void begin(std::size_t jobs) { member_.resize(jobs); }

  void add(const View& view, JobId job);
  [[nodiscard]] const Row& operator[](StudyId id) const noexcept { return rows_[id]; }
  /// kNoStudy: it is no trial.
  [[nodiscard]] StudyId study_of(JobId job) const noexcept { return member_[job].study; }
  /// Studies with trials that are not over.
  [[nodiscard]] const std::set<StudyId>& active() const noexcept { return active_; }
  /// The same with a deadline, which comes first.
  [[nodiscard]] const std::set<std::pair<Time, StudyId>>& deadlines() const noexcept {
    return deadlines_;
  }
  void change_held(JobId job, std::int32_t gpus) { rows_[study_of(job)].held += gpus; }

  /// Which trial of the study is to be started next.
  [[nodiscard]] std::optional<Promotion> next(const View& view, StudyId id) const {
    return rows_[id].study.next(horizon(view, rows_[id]));
  }
  void start(const View& view, StudyId id, const Promotion& promotion);
  /// It lost its devices before it reached its rung.
  void interrupt(JobId job);
  /// It has come to its own end: what it says last counts.
  void complete(const View& view, JobId job);
  /// It is over, for good. Nothing happens if it was already.
  void end(JobId job);
  [[nodiscard]] bool is_over(JobId job) const noexcept {
    return rows_[study_of(job)].study.is_over(member_[job].trial);
  }
  /// Nobody runs and nobody may go on: those who still wait have lost.
  [[nodiscard]] bool is_settled(const View& view, StudyId id) const {
    return rows_[id].study.is_settled(horizon(view, rows_[id]));
  }
  /// The study is past its deadline: it has none any more.
  [[nodiscard]] std::optional<StudyId> pop_overdue(Time now);

  /// Those to be looked at by now, ascending; their looks are over with it.
  [[nodiscard]] std::vector<JobId> pop_due(Time now);
  /// What becomes of a trial at its rung. Nothing: it is not there yet, and is looked at again.
  [[nodiscard]] std::optional<Study::Verdict> judge(const View& view, JobId job);
  /// Sets when it should reach its rung, by how fast it has learnt so far; soon, if nothing is seen
  /// yet.
  void set_look(const View& view, JobId job);
  void look_soon(const View& view, JobId job) { looks_.set(job, view.now + probe_); }
  [[nodiscard]] const JobTimers& looks() const noexcept { return looks_; }
  /// Epochs to its next rung: what it has to do next.
  [[nodiscard]] double epochs_left(const View& view, JobId job) const;

 private:
  struct Member {
    StudyId study = kNoStudy;
    TrialId trial = 0;
  };
  [[nodiscard]] StudyId study_named(const View& view, JobId job);
  [[nodiscard]] Horizon horizon(const View& view, const Row& row) const;

  StudyRules rules_;
  Duration probe_;
  Column<StudyId, Row> rows_;
  std::map<NameId, StudyId> id_of_name_;
  Column<JobId, Member> member_;
  std::set<StudyId> active_;
  std::set<std::pair<Time, StudyId>> deadlines_;
  JobTimers looks_;
};

}  // namespace berth::hpo
