// Rows of the tables as jobs of the ledger, and back. `jobs` and `base_jobs` have the same columns,
// so that one list of them serves both sides; positions are those of kColumns.

#include "store/job_rows.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "store/journal_json.h"

namespace berth {

namespace {

constexpr std::string_view kColumns =
    "number, spec, array, array_index, submitted, submitted_wall, is_held, held_by, held_why, "
    "stopping, attempt_generation, attempt_counter, is_suspended, attempts, failures, preemptions, "
    "first_start, first_start_wall, gpu_seconds, run_seconds, is_frozen, frozen_by, frozen_why, "
    "made_way, joules, suspended_wall, suspended_seconds";
constexpr int kColumnCount = 27;
constexpr int kAttemptColumn = kColumnCount;    // held, gpus, begun, begun_wall of the live attempt
constexpr int kExtraColumn = kColumnCount + 4;  // of a live attempt that had another size before
constexpr int kPastColumn = kColumnCount + 5;   // outcome … held of a job that is over

std::string_view table_of(Side side) { return side == Side::Now ? "jobs" : "base_jobs"; }

// Every column is qualified: attempts has columns of the same names.
std::string query(std::string_view table, std::string_view more) {
  std::string columns(kColumns);
  std::string qualified = "j.";
  for (const char c : columns) {
    qualified += c;
    if (c == ' ') qualified += "j.";
  }
  return fmt::format(
      "SELECT {}, a.held, a.gpus, a.begun, a.begun_wall, "
      "CASE WHEN a.outcome IS NULL THEN a.gpu_seconds END{} FROM {} j LEFT JOIN attempts a "
      "ON a.generation = j.attempt_generation AND a.counter = j.attempt_counter ",
      qualified, more, table);
}

std::vector<JobNumber> numbers_from(std::string_view text) {
  std::vector<JobNumber> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) {
    JobNumber number = 0;
    at = std::from_chars(at, end, number).ptr;
    numbers.push_back(number);
  }
  return numbers;
}

Time time_of(std::int64_t ticks) { return Time{Duration{ticks}}; }

Result<LiveAttempt> read_attempt(const Statement& row, JobNumber job) {
  // The job says that it runs, so its attempt must be there: the two are written in one
  // transaction.
  if (row.is_null(kAttemptColumn))
    return fail(fmt::format("job {}: its attempt is not in the table", job));
  LiveAttempt attempt;
  attempt.id = {row.natural(10), row.natural(11)};
  BERTH_TRY(attempt.where, read_held(row.text(kAttemptColumn)));
  attempt.gpus = row.small(kAttemptColumn + 1);
  attempt.since = time_of(row.integer(kAttemptColumn + 2));
  attempt.wall = row.integer(kAttemptColumn + 3);
  attempt.is_suspended = row.integer(12) != 0;
  if (!row.is_null(kExtraColumn)) attempt.extra_gpu_seconds = row.real(kExtraColumn);
  attempt.suspended_wall = row.integer(25);
  attempt.suspended_seconds = row.real(26);
  return attempt;
}

// Ordered by key: the digest of a ledger walks over them.
Result<std::map<std::string, std::string>> read_settings(Database& database, Side side) {
  std::map<std::string, std::string> settings;
  BERTH_TRY(Statement select,
            database.prepare(side == Side::Now ? "SELECT key, value FROM settings"
                                               : "SELECT key, value FROM base_settings"));
  for (;;) {
    BERTH_TRY(const bool has_row, select.step());
    if (!has_row) return settings;
    settings.emplace(select.text(0), select.text(1));
  }
}

Result<Ledger> ledger_of(Database& database, Side side, std::map<JobNumber, LedgerJob> jobs) {
  BERTH_TRY(auto settings, read_settings(database, side));
  BERTH_TRY(const StateRow state, read_state(database, side));
  Ledger ledger;
  ledger.restore(std::move(jobs), std::move(settings), state.next_number, state.generation,
                 state.now, state.last_attempt);
  return ledger;
}

}  // namespace

Result<StateRow> read_state(Database& database, Side side) {
  BERTH_TRY(Statement select,
            database.prepare("SELECT next_number, generation, now, attempt_generation, "
                             "attempt_counter, sequence, checksum FROM state WHERE which = ?"));
  select.bind(std::string_view(side == Side::Now ? "now" : "base"));
  BERTH_TRY(const bool has_row, select.step());
  if (!has_row) return StateRow{};
  return StateRow{.next_number = select.natural(0),
                  .generation = select.natural(1),
                  .now = time_of(select.integer(2)),
                  .last_attempt = {select.natural(3), select.natural(4)},
                  .sequence = select.natural(5),
                  .checksum = select.natural(6)};
}

Result<void> write_state(Database& database, Side side, const StateRow& state) {
  BERTH_TRY(Statement insert,
            database.prepare("INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  return insert.run(std::string_view(side == Side::Now ? "now" : "base"), state.next_number,
                    state.generation, state.now.time_since_epoch().count(),
                    state.last_attempt.generation, state.last_attempt.counter, state.sequence,
                    state.checksum);
}

// What the state row must follow without a ledger in memory: the writer has only the changes.
void advance(StateRow& state, const Record& record, const Ledger::Change& change) {
  if (const auto* life = std::get_if<LifeRecord>(&record.body)) state.generation = life->generation;
  if (const auto* submit = std::get_if<SubmitRecord>(&record.body))
    state.next_number = submit->first + static_cast<JobNumber>(change.count);
  if (const auto* intent = std::get_if<IntentRecord>(&record.body))
    state.last_attempt = intent->attempt;
  // The clock of a journal never goes back, whatever a record says.
  state.now = std::max(state.now, record.at);
}

Result<SpecRows> SpecRows::open(Database& database) {
  SpecRows rows;
  BERTH_TRY(rows.select_, database.prepare("SELECT body FROM specs WHERE id = ?"));
  return rows;
}

Result<std::shared_ptr<const JobSpec>> SpecRows::get(std::int64_t id) {
  auto& known = known_[id];
  if (known) return known;
  select_.bind(id);
  BERTH_TRY(const bool has_row, select_.step());
  if (!has_row) return fail(fmt::format("spec {} is not in the table", id));
  BERTH_TRY(JobSpec spec, kept_spec(select_.text(0)));
  select_.reset();
  // Shared: all jobs of an array, and both sides of a check, refer to one spec.
  known = std::make_shared<const JobSpec>(std::move(spec));
  return known;
}

std::string job_query(Side side) { return query(table_of(side), ""); }

std::string past_query() {
  // The last attempt, by the index of a job's attempts.
  std::string more = ", j.outcome, j.exit_code, j.signal, j.ended, j.ended_wall, j.why, j.held";
  for (const std::string_view column : {"begun_wall", "run_seconds", "suspended_seconds"})
    more += fmt::format(
        ", (SELECT l.{} FROM attempts l WHERE l.job = j.number "
        "ORDER BY l.generation DESC, l.counter DESC LIMIT 1)",
        column);
  return query("jobs", more);
}

std::int64_t spec_of(const Statement& row) { return row.integer(1); }

Result<LedgerJob> read_job(const Statement& row, SpecRows& specs) {
  LedgerJob job;
  job.number = row.natural(0);
  BERTH_TRY(job.spec, specs.get(spec_of(row)));
  job.array = row.natural(2);
  job.array_index = row.small(3);
  job.submitted = time_of(row.integer(4));
  job.submitted_wall = row.integer(5);
  job.is_held = row.integer(6) != 0;
  job.held_by = row.text(7);
  job.held_why = row.text(8);
  if (!row.is_null(9)) job.stopping = wish_from(row.text(9));
  if (!row.is_null(10)) {
    BERTH_TRY(job.attempt, read_attempt(row, job.number));
  }
  job.attempts = row.small(13);
  job.failures = row.small(14);
  job.preemptions = row.small(15);
  if (!row.is_null(16)) job.first_start = time_of(row.integer(16));
  job.first_start_wall = row.integer(17);
  job.gpu_seconds = row.real(18);
  job.run_seconds = row.real(19);
  job.is_frozen = row.integer(20) != 0;
  job.frozen_by = row.text(21);
  job.frozen_why = row.text(22);
  job.made_way = numbers_from(row.text(23));
  job.joules = row.real(24);
  return job;
}

Result<PastJob> read_past(const Statement& row, SpecRows& specs) {
  PastJob past;
  BERTH_TRY(past.job, read_job(row, specs));
  const auto outcome = outcome_from(row.text(kPastColumn));
  if (!outcome) return fail(fmt::format("job {}: an unknown outcome", past.job.number));
  past.outcome = *outcome;
  past.exit_code = row.small(kPastColumn + 1);
  past.signal = row.small(kPastColumn + 2);
  past.ended = time_of(row.integer(kPastColumn + 3));
  past.ended_wall = row.integer(kPastColumn + 4);
  past.why = row.text(kPastColumn + 5);
  BERTH_TRY(past.where, read_held(row.text(kPastColumn + 6)));
  if (!row.is_null(kPastColumn + 7)) past.last_start_wall = row.integer(kPastColumn + 7);
  if (!row.is_null(kPastColumn + 8)) past.last_run_seconds = row.real(kPastColumn + 8);
  if (!row.is_null(kPastColumn + 9)) past.suspended_seconds = row.real(kPastColumn + 9);
  return past;
}

std::string job_insert(Side side) {
  std::string places = "?";
  for (int i = 1; i < kColumnCount; ++i) places += ", ?";
  return fmt::format("INSERT OR REPLACE INTO {} ({}) VALUES ({})", table_of(side), kColumns,
                     places);
}

void bind_job(Statement& statement, const LedgerJob& job, std::optional<std::int64_t> spec) {
  std::optional<std::string_view> stopping;
  if (job.stopping) stopping = to_string(*job.stopping);
  std::optional<std::uint64_t> generation, counter;
  if (job.attempt) {
    generation = job.attempt->id.generation;
    counter = job.attempt->id.counter;
  }
  std::optional<std::int64_t> first_start;
  if (job.first_start) first_start = job.first_start->time_since_epoch().count();
  statement.bind(job.number, spec, job.array, job.array_index,
                 job.submitted.time_since_epoch().count(), job.submitted_wall, job.is_held,
                 std::string_view(job.held_by), std::string_view(job.held_why), stopping,
                 generation, counter, job.attempt && job.attempt->is_suspended, job.attempts,
                 job.failures, job.preemptions, first_start, job.first_start_wall, job.gpu_seconds,
                 job.run_seconds, job.is_frozen, std::string_view(job.frozen_by),
                 std::string_view(job.frozen_why),
                 std::string_view(fmt::format("{}", fmt::join(job.made_way, " "))), job.joules,
                 job.attempt ? job.attempt->suspended_wall : std::int64_t{0},
                 job.attempt ? job.attempt->suspended_seconds : 0.0);
}

Result<std::vector<HeldDevices>> read_held(std::string_view text) {
  if (text.empty()) return std::vector<HeldDevices>{};
  return held_from_json(nlohmann::json::parse(text, nullptr, false));
}

Result<Ledger> load_ledger(Database& database, Side side) {
  std::map<JobNumber, LedgerJob> jobs;
  BERTH_TRY(SpecRows specs, SpecRows::open(database));
  // `jobs` also keeps what is over; the base holds only jobs that were alive then.
  const std::string_view which = side == Side::Now ? "WHERE j.outcome IS NULL " : "";
  BERTH_TRY(Statement select,
            database.prepare(fmt::format("{}{}ORDER BY j.number", job_query(side), which)));
  for (;;) {
    BERTH_TRY(const bool has_row, select.step());
    if (!has_row) break;
    BERTH_TRY(LedgerJob job, read_job(select, specs));
    jobs.emplace_hint(jobs.end(), job.number, std::move(job));
  }
  return ledger_of(database, side, std::move(jobs));
}

Result<Ledger> load_ledger(Database& database, Side side, std::span<const JobNumber> only) {
  std::map<JobNumber, LedgerJob> jobs;
  BERTH_TRY(SpecRows specs, SpecRows::open(database));
  BERTH_TRY(Statement select, database.prepare(job_query(side) + "WHERE j.number = ?"));
  for (const JobNumber number : only) {
    select.bind(number);
    BERTH_TRY(const bool has_row, select.step());
    if (!has_row) continue;
    BERTH_TRY(LedgerJob job, read_job(select, specs));
    jobs.emplace(number, std::move(job));
  }
  return ledger_of(database, side, std::move(jobs));
}

}  // namespace berth
