#include "slurm_host/slurm_host.h"

#include <algorithm>
#include <csignal>
#include <future>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/crash_point.h"
#include "slurm_host/slurm_job_spec.h"

namespace berth {

namespace {

using slurm::JobPhase;

constexpr std::int64_t kPartitionsEvery = 60;  // seconds
/// A killed slurmctld may forget that a job is over: so many seconds we do not.
constexpr std::int64_t kRemembered = 600;

bool is_alive(const slurm::Job& job) {
  return job.completing || job.phase == JobPhase::Running || job.phase == JobPhase::Suspended;
}

std::vector<std::string> node_names(const std::vector<HeldDevices>& where) {
  std::vector<std::string> names;
  for (const HeldDevices& part : where) names.push_back(part.node);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> node_names(const slurm::Job& job) {
  std::vector<std::string> names;
  for (const slurm::HeldNode& held : job.held) names.push_back(held.node);
  std::ranges::sort(names);
  return names;
}

std::int64_t gpus_on(const slurm::HeldNode& held) {
  std::int64_t gpus = 0;
  for (const slurm::GresCount& gres : held.gres)
    if (gres.name == "gpu" || gres.name == "shard") gpus += gres.count;
  return gpus;
}

/// All tasks of a record that wait together, or the job itself.
slurm::JobRef ref_of(const slurm::Job& job) {
  const std::string tasks = job.array_tasks.substr(0, job.array_tasks.find('%'));
  const bool is_several = job.array != 0 && tasks.find_first_of(",-") != std::string::npos;
  return is_several ? fmt::format("{}_[{}]", job.array, tasks) : fmt::format("{}", job.key.job);
}

bool share_a_node(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::ranges::any_of(
      a, [&](const std::string& node) { return std::ranges::find(b, node) != b.end(); });
}

}  // namespace

SlurmHost::SlurmHost(Parts parts, const Ledger& ledger) : parts_(std::move(parts)) {
  book_.load(ledger);
  for (const auto& [number, job] : ledger.jobs()) {
    if (!job.attempt) continue;
    entries_[job.attempt->id] = {.job = number, .where = job.attempt->where};
    RunTrack track{.attempt = job.attempt->id, .job = number, .where = job.attempt->where};
    const BookedJob* booked = book_.find(number);
    if (booked != nullptr && booked->claim && booked->claim->attempt == track.attempt) {
      track.stage = RunStage::Placed;
      track.claim = booked->claim;
      track.placed_at = parts_.now();
      tracks_[track.attempt] = track;
      track_by_job_[number] = track.attempt;
    } else {  // whoever is placed is claimed before
      entries_[track.attempt].finding = Finding{.found = Found::Void, .why = "it was never placed"};
    }
  }
}

void SlurmHost::start_polling(std::chrono::milliseconds every) {
  const std::lock_guard lock{mutex_};
  poll_ = std::make_unique<PollThread>([this] { static_cast<void>(turn()); }, every);
}

// --- what the scheduler wants

Result<void> SlurmHost::launch(const LaunchOrder& order) {
  const std::lock_guard lock{mutex_};
  Entry& entry = entries_[order.attempt];
  entry.job = order.job;
  entry.where = order.where;
  entry.is_watched = true;
  if (poll_) poll_->wake();
  return {};
}

void SlurmHost::set_wish(AttemptId attempt, const std::function<void(Entry&)>& change) {
  const std::lock_guard lock{mutex_};
  const auto found = entries_.find(attempt);
  if (found == entries_.end()) return;
  change(found->second);
  if (poll_) poll_->wake();
}

void SlurmHost::stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) {
  set_wish(attempt, [&](Entry& entry) {
    entry.wish.stop = true;
    entry.wish.grace = how == Stop::Kill ? 0 : grace_seconds;
  });
}

void SlurmHost::stop_for_good(AttemptId attempt, std::int64_t grace_seconds) {
  set_wish(attempt, [&](Entry& entry) {
    entry.wish.stop = entry.wish.is_for_good = true;
    entry.wish.grace = grace_seconds;
  });
}

void SlurmHost::suspend(AttemptId attempt) {
  set_wish(attempt, [](Entry& entry) { entry.wish.is_suspended = true; });
}

void SlurmHost::resume(AttemptId attempt) {
  set_wish(attempt, [](Entry& entry) { entry.wish.is_suspended = false; });
}

void SlurmHost::signal(AttemptId attempt, int number) {
  set_wish(attempt, [&](Entry& entry) { entry.signals.push_back(number); });
}

void SlurmHost::signal_shell(AttemptId attempt, int number) { signal(attempt, number); }

Result<Finding> SlurmHost::look(JobNumber job, AttemptId attempt) {
  const std::lock_guard lock{mutex_};
  const auto found = entries_.find(attempt);
  if (found == entries_.end()) return Finding{.found = Found::Void, .why = "it was never placed"};
  Entry& entry = found->second;
  entry.is_watched = true;
  if (entry.finding) return *entry.finding;
  if (entry.is_running) return Finding{.found = Found::Alive};
  entry.is_asked = true;
  return fail(fmt::format("job {}: Slurm has not said yet what became of it", job));
}

void SlurmHost::forget(AttemptId attempt) {
  const std::lock_guard lock{mutex_};
  entries_.erase(attempt);
}

// --- a turn

bool SlurmHost::turn() {
  now_ = parts_.now();
  is_reachable_ = true;
  held_.clear();
  if (!read()) return false;
  const auto unknown = book_.read(jobs_);
  take_entries();
  mirror(unknown);
  follow();
  place();
  hold_unplaced();
  settle();
  watch_nodes();
  return true;
}

bool SlurmHost::read() {
  auto jobs = parts_.link.jobs();
  if (!jobs) {
    note_trouble("slurm-unreachable", "jobs cannot be read", jobs.error().text);
    return false;
  }
  if (*jobs) jobs_ = **std::move(jobs);
  auto nodes = parts_.link.nodes();
  if (nodes && *nodes) nodes_ = **std::move(nodes);
  if (!nodes) note_trouble("slurm-nodes", "nodes cannot be read", nodes.error().text);
  if (partitions_.empty() || now_ >= partitions_at_ + kPartitionsEvery) {
    if (const auto all = parts_.link.partitions()) {
      partitions_.clear();
      for (const slurm::Partition& one : *all) partitions_[one.name] = one.nodes;
      partitions_at_ = now_;
    }
  }
  return true;
}

void SlurmHost::take_entries() {
  const std::lock_guard lock{mutex_};
  wishes_.clear();
  for (const auto& [attempt, entry] : entries_) {
    wishes_[attempt] = entry.wish;
    if (entry.finding || tracks_.contains(attempt)) continue;
    tracks_[attempt] = {.attempt = attempt, .job = entry.job, .where = entry.where};
    track_by_job_[entry.job] = attempt;
  }
}

// --- jobs that come

void SlurmHost::mirror(const std::vector<SlurmBook::Unknown>& unknown) {
  std::vector<SlurmBook::Unknown> newcomers;
  std::map<std::uint32_t, std::int32_t> tasks;
  for (const SlurmBook::Unknown& one : unknown) {
    if (!may_come(one)) continue;
    const std::int32_t at_once = tasks_at_once(*one.job);
    if (one.name.task >= 0 && at_once > 0) {
      const auto [count, is_new] = tasks.try_emplace(one.name.job, 0);
      if (is_new) count->second = book_.tasks_of(one.name.job);
      if (count->second >= at_once) continue;
      ++count->second;
    }
    newcomers.push_back(one);
  }
  if (!newcomers.empty()) submit(newcomers);
}

/// What Slurm itself makes wait does not compete; what we cannot place stays as it is.
bool SlurmHost::may_come(const SlurmBook::Unknown& unknown) {
  const slurm::Job& job = *unknown.job;
  if (!job.is_batch || job.phase != JobPhase::Pending || job.completing) return false;
  const auto partition = partitions_.find(job.partition);
  const std::string obstacle =
      obstacle_of(job, parts_.cluster,
                  partition == partitions_.end() ? std::vector<std::string>{} : partition->second);
  if (!obstacle.empty()) {
    if (told_obstacles_.insert(job.key.job).second) {
      if (parts_.log != nullptr)
        BERTH_LOG(*parts_.log, Warn, "slurm", "a job is not placed",
                  {"slurm", to_text(unknown.name)}, {"why", obstacle});
      static_cast<void>(ask("admin comment", ref_of(job), [&] {
        return parts_.link.set_admin_comment(
            ref_of(job), fmt::format("berth does not place this job: {}", obstacle));
      }));
    }
    return false;
  }
  if (job.priority != 0) hold(job);  // it waits for nobody but us
  return job.dependency.empty() && job.eligible <= now_;
}

void SlurmHost::submit(const std::vector<SlurmBook::Unknown>& newcomers) {
  struct Coming {
    BookedJob booked;
    JobSpec spec;
  };
  std::vector<Coming> coming;
  for (const SlurmBook::Unknown& one : newcomers) {
    const FirstSight first{one.name, one.job->key.submitted, one.job->key.restarts};
    Coming next{.booked = {.first = first,
                           .user = one.job->user,
                           .runs = {{first.restarts, first.submitted}},
                           .limit = one.job->time_limit,
                           .now = one.job},
                .spec = spec_of(*one.job, first, parts_.cluster)};
    const auto past = parts_.past_key(next.spec.user, next.spec.key);
    if (!past) continue;  // it may be there: it is asked for again
    if (*past) {          // over with us, and not in Slurm: settle() ends it there
      next.booked.number = **past;
      book_.add(std::move(next.booked));
      continue;
    }
    coming.push_back(std::move(next));
  }
  if (coming.empty()) return;
  std::promise<bool> done;
  parts_.journal.write_later(
      {.make = [&](const Ledger& ledger) -> Result<std::vector<RecordBody>> {
         std::vector<RecordBody> records;
         JobNumber number = ledger.next_number();
         for (Coming& one : coming) {
           const auto known = ledger.by_key(one.spec.user, one.spec.key);
           one.booked.number = known ? *known : number++;
           if (!known)
             records.emplace_back(SubmitRecord{.first = one.booked.number, .spec = one.spec});
         }
         return records;
       },
       .done =
           [&](const Result<std::vector<Committed>>& written) {
             if (!written)
               note_trouble("slurm-submit", "jobs cannot be taken", written.error().text());
             done.set_value(written.has_value());
           }});
  if (!done.get_future().get()) return;
  crash_point("slurm.submitted");
  for (Coming& one : coming) book_.add(std::move(one.booked));
}

// --- attempts

void SlurmHost::follow() {
  to_place_.clear();
  std::vector<AttemptId> attempts;
  for (const auto& [attempt, track] : tracks_) attempts.push_back(attempt);
  for (const AttemptId attempt : attempts) follow_one(tracks_.at(attempt));
  send_signals();
}

void SlurmHost::follow_one(RunTrack& track) {
  const BookedJob* booked = book_.find(track.job);
  const slurm::Job* job = booked == nullptr ? nullptr : booked->now;
  const bool is_gone = booked == nullptr || booked->is_gone();
  const RunWish wish = wishes_[track.attempt];
  TrackStep step = next_step(track, wish, job, is_gone, now_, parts_.rules);
  if (step.finding) return publish(track, *std::move(step.finding));
  if (step.has_begun) publish_begun(track, *job);
  if (step.verb == RunVerb::Place) {
    std::string misfit = misfit_of(*job, track.where);
    if (misfit.empty())
      to_place_.push_back(track.attempt);
    else
      publish(track, {.found = Found::Void, .why = std::move(misfit)});
    return;
  }
  if (step.verb == RunVerb::None) return;
  slurm::Link& link = parts_.link;
  const slurm::JobRef ref = to_text(track.claim->name);
  const auto answer = ask("attempt", ref, [&]() -> slurm::Linked<void> {
    switch (step.verb) {
      case RunVerb::Hold: return link.hold(ref);
      case RunVerb::Requeue: return link.requeue_held(ref);
      case RunVerb::Cancel: return link.cancel(ref);
      case RunVerb::Signal: return link.signal_script(ref, parts_.rules.warn_signal);
      case RunVerb::Suspend: return link.suspend(ref);
      case RunVerb::Resume: return link.resume(ref);
      case RunVerb::Place:
      case RunVerb::None: break;
    }
    return {};
  });
  note_sent(track, step.verb, answer, now_, wish);
}

/// What we wrote down as its place is what policies plan with.
void SlurmHost::publish_begun(const RunTrack& track, const slurm::Job& job) {
  const auto where = node_names(job);
  if (!where.empty() && where != node_names(track.where) && parts_.log != nullptr)
    BERTH_LOG(*parts_.log, Warn, "slurm", "a job runs on other nodes than it was placed on",
              {"job", track.job}, {"slurm", to_text(track.claim->name)});
  HostEvent event;
  event.kind = HostEventKind::Started;
  event.job = track.job;
  event.attempt = track.attempt;
  {
    const std::lock_guard lock{mutex_};
    const auto found = entries_.find(track.attempt);
    if (found == entries_.end()) return;
    found->second.is_running = true;
    if (!found->second.is_watched) return;
    if (std::exchange(found->second.is_asked, false)) event.kind = HostEventKind::LaunchLost;
  }
  parts_.tell(std::move(event));
}

void SlurmHost::publish(const RunTrack& track, Finding finding) {
  HostEvent event;
  event.kind = finding.found == Found::Ended ? HostEventKind::Ended : HostEventKind::LaunchLost;
  event.job = track.job;
  event.attempt = track.attempt;
  if (finding.exit) event.exit = *finding.exit;
  bool is_watched = false;
  {
    const std::lock_guard lock{mutex_};
    const auto found = entries_.find(track.attempt);
    if (found != entries_.end()) {
      is_watched = found->second.is_watched;
      found->second.finding = std::move(finding);
    }
  }
  const AttemptId attempt = track.attempt;
  track_by_job_.erase(track.job);
  tracks_.erase(attempt);
  if (is_watched) parts_.tell(std::move(event));
}

void SlurmHost::send_signals() {
  std::vector<std::pair<AttemptId, int>> signals;
  {
    const std::lock_guard lock{mutex_};
    for (auto& [attempt, entry] : entries_) {
      for (const int number : std::exchange(entry.signals, {}))
        signals.emplace_back(attempt, number);
    }
  }
  for (const auto& [attempt, number] : signals) {
    const auto found = tracks_.find(attempt);
    if (found == tracks_.end() || found->second.stage != RunStage::Running) continue;
    const slurm::JobRef ref = to_text(found->second.claim->name);
    const int sent = number;
    static_cast<void>(ask("signal", ref, [&] { return parts_.link.signal(ref, sent); }));
  }
}

/// Claims first, all of them in one batch, then the orders.
void SlurmHost::place() {
  std::vector<RecordBody> claims;
  std::map<AttemptId, std::optional<Claim>> last;
  for (const AttemptId attempt : to_place_) {
    RunTrack& track = tracks_.at(attempt);
    BookedJob& booked = *book_.find(track.job);
    track.claim = Claim{.attempt = attempt,
                        .name = booked.first.name,
                        .user = booked.user,
                        .restarts = booked.now->key.restarts,
                        .submitted = booked.now->key.submitted,
                        .nodes = node_names(track.where)};
    last[attempt] = std::exchange(booked.claim, track.claim);
    claims.emplace_back(to_setting(track.job, *track.claim));
  }
  if (claims.empty()) return;
  if (const auto written = parts_.journal.write(std::move(claims)); !written) {
    for (const AttemptId attempt : to_place_) tracks_.at(attempt).claim.reset();
    return note_trouble("slurm-claims", "nothing is placed", written.error().text());
  }
  crash_point("slurm.claimed");
  for (const AttemptId attempt : to_place_) {
    RunTrack& track = tracks_.at(attempt);
    const slurm::Job& job = *book_.find(track.job)->now;
    const slurm::Placement placement = placement_of(track, job, last[attempt]);
    const slurm::JobRef ref = to_text(track.claim->name);
    track.why.clear();
    const auto answer = ask("place", ref, [&] { return parts_.link.place(ref, placement); });
    note_sent(track, RunVerb::Place, answer, now_, wishes_[attempt]);
    crash_point("slurm.placed");
  }
}

/// A node that held its last run may refuse the next one for a while: then Slurm's own pause
/// stands.
slurm::Placement SlurmHost::placement_of(const RunTrack& track, const slurm::Job& job,
                                         const std::optional<Claim>& last) const {
  slurm::Placement placement{.nodes = track.claim->nodes};
  const auto nodes = static_cast<std::int32_t>(placement.nodes.size());
  if (nodes != std::max(1, job.min_nodes)) {
    placement.tasks = std::max(job.tasks, nodes);
    placement.cpus = std::max(job.cpus, nodes);
  }
  placement.begin_now =
      last && last->restarts + 1 == job.key.restarts && !share_a_node(last->nodes, placement.nodes);
  return placement;
}

// --- what nobody here has placed

const RunTrack* SlurmHost::track_of(JobNumber job) const {
  const auto found = track_by_job_.find(job);
  return found == track_by_job_.end() ? nullptr : &tracks_.at(found->second);
}

/// By an attempt of ours, in the run that it is in.
bool SlurmHost::is_placed(const BookedJob& booked) const {
  const RunTrack* track = track_of(booked.number);
  return track != nullptr && track->stage != RunStage::Ordered && track->claim &&
         track->claim->restarts == booked.now->key.restarts &&
         track->claim->submitted == booked.now->key.submitted;
}

void SlurmHost::hold(const slurm::Job& job) {
  if (!held_.insert(&job).second) return;  // its tasks wait together
  const slurm::JobRef ref = ref_of(job);
  if (parts_.log != nullptr)
    BERTH_LOG(*parts_.log, Info, "slurm", "a job waits unheld and was not placed here: it is held",
              {"slurm", ref});
  static_cast<void>(ask("hold", ref, [&] { return parts_.link.hold(ref); }));
}

void SlurmHost::hold_unplaced() {
  for (const auto& [number, booked] : book_.all()) {
    const slurm::Job* job = booked.now;
    if (job == nullptr || job->phase != JobPhase::Pending || job->priority == 0) continue;
    if (!is_placed(booked)) hold(*job);
  }
}

void SlurmHost::settle() {
  std::vector<JobNumber> numbers;
  for (const auto& [number, booked] : book_.all()) numbers.push_back(number);
  for (const JobNumber number : numbers) settle_one(*book_.find(number));
}

/// Whoever is over on one side is over on the other.
void SlurmHost::settle_one(BookedJob& booked) {
  const slurm::Job* job = booked.now;
  const auto ours = parts_.job(booked.number);
  if (ours && job != nullptr) follow_limit(booked, *ours);
  if (track_of(booked.number) != nullptr || (job != nullptr && job->completing)) return;
  const bool is_over = booked.is_gone() || (job != nullptr && slurm::is_over(job->phase));
  if (ours && is_over) {
    HostEvent event;
    event.kind = HostEventKind::Over;
    event.job = booked.number;
    event.outcome = job != nullptr ? outcome_of(*job) : Outcome::Cancelled;
    // The journal knows nobody as completed who had no attempt: it was done, but not by us.
    if (event.outcome == Outcome::Completed) event.outcome = Outcome::Cancelled;
    event.exit.why = job != nullptr ? fmt::format("{} in Slurm", to_string(job->phase))
                                    : "Slurm does not know it any more";
    return parts_.tell(std::move(event));
  }
  if (ours) return;
  if (is_over) {
    if (booked.over_since == 0) booked.over_since = now_;
    if (now_ < booked.over_since + kRemembered) return;
    if (booked.claim) write({no_claim(booked.number)});
    return book_.forget(booked.number);
  }
  if (job == nullptr || job->phase != JobPhase::Pending) return;
  const slurm::JobRef ref = to_text(booked.first.name);
  static_cast<void>(ask("cancel", ref, [&] { return parts_.link.cancel(ref); }));
}

/// The journal's limit is what somebody has asked of us, Slurm's what somebody has asked of it:
/// whichever has changed since both were the same is followed.
void SlurmHost::follow_limit(BookedJob& booked, const LedgerJob& ours) {
  const std::int64_t theirs = booked.now->time_limit;
  if (ours.spec->time_limit != booked.limit) {
    const slurm::JobRef ref = to_text(booked.first.name);
    const auto set = ask("time limit", ref,
                         [&] { return parts_.link.set_time_limit(ref, ours.spec->time_limit); });
    if (set) booked.limit = ours.spec->time_limit;
  } else if (theirs != booked.limit) {
    const nlohmann::json changes{{"time_limit", theirs}};
    booked.limit = theirs;
    write({ChangeRecord{.job = booked.number, .changes = changes.dump(), .by = kSchedulerName}});
  }
}

// --- nodes

void SlurmHost::watch_nodes() {
  if (nodes_.empty()) return;
  std::set<const slurm::Job*> ours;
  for (const auto& [number, booked] : book_.all()) {
    const RunTrack* track = track_of(number);
    if (track != nullptr && track->stage != RunStage::Ordered) ours.insert(booked.now);
  }
  ForeignJobs foreign;
  for (const slurm::Job& job : jobs_) {
    if (!is_alive(job) || ours.contains(&job)) continue;
    for (const slurm::HeldNode& held : job.held) {
      if (gpus_on(held) > 0) foreign[held.node].push_back(fmt::format("{}", job.key.job));
    }
  }
  std::vector<RecordBody> records;
  for (SettingRecord& record : node_settings(parts_.cluster, nodes_, foreign, parts_.setting))
    records.emplace_back(std::move(record));
  if (!records.empty()) write(std::move(records));
}

// --- asking and writing

template <class Send>
slurm::Linked<void> SlurmHost::ask(std::string_view what, const std::string& ref, Send send) {
  if (!is_reachable_)
    return tl::unexpected(
        slurm::LinkError{slurm::Refusal::Unreachable, "slurmctld does not answer"});
  slurm::Linked<void> answer = send();
  if (answer) return answer;
  if (answer.error().refusal == slurm::Refusal::Unreachable) is_reachable_ = false;
  note_trouble("slurm-verb", fmt::format("{} of job {} was not done", what, ref),
               answer.error().text);
  return answer;
}

void SlurmHost::note_trouble(std::string_view cause, std::string_view what,
                             const std::string& why) const {
  if (parts_.log == nullptr) return;
  std::uint64_t before = 0;
  if (parts_.limit != nullptr) {
    const auto unsaid = parts_.limit->admit(cause);
    if (!unsaid) return;
    before = *unsaid;
  }
  BERTH_LOG(*parts_.log, Warn, "slurm", what, {"why", why}, {"unsaid", before});
}

void SlurmHost::write(std::vector<RecordBody> records) {
  if (const auto written = parts_.journal.write(std::move(records)); !written)
    note_trouble("slurm-journal", "a note was not taken", written.error().text());
}

}  // namespace berth
