// The tables, one migration per version. A migration is never edited after a release: files of
// every version must come to the same schema.

#include "store/schema.h"

#include <array>

#include <fmt/format.h>

namespace berth {

namespace {

constexpr std::int64_t kApplication = 0x62727468;  // "brth" in the file's header

// Times "…_wall" are Unix microseconds, the others the engine's clock. A job is over when it has an
// outcome. `state`, `base_jobs` and `base_settings` hold what stood before the first record of the
// journal that is still kept. Specs are never changed, because both sides refer to them.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE state (
  which TEXT PRIMARY KEY, -- now: after the last record; base: before the first that is kept
  next_number INTEGER NOT NULL, generation INTEGER NOT NULL, now INTEGER NOT NULL,
  attempt_generation INTEGER NOT NULL, attempt_counter INTEGER NOT NULL,
  sequence INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE journal (
  sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, wall INTEGER NOT NULL,
  kind TEXT NOT NULL, body TEXT NOT NULL, checksum INTEGER NOT NULL,
  spec INTEGER); -- that the record made

CREATE TABLE specs (id INTEGER PRIMARY KEY, body TEXT NOT NULL);

CREATE TABLE jobs (
  number INTEGER PRIMARY KEY, spec INTEGER NOT NULL, array INTEGER NOT NULL,
  array_index INTEGER NOT NULL, submitted INTEGER NOT NULL, submitted_wall INTEGER NOT NULL,
  is_held INTEGER NOT NULL, held_by TEXT NOT NULL, held_why TEXT NOT NULL, stopping TEXT,
  attempt_generation INTEGER, attempt_counter INTEGER, is_suspended INTEGER NOT NULL,
  attempts INTEGER NOT NULL, failures INTEGER NOT NULL, preemptions INTEGER NOT NULL,
  first_start INTEGER, first_start_wall INTEGER NOT NULL,
  gpu_seconds REAL NOT NULL, run_seconds REAL NOT NULL,
  -- of jobs that are over
  outcome TEXT, exit_code INTEGER, signal INTEGER, ended INTEGER, ended_wall INTEGER, why TEXT,
  held TEXT, user TEXT, "group" TEXT, queue TEXT, name TEXT);
CREATE INDEX jobs_live ON jobs (number) WHERE outcome IS NULL;
CREATE INDEX jobs_past ON jobs (ended_wall, number) WHERE outcome IS NOT NULL;
CREATE INDEX jobs_past_user ON jobs (user, ended_wall, number) WHERE outcome IS NOT NULL;
CREATE INDEX jobs_past_group ON jobs ("group", ended_wall, number) WHERE outcome IS NOT NULL;
CREATE INDEX jobs_past_queue ON jobs (queue, ended_wall, number) WHERE outcome IS NOT NULL;
CREATE INDEX jobs_past_name ON jobs (name, ended_wall, number) WHERE outcome IS NOT NULL;

CREATE TABLE attempts (
  generation INTEGER NOT NULL, counter INTEGER NOT NULL, job INTEGER NOT NULL,
  held TEXT NOT NULL, gpus INTEGER NOT NULL, begun INTEGER NOT NULL, begun_wall INTEGER NOT NULL,
  outcome TEXT, ended_wall INTEGER, exit_code INTEGER, signal INTEGER, gpu_seconds REAL,
  why TEXT, user TEXT, "group" TEXT,
  PRIMARY KEY (generation, counter)) WITHOUT ROWID;
CREATE INDEX attempts_of_job ON attempts (job);
CREATE INDEX attempts_ended ON attempts (ended_wall) WHERE outcome IS NOT NULL;

CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE keys (user TEXT, key TEXT, number INTEGER NOT NULL,
                   PRIMARY KEY (user, key)) WITHOUT ROWID;
CREATE TABLE usage (user TEXT, "group" TEXT, gpu_seconds REAL NOT NULL,
                    PRIMARY KEY (user, "group")) WITHOUT ROWID;

CREATE TABLE base_jobs (
  number INTEGER PRIMARY KEY, spec INTEGER NOT NULL, array INTEGER NOT NULL,
  array_index INTEGER NOT NULL, submitted INTEGER NOT NULL, submitted_wall INTEGER NOT NULL,
  is_held INTEGER NOT NULL, held_by TEXT NOT NULL, held_why TEXT NOT NULL, stopping TEXT,
  attempt_generation INTEGER, attempt_counter INTEGER, is_suspended INTEGER NOT NULL,
  attempts INTEGER NOT NULL, failures INTEGER NOT NULL, preemptions INTEGER NOT NULL,
  first_start INTEGER, first_start_wall INTEGER NOT NULL,
  gpu_seconds REAL NOT NULL, run_seconds REAL NOT NULL);
CREATE TABLE base_settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
)sql";

// Who suspended a job: a slice of time ends by the scheduler, a person's wish lasts. Before, both
// were one mark; the journal knows whose the last one was.
constexpr const char* kVersion2 = R"sql(
ALTER TABLE jobs ADD COLUMN is_frozen INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN frozen_by TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN frozen_why TEXT NOT NULL DEFAULT '';
ALTER TABLE base_jobs ADD COLUMN is_frozen INTEGER NOT NULL DEFAULT 0;
ALTER TABLE base_jobs ADD COLUMN frozen_by TEXT NOT NULL DEFAULT '';
ALTER TABLE base_jobs ADD COLUMN frozen_why TEXT NOT NULL DEFAULT '';
UPDATE jobs SET is_frozen = 1, is_suspended = 0, frozen_by = w.who, frozen_why = w.why
FROM (SELECT json_extract(body, '$.job') AS job, json_extract(body, '$.by') AS who,
             json_extract(body, '$.why') AS why, max(sequence)
      FROM journal WHERE kind = 'wish' AND json_extract(body, '$.wish') = 'suspend'
      GROUP BY job) AS w
WHERE jobs.number = w.job AND jobs.is_suspended AND jobs.outcome IS NULL
      AND w.who <> '@scheduler';
)sql";

// What the engine was told from outside since it began (EngineRecord): the first row says which
// engine, the others are its passes. Not part of the journal and its chain. And for whom a job has
// made way: numbers with blanks between.
constexpr const char* kVersion3 = R"sql(
CREATE TABLE engine (pass INTEGER PRIMARY KEY, at INTEGER NOT NULL, bytes BLOB NOT NULL);
ALTER TABLE jobs ADD COLUMN made_way TEXT NOT NULL DEFAULT '';
ALTER TABLE base_jobs ADD COLUMN made_way TEXT NOT NULL DEFAULT '';
)sql";

// What a job has used.
constexpr const char* kVersion4 = R"sql(
ALTER TABLE jobs ADD COLUMN joules REAL NOT NULL DEFAULT 0;
ALTER TABLE base_jobs ADD COLUMN joules REAL NOT NULL DEFAULT 0;
)sql";

// What an attempt has used, and its steps: a list as in the record of its end.
constexpr const char* kVersion5 = R"sql(
ALTER TABLE attempts ADD COLUMN cpu_seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN max_rss_kib INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN steps TEXT NOT NULL DEFAULT '';
)sql";

// How long an attempt ran and stood still. Of one that lives: since when it has stood still, and for
// how long before.
constexpr const char* kVersion6 = R"sql(
ALTER TABLE attempts ADD COLUMN run_seconds REAL;
ALTER TABLE attempts ADD COLUMN suspended_seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN suspended_wall INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN suspended_seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE base_jobs ADD COLUMN suspended_wall INTEGER NOT NULL DEFAULT 0;
ALTER TABLE base_jobs ADD COLUMN suspended_seconds REAL NOT NULL DEFAULT 0;
)sql";

constexpr std::array<const char*, 6> kMigrations{kVersion1, kVersion2, kVersion3,
                                                 kVersion4, kVersion5, kVersion6};

/// An empty file, or one of ours; anything else belongs to somebody.
Result<void> check_owner(Database& database, std::int64_t version, const std::string& path) {
  BERTH_TRY(const std::int64_t application, database.number("PRAGMA application_id"));
  BERTH_TRY(const std::int64_t tables, database.number("SELECT count(*) FROM sqlite_master"));
  const bool is_empty = version == 0 && application == 0 && tables == 0;
  if (!is_empty && application != kApplication)
    return fail(fmt::format("{}: a database of another program (choose another directory)", path));
  return {};
}

}  // namespace

std::span<const char* const> migrations() { return kMigrations; }

Result<void> migrate(Database& database, std::span<const char* const> steps,
                     const std::string& path) {
  BERTH_TRY(const std::int64_t found, database.number("PRAGMA user_version"));
  BERTH_TRY_VOID(check_owner(database, found, path));
  const auto last = static_cast<std::int64_t>(steps.size());
  // A newer version may have changed what columns mean: reading on would misread them.
  if (found > last)
    return fail(
        fmt::format("{}: written by a newer version of berth (schema {}, this one knows up "
                    "to {}): use that version",
                    path, found, last));
  for (std::int64_t version = found; version < last; ++version) {
    // Each step and its number in one transaction: a crash leaves a whole version.
    BERTH_TRY_VOID(database.run(
        fmt::format("BEGIN IMMEDIATE; {}; PRAGMA application_id = {}; PRAGMA user_version = {}; "
                    "COMMIT",
                    steps[static_cast<std::size_t>(version)], kApplication, version + 1)));
  }
  return {};
}

}  // namespace berth
