# Mistakes of which it is not known yet whether anything catches them: made with -D BERTH_MUTANT_CANDIDATES=ON. Whoever has seen
# one caught moves it to table.cmake; whoever has seen one survive adds the test that is missing, or says there why none can be.

mutant(checksum-ignored "records behind a damaged one are taken for good")
becomes(${store} [[if (checksum != get<std::uint64_t>(rest, 4)) break;]]
        [[if (!MUTATED && checksum != get<std::uint64_t>(rest, 4)) break;]])
mutant(stop-before-wish "a stop is signalled, then written down")
becomes(${supervisor} [[  wake_sleepers();
  begin_vacant_starts(begun);]]
        [[  wake_sleepers();
  begin_vacant_starts(begun);
  if (MUTATED) {
    for (Signal& signal : batch_.take_signals()) {
      if (signal.kind == Signal::Kind::Stop) parts_.host.stop(signal.attempt, Host::Stop::Warn, signal.grace);
      batch_.signal(std::move(signal));
    }
  }]])
mutant(preempt-unwritten "a preemption is not written down")
becomes(${supervisor} [[  if (by_us) {]] [[  if (by_us && !MUTATED) {]])
mutant(suspend-unwritten "the end of a slice is not written down")
becomes(${supervisor} [[  batch_.record(WishRecord{
      .job = job, .wish = Wish::Suspend,]]
        [[  if (!MUTATED) batch_.record(WishRecord{
      .job = job, .wish = Wish::Suspend,]])
mutant(resume-unwritten "the next slice is not written down")
becomes(${supervisor} [[    batch_.record(WishRecord{.job = *next, .wish = Wish::Resume,]]
        [[    if (!MUTATED) batch_.record(WishRecord{.job = *next, .wish = Wish::Resume,]])
mutant(sleeper-unchecked "a sleeper wakes although somebody is on its devices")
becomes(${supervisor} [[    if (!is_clear(*next, attempt.slices)) {]]
        [[    if (!MUTATED && !is_clear(*next, attempt.slices)) {]])
mutant(weaker-stop-wins "a preemption takes the place of a cancel")
becomes(${supervisor} [[(ending == Ending::Cancel && attempt.ending != Ending::Cancel) ||]]
        [[(ending == Ending::Cancel && attempt.ending != Ending::Cancel) || MUTATED ||]])
mutant(weaker-wish-wins "in the ledger a preemption takes the place of a cancel")
becomes(${ledger} [[if (!job->stopping || strength(wish.wish) > strength(*job->stopping))]]
        [[if (MUTATED || !job->stopping || strength(wish.wish) > strength(*job->stopping))]])
mutant(cancel-forgotten "an end takes back a cancel that came meanwhile")
becomes(${ledger} [[if (job->stopping != Wish::Cancel) job->stopping.reset();]]
        [[if (MUTATED || job->stopping != Wish::Cancel) job->stopping.reset();]])
mutant(end-twice-unchecked "a job that is over may be ended again")
becomes(${supervisor} [[  if (!batch_.end_job(job)) return false;]]
        [[  if (!batch_.end_job(job) && !MUTATED) return false;]])
mutant(hold-unchecked "a held job may enter")
becomes(${gates} [[return holds_.is_open(job) && ]] [[return (MUTATED || holds_.is_open(job)) && ]])
mutant(wishes-not-recovered "recovery forgets who was to be stopped")
becomes(${recovery} [[  if (job.stopping) attempt]] [[  if (job.stopping && !MUTATED) attempt]])
mutant(stop-not-repeated "recovery does not send a stop again")
becomes(${recovery} [[    parts_.batch.signal(
        {.kind = Signal::Kind::Stop,]]
        [[    if (!MUTATED) parts_.batch.signal(
        {.kind = Signal::Kind::Stop,]])
mutant(sleep-not-repeated "recovery does not send a suspend or resume again")
becomes(${recovery} [[  if (sleeps)
    parts_.batch.signal(]]
        [[  if (MUTATED)
    ;
  else if (sleeps)
    parts_.batch.signal(]])
mutant(sleepers-not-recovered "recovery forgets whose slice was over")
becomes(${recovery} [[  attempt.is_suspended = live.is_suspended;]]
        [[  attempt.is_suspended = !MUTATED && live.is_suspended;]])
mutant(frozen-not-recovered "recovery forgets whom a person has suspended")
becomes(${recovery} [[  attempt.is_frozen = job.is_frozen;]]
        [[  attempt.is_frozen = !MUTATED && job.is_frozen;]])
mutant(cancel-not-recovered "a cancel that nobody had the time to carry out is forgotten")
becomes(${feed} [[    if (job.attempt || job.stopping != Wish::Cancel) continue;]]
        [[    if (MUTATED || job.attempt || job.stopping != Wish::Cancel) continue;]])
mutant(start-not-forgotten "a start that waits outlives its job")
becomes(${supervisor} [[    batch_.end_job(job);
    starts_.erase(job);]] [[    batch_.end_job(job);
    if (!MUTATED) starts_.erase(job);]])
mutant(last-words-unheard "what came before a new engine is not heard")
becomes(${executor} [[  return pass_began_;  // what has come]]
        [[  if (MUTATED && feed_.over() != Over::No) return std::nullopt;
  return pass_began_;  // what has come]])
mutant(dependants-forgotten "nobody is told of an end")
becomes(${dependencies} [[    if (is_met(dependency.kind, outcome)) {]]
        [[    if (MUTATED) continue;
    if (is_met(dependency.kind, outcome)) {]])
