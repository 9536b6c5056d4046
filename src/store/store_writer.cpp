// Collects records and writes them with all their tables in one transaction. Encoding happens in
// append(), so that the transaction itself only writes.

#include "store/store_writer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/crash_point.h"
#include "store/journal_json.h"

namespace berth {

namespace {

/// ?1 is the number, the other parameters as bind_job() counts them.
constexpr std::string_view kUpdateJob =
    "UPDATE jobs SET spec = coalesce(?2, spec), array = ?3, array_index = ?4, submitted = ?5, "
    "submitted_wall = ?6, is_held = ?7, held_by = ?8, held_why = ?9, stopping = ?10, "
    "attempt_generation = ?11, attempt_counter = ?12, is_suspended = ?13, attempts = ?14, "
    "failures = ?15, preemptions = ?16, first_start = ?17, first_start_wall = ?18, "
    "gpu_seconds = ?19, run_seconds = ?20, is_frozen = ?21, frozen_by = ?22, frozen_why = ?23, "
    "made_way = ?24, joules = ?25, suspended_wall = ?26, suspended_seconds = ?27 "
    "WHERE number = ?1";

// A change has the job as it is, or as it was when it ended.
const LedgerJob& job_of(const Ledger::Change& change) {
  return change.past ? change.past->job : *change.live;
}

}  // namespace

Result<StoreWriter> StoreWriter::open(Database database) {
  StoreWriter writer;
  writer.database_ = std::move(database);
  BERTH_TRY_VOID(writer.prepare());
  BERTH_TRY(writer.committed_, read_state(writer.database_, Side::Now));
  BERTH_TRY(writer.last_spec_, writer.database_.number("SELECT coalesce(max(id), 0) FROM specs"));
  writer.next_ = writer.committed_;
  return writer;
}

Result<void> StoreWriter::prepare() {
  const std::pair<Statement*, std::string> all[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&generation_, "SELECT generation, sequence FROM state WHERE which = 'now'"},
      {&journal_, "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)"},
      {&spec_, "INSERT INTO specs VALUES (?, ?)"},
      {&insert_job_, job_insert(Side::Now)},
      {&update_job_, std::string(kUpdateJob)},
      {&finish_job_,
       "UPDATE jobs SET outcome = ?2, exit_code = ?3, signal = ?4, ended = ?5, ended_wall = ?6, "
       "why = ?7, held = ?8, user = ?9, \"group\" = ?10, queue = ?11, name = ?12 "
       "WHERE number = ?1"},
      {&begin_attempt_,
       "INSERT INTO attempts (generation, counter, job, held, gpus, begun, begun_wall) "
       "VALUES (?, ?, ?, ?, ?, ?, ?)"},
      {&end_attempt_,
       "UPDATE attempts SET outcome = ?3, ended_wall = ?4, exit_code = ?5, signal = ?6, "
       "gpu_seconds = ?7, why = ?8, user = ?9, \"group\" = ?10, cpu_seconds = ?11, "
       "max_rss_kib = ?12, steps = ?13, run_seconds = ?14, suspended_seconds = ?15 "
       "WHERE generation = ?1 AND counter = ?2"},
      {&resize_attempt_,
       "UPDATE attempts SET held = ?3, gpus = ?4, gpu_seconds = ?5 "
       "WHERE generation = ?1 AND counter = ?2"},
      {&set_, "INSERT OR REPLACE INTO settings VALUES (?, ?)"},
      {&unset_, "DELETE FROM settings WHERE key = ?"},
      {&key_, "INSERT OR REPLACE INTO keys VALUES (?, ?, ?)"},
      {&usage_,
       "INSERT INTO usage VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
       "SET gpu_seconds = gpu_seconds + excluded.gpu_seconds"},
      {&forget_passes_, "DELETE FROM engine"},
      {&pass_, "INSERT INTO engine (at, bytes) VALUES (?, ?)"},
      {&state_, "INSERT OR REPLACE INTO state VALUES ('now', ?, ?, ?, ?, ?, ?, ?)"}};
  for (const auto& [statement, sql] : all) {
    BERTH_TRY(*statement, database_.prepare(sql));
  }
  return {};
}

void StoreWriter::append(const Record& record, const Ledger::Change& change) {
  Item item{.at = record.at.time_since_epoch().count(),
            .wall = record.wall,
            .kind = kind_of(record.body),
            .body = {},
            .spec = {},
            .record = {},
            .change = change};
  if (const auto* submit = std::get_if<SubmitRecord>(&record.body)) {
    item.spec = spec_text(submit->spec);
    item.body = submit_body(submit->first, item.spec);
    item.record = SubmitRecord{submit->first, {}};
  } else if (std::holds_alternative<EngineRecord>(record.body)) {
    item.record = record.body;
    batch_.push_back(std::move(item));
    return;
  } else {
    if (std::holds_alternative<ChangeRecord>(record.body))
      item.spec = spec_text(*change.live->spec);
    item.body = encode(record.body);
    item.record = record.body;
  }
  // next_ is what will hold after the batch; committed_ stays until the sync is done.
  advance(next_, record, change);
  batch_.push_back(std::move(item));
}

/// What one record changes besides the journal.
/// One function per kind of record; a new kind does not compile until it has one.
struct StoreWriter::TableWriter {
  StoreWriter& writer;
  const Item& item;

  Result<void> operator()(const LifeRecord&) const { return {}; }
  Result<void> operator()(const StartedRecord&) const { return {}; }

  Result<void> operator()(const SubmitRecord& submit) const {
    BERTH_TRY(const std::int64_t spec, writer.write_spec(item));
    LedgerJob job = *item.change.live;
    for (std::int32_t i = 0; i < item.change.count; ++i) {
      job.number = submit.first + static_cast<JobNumber>(i);
      if (job.spec->array) job.array_index = job.spec->array->indices[static_cast<std::size_t>(i)];
      bind_job(writer.insert_job_, job, spec);
      BERTH_TRY_VOID(writer.insert_job_.finish());
    }
    if (job.spec->key.empty()) return {};
    return writer.key_.run(std::string_view(job.spec->user), std::string_view(job.spec->key),
                           submit.first);
  }
  Result<void> operator()(const IntentRecord& intent) const {
    BERTH_TRY_VOID(writer.begin_attempt_.run(
        intent.attempt.generation, intent.attempt.counter, intent.job,
        std::string_view(dump(to_json(intent.where))), intent.gpus, item.at, item.wall));
    return writer.write_job(*item.change.live, std::nullopt);
  }
  /// Until the attempt ends, this column holds what it owes beyond its current size.
  Result<void> operator()(const ResizeRecord& resize) const {
    return writer.resize_attempt_.run(resize.attempt.generation, resize.attempt.counter,
                                      std::string_view(dump(to_json(resize.where))), resize.gpus,
                                      resize.extra_gpu_seconds);
  }
  Result<void> operator()(const WishRecord&) const {
    return writer.write_job(*item.change.live, std::nullopt);
  }
  Result<void> operator()(const EndRecord& end) const {
    const LedgerJob& job = job_of(item.change);
    if (!end.attempt.is_none()) {
      const std::string_view user = job.spec->user, group = job.spec->group;
      const std::string steps = end.steps.empty() ? std::string{} : dump(to_json(end.steps));
      BERTH_TRY_VOID(writer.end_attempt_.run(
          end.attempt.generation, end.attempt.counter, to_string(end.outcome), item.wall,
          end.exit_code, end.signal, end.gpu_seconds, std::string_view(end.why), user, group,
          end.cpu_seconds, end.max_rss_kib, std::string_view(steps), end.run_seconds,
          end.suspended_seconds));
      BERTH_TRY_VOID(writer.usage_.run(user, group, end.gpu_seconds));
      writer.ended_.push_back({item.wall, {job.spec->user, job.spec->group, end.gpu_seconds}});
    }
    BERTH_TRY_VOID(writer.write_job(job, std::nullopt));
    if (!item.change.past) return {};
    return writer.write_past(*item.change.past);
  }
  Result<void> operator()(const ChangeRecord&) const {
    BERTH_TRY(const std::int64_t spec, writer.write_spec(item));
    return writer.write_job(*item.change.live, spec);
  }
  Result<void> operator()(const SettingRecord& setting) const {
    const std::string_view key = setting.key, value = setting.value;
    return value.empty() ? writer.unset_.run(key) : writer.set_.run(key, value);
  }
  Result<void> operator()(const EngineRecord& pass) const {
    if (pass.begins) BERTH_TRY_VOID(writer.forget_passes_.run());
    return writer.pass_.run(item.at, Blob{pass.bytes});
  }
};

Result<void> StoreWriter::commit() {
  ended_.clear();
  StateRow state = next_;
  // Numbers and checksums are given here: only what is committed has a place in the chain.
  state.sequence = committed_.sequence;
  state.checksum = committed_.checksum;
  BERTH_TRY_VOID(begin_.run());
  BERTH_TRY_VOID(check_generation());
  for (const Item& item : batch_) {
    if (!std::holds_alternative<EngineRecord>(item.record))
      BERTH_TRY_VOID(write_journal(item, state));
    BERTH_TRY_VOID(std::visit(TableWriter{*this, item}, item.record));
  }
  BERTH_TRY_VOID(state_.run(state.next_number, state.generation,
                            state.now.time_since_epoch().count(), state.last_attempt.generation,
                            state.last_attempt.counter, state.sequence, state.checksum));
  crash_point("store.written");
  BERTH_TRY_VOID(commit_.run());
  committed_ = next_ = state;
  batch_.clear();
  return {};
}

/// Another scheduler with a newer life has written to the same files: the lock did not hold.
Result<void> StoreWriter::check_generation() {
  BERTH_TRY(const bool has_row, generation_.step());
  const std::uint64_t generation = has_row ? generation_.natural(0) : 0;
  const std::uint64_t sequence = has_row ? generation_.natural(1) : 0;
  generation_.reset();
  if (generation == committed_.generation && sequence == committed_.sequence) return {};
  return fail(fmt::format("another scheduler (life {}, this one is {}) has written to this store",
                          generation, committed_.generation));
}

Result<void> StoreWriter::write_journal(const Item& item, StateRow& state) {
  ++state.sequence;
  state.checksum = chained(state.checksum, {.sequence = state.sequence,
                                            .at = item.at,
                                            .wall = item.wall,
                                            .kind = item.kind,
                                            .body = item.body});
  std::optional<std::int64_t> spec;
  if (!item.spec.empty()) spec = last_spec_ + 1;  // written next
  return journal_.run(state.sequence, item.at, item.wall, item.kind, std::string_view(item.body),
                      state.checksum, spec);
}

Result<std::int64_t> StoreWriter::write_spec(const Item& item) {
  BERTH_TRY_VOID(spec_.run(++last_spec_, std::string_view(item.spec)));
  return last_spec_;
}

Result<void> StoreWriter::write_job(const LedgerJob& job, std::optional<std::int64_t> spec) {
  bind_job(update_job_, job, spec);
  return update_job_.finish();
}

Result<void> StoreWriter::write_past(const PastJob& past) {
  const JobSpec& spec = *past.job.spec;
  return finish_job_.run(past.job.number, to_string(past.outcome), past.exit_code, past.signal,
                         past.ended.time_since_epoch().count(), past.ended_wall,
                         std::string_view(past.why), std::string_view(dump(to_json(past.where))),
                         std::string_view(spec.user), std::string_view(spec.group),
                         std::string_view(spec.queue), std::string_view(spec.name));
}

}  // namespace berth
