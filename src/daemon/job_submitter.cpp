#include "daemon/job_submitter.h"

#include <utility>

#include <fmt/format.h>

#include "daemon/service_fault.h"
#include "model/grid.h"

namespace berth {

namespace {

/// It competes as soon as it is taken; what a policy says to it before is what
/// it will say then.
bool comes_at_once(const JobSpec& spec) {
  return !spec.hold && spec.begin == 0 && spec.dependencies.empty();
}

}  // namespace

Answer<void> check_deadline(const JobSpec& spec, std::int64_t wall) {
  const std::int64_t now = wall / 1'000'000;
  if (!spec.deadline || *spec.deadline > now) return {};
  return fault(FaultKind::Impossible,
               fmt::format("deadline: it passed {} ago (now is {} in Unix seconds)",
                           human_duration(static_cast<double>(now - *spec.deadline)), now));
}

/// Whose job it is, and whose share it uses.
Answer<void> JobSubmitter::name_owner(const Caller& caller, JobSpec& spec) {
  if (spec.user.empty()) spec.user = caller.user;
  if (auto allowed = parts_.identity.may_run_as(caller, spec.user); !allowed) return allowed;
  return parts_.identity.settle_group(caller, spec);
}

Answer<void> JobSubmitter::prepare(const Caller& caller, JobSpec& spec,
                                   std::vector<std::string>& notes) {
  if (auto admitted = parts_.admission.admit(caller, spec, notes); !admitted)
    return tl::unexpected<Fault>(std::move(admitted).error());
  if (auto in_time = check_deadline(spec, parts_.clock.wall()); !in_time)
    return tl::unexpected<Fault>(std::move(in_time).error());
  const AdmissionOptions& limits = parts_.admission.options();
  const std::size_t count = spec.array ? spec.array->indices.size() : 1;
  const auto now = parts_.board.counts();
  if (now.pending + now.running + count > limits.max_jobs)
    return fault(FaultKind::TooMany, fmt::format("the queue is full: {} jobs of {}",
                                                 now.pending + now.running, limits.max_jobs));
  const std::size_t mine = parts_.board.jobs_of(spec.user);
  if (mine + count > limits.max_jobs_per_user)
    return fault(FaultKind::TooMany, fmt::format("{} has {} jobs of {} in the queue", spec.user,
                                                 mine, limits.max_jobs_per_user));
  if (parts_.store.space_left() < parts_.reserve_bytes) {
    constexpr const char* kWhy = "no space left for the journal: nothing new is taken";
    if (parts_.note_trouble) parts_.note_trouble("journal-space", kWhy);
    return fault(FaultKind::Unavailable, kWhy);
  }
  return {};
}

Answer<std::optional<Submitted>> JobSubmitter::known_key(const JobSpec& spec) {
  if (spec.key.empty()) return std::nullopt;
  auto known = parts_.board.by_key(spec.user, spec.key);
  if (!known) {
    const auto past = parts_.store.by_key(spec.user, spec.key);
    // Whoever cannot look must not take it again: it may be there.
    if (!past) return fault(FaultKind::Unavailable, past.error().text());
    known = *past;
  }
  if (!known) return std::nullopt;
  return Submitted{.first = *known,
                   .count = spec.array ? spec.array->indices.size() : 1,
                   .is_repeat = true,
                   .notes = {}};
}

Answer<void> JobSubmitter::check(const Caller& caller, JobSpec& spec,
                                 std::vector<std::string>& notes) {
  add_grid_array(spec);
  if (auto named = name_owner(caller, spec); !named) return named;
  return prepare(caller, spec, notes);
}

struct JobSubmitter::Submission {
  JobSpec spec;
  Submitted answer;
  std::string setting{};     // "policy", that has let it through
  bool is_outdated = false;  // another was set before it was written down
};

void JobSubmitter::submit_async(const Caller& caller, JobSpec spec,
                                std::function<void(Answer<Submitted>)> done) {
  std::vector<std::string> notes;
  add_grid_array(spec);
  if (auto named = name_owner(caller, spec); !named)
    return done(tl::unexpected<Fault>(std::move(named).error()));
  // What was taken before is answered first: that the queue is full by now, or
  // what it waited for is gone, does not matter to whoever lost the answer.
  const auto known = known_key(spec);
  if (!known) return done(tl::unexpected<Fault>(known.error()));
  if (*known) return done(**known);
  if (auto ready = prepare(caller, spec, notes); !ready)
    return done(tl::unexpected<Fault>(std::move(ready).error()));
  auto submission = std::make_shared<Submission>();
  submission->answer.count = spec.array ? spec.array->indices.size() : 1;
  submission->answer.notes = std::move(notes);
  submission->spec = std::move(spec);
  ask_policy(submission, std::move(done));
}

/// Whoever has been told that a policy is set finds it asked, also before its
/// engine has begun: it is waited for, just as by a scheduler that has only
/// begun itself.
void JobSubmitter::ask_policy(const std::shared_ptr<Submission>& submission,
                              std::function<void(Answer<Submitted>)> done) {
  submission->is_outdated = false;
  submission->setting = parts_.board.setting("policy").value_or("");
  const SchedulerFigures figures = parts_.scheduler.figures();
  const bool is_there = figures.engines > 0 && figures.setting == submission->setting;
  if (is_there && !figures.may_refuse) return take(submission, std::move(done));
  if (!comes_at_once(submission->spec) || !parts_.refusal_of) {
    if (is_there)
      submission->answer.notes.push_back(
          fmt::format("policy {} decides when the job comes up whether it "
                      "takes it; `berth why` tells",
                      figures.policy));
    return take(submission, std::move(done));
  }
  // It may change its mind until the job is there; then the end of the job says
  // so.
  parts_.ask_engine(
      {.ask =
           [this, submission, done] {
             const SchedulerFigures now = parts_.scheduler.figures();
             if (now.setting != submission->setting) return ask_policy(submission, done);
             if (const auto refusal = parts_.refusal_of(submission->spec))
               return done(fault(FaultKind::Impossible,
                                 fmt::format("policy {} refuses it: {}", now.policy, *refusal)));
             take(submission, done);
           },
       .too_late = [done] { done(fault(FaultKind::Unavailable, std::string{kTooLate})); }});
}

void JobSubmitter::take(const std::shared_ptr<Submission>& submission,
                        std::function<void(Answer<Submitted>)> done) {
  parts_.journal.write_later(
      {.make = [submission](const Ledger& ledger) -> Result<std::vector<RecordBody>> {
         const JobSpec& asked = submission->spec;
         const auto setting = ledger.settings().find("policy");
         if ((setting == ledger.settings().end() ? "" : setting->second) != submission->setting) {
           submission->is_outdated = true;
           return std::vector<RecordBody>{};
         }
         if (!asked.key.empty()) {  // the same key may be in this very batch
           if (const auto twin = ledger.by_key(asked.user, asked.key)) {
             submission->answer.first = *twin;
             submission->answer.is_repeat = true;
             return std::vector<RecordBody>{};
           }
         }
         submission->answer.first = ledger.next_number();
         std::vector<RecordBody> bodies;
         bodies.emplace_back(
             SubmitRecord{.first = ledger.next_number(), .spec = std::move(submission->spec)});
         return bodies;
       },
       .done =
           [this, submission, done = std::move(done)](const auto& written) {
             if (!written) return done(fault(FaultKind::Unavailable, written.error().text()));
             if (submission->is_outdated) return ask_policy(submission, done);
             ++submits_;
             done(std::move(submission->answer));
           }});
}

}  // namespace berth
