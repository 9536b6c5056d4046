# The mistakes that random lives (T1) or the busy day (T2) have to catch. M1 to M8 are those of the protocol's model
# (tests/store/protocol_model.h); the others drop a sync, swap two steps or skip a check or a record, one each, everywhere in the
# protocol where that can be done.
include(${CMAKE_CURRENT_LIST_DIR}/mutate.cmake)

set(supervisor src/daemon/job_supervisor.cpp)
set(ends src/daemon/attempt_ends.cpp)
set(recovery src/daemon/attempt_recovery.cpp)
set(attempts src/daemon/attempt_table.cpp)
set(journal_writer src/daemon/journal_writer.cpp)
set(executor src/daemon/live_executor.cpp)
set(submitter src/daemon/job_submitter.cpp)
set(feed src/daemon/job_feed.cpp)
set(gates src/daemon/gates.cpp)
set(dependencies src/daemon/dependency_gate.cpp)
set(ledger src/store/ledger.cpp)
set(store tests/support/sim_store.cpp)
set(host tests/support/sim_host.cpp)
set(world tests/support/live_world.cpp)

# A batch with a record of this kind is not synced before it counts as committed.
macro(unsynced kind)
  becomes(${store} [[!disk_.sync(file_)) return broken("sync")]]
          "!(MUTATED && std::ranges::any_of(batch_, [](const auto& e) { return kind_of(e.first.body) == \"${kind}\"; })) && !disk_.sync(file_)) return broken(\"sync\")")
endmacro()

mutant(M1 "a submit is acknowledged before it is synced")
unsynced(submit)
mutant(M2 "spawned, then written down")
becomes(${supervisor} [[    if (batch_.has_records()) BERTH_TRY_VOID(batch_.write]]
        [[    if (MUTATED) {
      for (const JobNumber job : std::exchange(begun, {})) {
        launch(job);
        crash_point("supervisor.launched");
      }
    }
    if (batch_.has_records()) BERTH_TRY_VOID(batch_.write]])
mutant(M3 "no tombstone in recovery")
becomes(${host} [[  claims_[attempt] = true;]] [[  if (!MUTATED) claims_[attempt] = true;]])
mutant(M4 "devices are free when the signal is sent")
becomes(${supervisor} [[(other == job || stays || sleeps)]]
        [[(other == job || stays || sleeps || (MUTATED && attempt.ending != Ending::ByItself))]])
mutant(M5 "recovery does not adopt")
becomes(${recovery} [[switch (finding.found) {]]
        [[switch (MUTATED && finding.found == Found::Alive ? Found::Lost : finding.found) {]])
mutant(M6 "spawned before the intent is synced")
unsynced(intent)
mutant(M7 "an end is told before it is synced")
unsynced(end)
mutant(M8 "attempts are numbered on from the journal, without a new generation")
becomes(${world} [[if (const auto written = life.journal.write(std::move(first)); !written)]]
        [[const bool goes_on = MUTATED && life.generation > 1;
  if (goes_on) --life.generation;
  if (const auto written = goes_on ? Result<std::vector<Committed>>{} : life.journal.write(std::move(first)); !written)]])
becomes(${supervisor} [[Result<void> JobSupervisor::recover(const Ledger& ledger) {]]
        [[Result<void> JobSupervisor::recover(const Ledger& ledger) {
  if (MUTATED) counter_ = ledger.last_attempt().counter;]])
becomes(${store} [[|| !disk_.sync(file_) || !disk_.sync_directory())]]
        [[|| (!MUTATED && !disk_.sync(file_)) || !disk_.sync_directory())]])

# --- a sync is dropped
mutant(life-unsynced "a new generation counts before it is synced")
unsynced(life)
mutant(wish-unsynced "a wish is acknowledged before it is synced")
unsynced(wish)
mutant(change-unsynced "a change is acknowledged before it is synced")
unsynced(change)
mutant(setting-unsynced "a setting is acknowledged before it is synced")
unsynced(setting)
mutant(name-unsynced "the journal's name is not synced")
becomes(${store} [[ || !disk_.sync_directory())]] [[ || (!MUTATED && !disk_.sync_directory()))]])
mutant(failed-sync-ignored "a sync that failed is taken for a good one")
becomes(${store} [[!disk_.sync(file_)) return broken("sync");]]
        [[!disk_.sync(file_) && !MUTATED) return broken("sync");]])
# --- two steps are swapped
mutant(told-before-commit "records are told, then committed")
becomes(${journal_writer} [[    if (const auto durable = store_->commit(); !durable) {]]
        [[    if (MUTATED) {
      for (const auto& result : results) {
        if (result && !result->empty()) publish_(*result);
      }
    }
    if (const auto durable = store_->commit(); !durable) {]])
becomes(${journal_writer} [[    for (const auto& result : results) {
      if (result && !result->empty()) publish_(*result);
    }
  }
  for (std::size_t i = 0;]]
        [[    for (const auto& result : results) {
      if (!MUTATED && result && !result->empty()) publish_(*result);
    }
  }
  for (std::size_t i = 0;]])
mutant(forgotten-before-end "exit records are removed before the end is on record")
becomes(${supervisor} [[  while (!batch_.is_empty() || !begun.empty()) {]]
        [[  while (!batch_.is_empty() || !begun.empty()) {
    if (MUTATED)
      for (const AttemptId attempt : batch_.take_forgotten()) parts_.host.forget(attempt);]])
mutant(claim-after-start "a shim runs its job whoever holds the claim")
becomes(${host} [[if (!claims_.emplace(id, false).second) {]]
        [[if (!claims_.emplace(id, false).second && !MUTATED) {]])

# --- a record is left out
mutant(exit-unwritten "a shim leaves without an exit record")
becomes(${host} [[  exits_[id] = exit;]] [[  if (!MUTATED) exits_[id] = exit;]])

# --- a check is skipped
mutant(devices-unchecked "a start does not wait for those on its devices")
becomes(${supervisor} [[  return !attempts_.contains(job) && is_clear(job, start.slices);]]
        [[  return !attempts_.contains(job) && (MUTATED || is_clear(job, start.slices));]])
mutant(own-attempt-unchecked "a start does not wait for the job's own last attempt")
becomes(${supervisor} [[  return !attempts_.contains(job) && ]] [[  return (MUTATED || !attempts_.contains(job)) && ]])
mutant(key-unchecked "the key of a job that is over is not looked up")
becomes(${submitter} [[  if (!known) {
    const auto past = parts_.store.by_key]]
        [[  if (!known && !MUTATED) {
    const auto past = parts_.store.by_key]])
mutant(limbo-unchecked "a preempted attempt that ended otherwise is planned twice")
becomes(${feed} [[if (end.ending != Ending::Preempt && !parts_.supervisor.waits_to_start(end.job))]]
        [[if (MUTATED || (end.ending != Ending::Preempt && !parts_.supervisor.waits_to_start(end.job)))]])
# --- something is forgotten
mutant(devices-not-recovered "recovery does not put attempts on their devices")
becomes(${recovery} [[  parts_.attempts.add(std::move(attempt));]]
        [[  if (MUTATED) attempt.slices.clear();
  parts_.attempts.add(std::move(attempt));]])
mutant(late-event-taken "an event of an attempt that is over is taken for news")
becomes(${attempts} [[  job_of_.erase(found->second.id);]] [[  if (!MUTATED) job_of_.erase(found->second.id);]])
mutant(renewal-forgotten "a policy that was set is not taken up")
becomes(${feed} [[if (effect.renew) renew();]] [[if (effect.renew && !MUTATED) renew();]])
mutant(attempt-uncharged "a job is not charged for an attempt")
becomes(${ledger} [[    job.gpu_seconds += end.gpu_seconds;]] [[    if (!MUTATED) job.gpu_seconds += end.gpu_seconds;]])
mutant(charged-by-our-clock "an attempt is charged until we heard of its end")
becomes(${ends} [[  if (exit != nullptr && exit->begun_clock > 0 &&]] [[  if (!MUTATED && exit != nullptr && exit->begun_clock > 0 &&]])
mutant(claim-forgotten "a claim is removed with its files while a shim may be on its way")
becomes(${host} [[  // A claim is never forgotten while its shim may still be on its way.]]
        [[  if (MUTATED) claims_.erase(attempt);]])

if(CANDIDATES)
  include(${CMAKE_CURRENT_LIST_DIR}/candidates.cmake)
endif()
copied(${executor})
copied(${gates})
copied(${dependencies})
write_mutants()
