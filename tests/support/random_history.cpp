#include "support/random_history.h"

#include <fmt/format.h>

namespace berth::test {

Record RandomHistory::stamped(RecordBody body) {
  clock_ += static_cast<std::int64_t>(rng_.below(3'000'000));
  // The wall clock may be set back; nothing may depend on it.
  wall_ += static_cast<std::int64_t>(rng_.below(4'000'000)) - 500'000;
  return {Time{Duration{clock_}}, wall_, std::move(body)};
}

RecordBody RandomHistory::life(const Ledger& ledger) {
  return LifeRecord{.generation = ledger.generation() + 1 + rng_.below(2),
                    .boot_id = fmt::format("boot-{}", rng_.below(3)),
                    .boot_clock = clock_,
                    .version = "0.1.0"};
}

JobSpec RandomHistory::spec(JobNumber number) {
  JobSpec spec;
  spec.command = {"train", fmt::format("--seed={}", rng_.below(100))};
  spec.workdir = "/home/user/project";
  spec.env = {{"PATH", "/usr/bin"}, {"LANG", "C.UTF-8"}};
  spec.name = fmt::format("job {} \"ü\"", number % 7);
  spec.user = fmt::format("u{}", rng_.below(3));
  if (rng_.below(2) == 0) spec.group = fmt::format("g{}", rng_.below(2));
  spec.queue = rng_.below(3) == 0 ? "night" : "day";
  spec.gpus = static_cast<std::int32_t>(1 + rng_.below(8));
  spec.hold = rng_.below(10) == 0;
  if (rng_.below(4) == 0) spec.key = fmt::format("key-{}", number);
  if (rng_.below(6) == 0) {
    spec.array = ArraySpec{};
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(1 + rng_.below(6)); ++i)
      spec.array->indices.push_back(3 * i);
  }
  return spec;
}

RecordBody RandomHistory::submit(const Ledger& ledger) {
  return SubmitRecord{ledger.next_number(), spec(ledger.next_number())};
}

RecordBody RandomHistory::intent(const LedgerJob& job, const Ledger& ledger) {
  const AttemptId last = ledger.last_attempt();
  const std::uint64_t counter =
      (last.generation == ledger.generation() ? last.counter : 0) + 1 + rng_.below(2);
  IntentRecord record{.job = job.number,
                      .attempt = {ledger.generation(), counter},
                      .where = {{fmt::format("n{}", rng_.below(4)), {}, {}}},
                      .gpus = job.spec->gpus,
                      .reason = "first in line"};
  for (std::int32_t i = 0; i < job.spec->gpus; ++i) record.where[0].devices.push_back(i);
  if (rng_.below(2) == 0) record.where[0].cores = {0, 1, 2};
  return record;
}

RecordBody RandomHistory::resize(const LedgerJob& job) {
  const LiveAttempt& attempt = *job.attempt;
  ResizeRecord record{.job = job.number,
                      .attempt = attempt.id,
                      .where = {{fmt::format("n{}", rng_.below(4)), {}, {}}},
                      .gpus = 1 + static_cast<std::int32_t>(rng_.below(8)),
                      .extra_gpu_seconds = attempt.extra_gpu_seconds + rng_.uniform() * 100 - 50,
                      .reason = "growth"};
  for (std::int32_t i = 0; i < record.gpus; ++i) record.where[0].devices.push_back(i);
  return record;
}

RecordBody RandomHistory::wish(const LedgerJob& job) {
  if (job.is_frozen && rng_.below(4) == 0)  // by a person, with an attempt or without
    return WishRecord{job.number, Wish::Resume, "operator", ""};
  const std::uint64_t kinds = job.attempt ? 7 : 3;  // the first three need no attempt
  return WishRecord{job.number, static_cast<Wish>(rng_.below(kinds)),
                    rng_.below(2) == 0 ? job.spec->user : kSchedulerName, "because"};
}

RecordBody RandomHistory::change(const LedgerJob& job) {
  return ChangeRecord{job.number,
                      fmt::format(R"({{"priority": {}, "comment": "c{}", "time_limit": {}}})",
                                  rng_.below(100), rng_.below(10), 60 + rng_.below(1'000)),
                      "operator"};
}

RecordBody RandomHistory::end(const LedgerJob& job) {
  EndRecord record{.job = job.number};
  if (!job.attempt) {
    record.outcome = rng_.below(2) == 0 ? Outcome::Cancelled : Outcome::Rejected;
    record.why = "never ran";
    return record;
  }
  record.attempt = job.attempt->id;
  record.is_final = rng_.below(3) > 0;
  record.outcome = static_cast<Outcome>(rng_.below(8));  // not Rejected
  if (record.outcome == Outcome::Completed) record.is_final = true;
  record.exit_code = record.outcome == Outcome::Failed ? 1 : 0;
  record.run_seconds = rng_.uniform() * 1'000;
  record.gpu_seconds = record.run_seconds * job.attempt->gpus;
  record.joules = record.gpu_seconds * 250.25;
  if (rng_.below(2) == 0) record.why = "as it was";
  return record;
}

RecordBody RandomHistory::setting() {
  return SettingRecord{fmt::format("key/{}", rng_.below(5)),
                       rng_.below(4) == 0 ? "" : fmt::format("{{\"v\":{}}}", rng_.below(1'000)),
                       "admin"};
}

const LedgerJob* RandomHistory::any_job(const Ledger& ledger) {
  if (ledger.jobs().empty()) return nullptr;
  const auto from = ledger.jobs().lower_bound(1 + rng_.below(ledger.next_number()));
  return from == ledger.jobs().end() ? &ledger.jobs().rbegin()->second : &from->second;
}

RecordBody RandomHistory::of_job(const LedgerJob& job, const Ledger& ledger) {
  switch (rng_.below(10)) {
    case 0: return change(job);
    case 1:
    case 2: return wish(job);
    case 3:
    case 4:
    case 5:
    case 6:
      if (job.attempt) return end(job);
      return intent(job, ledger);
    case 7:
      if (!job.attempt) return intent(job, ledger);
      if (job.attempt->id.counter % 2 == 0) return resize(job);
      return StartedRecord{job.number, job.attempt->id, 4'711};
    default: return end(job);
  }
}

Record RandomHistory::next(const Ledger& ledger) {
  if (ledger.generation() == 0 || rng_.below(60) == 0) return stamped(life(ledger));
  const LedgerJob* job = any_job(ledger);
  if (job == nullptr || rng_.below(4) == 0) return stamped(submit(ledger));
  if (rng_.below(15) == 0) return stamped(setting());
  return stamped(of_job(*job, ledger));
}

Record RandomHistory::illegal(const Ledger& ledger) {
  const LedgerJob* job = any_job(ledger);
  const std::uint64_t kind = rng_.below(job == nullptr ? 4 : 11);
  switch (kind) {
    case 0: return stamped(LifeRecord{.generation = ledger.generation()});
    case 1: return stamped(SubmitRecord{ledger.next_number() + 1, spec(1)});
    case 2: return stamped(WishRecord{ledger.next_number(), Wish::Cancel, "u0", ""});
    case 3: return stamped(SettingRecord{"", "1", "admin"});
    case 4: return stamped(ChangeRecord{job->number, R"({"user": "root"})", "u0"});
    case 5: return stamped(ChangeRecord{job->number, R"({"gpus": "many"})", "u0"});
    case 6:
      return stamped(IntentRecord{.job = job->number, .attempt = {ledger.generation() + 1, 1}});
    case 7: return stamped(IntentRecord{.job = job->number, .attempt = ledger.last_attempt()});
    case 8: return stamped(EndRecord{.job = job->number, .attempt = {99, 99}});
    case 9: return stamped(StartedRecord{job->number, {99, 99}, 1});
    default: break;
  }
  if (job->attempt)
    return stamped(EndRecord{.job = job->number, .attempt = {}});  // I4: still alive
  return stamped(WishRecord{job->number, Wish::Suspend, "u0", ""});
}

}  // namespace berth::test
