// Questions about the past, each with a statement prepared once. Lists are built from conditions;
// every value is bound, none is put into the text.

#include "store/store_reader.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/journal_json.h"

namespace berth {

namespace {

constexpr std::size_t kMostRows = 100'000;

/// The text of a query and what it binds, one condition after the other.
/// Text and values grow together, so that every place holder has its value.
struct Conditions {
  std::string sql = "WHERE j.outcome IS NOT NULL";
  std::vector<std::variant<std::string, std::int64_t>> values;

  void add(std::string_view condition) { sql += fmt::format(" AND {}", condition); }
  void equal(std::string_view column, const std::optional<std::string>& value) {
    if (!value) return;
    add(fmt::format("j.{} = ?", column));
    values.emplace_back(*value);
  }
  void bound(std::string_view condition, const std::optional<std::int64_t>& value) {
    if (!value) return;
    add(condition);
    values.emplace_back(*value);
  }
  template <class Wanted, class AsValue>
  void one_of(std::string_view column, const std::vector<Wanted>& wanted, AsValue as_value) {
    if (wanted.empty()) return;
    std::string places;
    for (const Wanted& one : wanted) {
      places += places.empty() ? "?" : ", ?";
      values.emplace_back(as_value(one));
    }
    add(fmt::format("j.{} IN ({})", column, places));
  }
  void bind(Statement& statement) const {
    int at = 0;
    for (const auto& value : values) {
      ++at;
      if (const auto* text = std::get_if<std::string>(&value))
        statement.put(at, std::string_view(*text));
      else
        statement.put(at, std::get<std::int64_t>(value));
    }
  }
};

/// Of the whole list.
Conditions conditions_of(const PastQuery& query) {
  Conditions all;
  all.equal("user", query.user);
  all.equal("\"group\"", query.group);
  all.equal("queue", query.queue);
  all.equal("name", query.name);
  all.one_of("number", query.numbers,
             [](JobNumber number) { return static_cast<std::int64_t>(number); });
  all.one_of("outcome", query.outcomes,
             [](Outcome outcome) { return std::string(to_string(outcome)); });
  all.bound("j.ended_wall >= ?", query.since_wall);
  all.bound("j.ended_wall < ?", query.until_wall);
  return all;
}

/// Adds where the page begins; how it is ordered.
/// Pages continue behind the last row seen, not at an offset: rows that come in between are neither
/// skipped nor shown twice.
std::string_view begin_page(Conditions& all, const PastQuery& query) {
  if (query.order == PastQuery::Order::Number) {
    if (query.after) all.bound("j.number > ?", static_cast<std::int64_t>(*query.after));
    // With a plus the rows are found by when they ended and then sorted: the last few of many.
    return query.since_wall ? "+j.number" : "j.number";
  }
  if (query.before) {
    all.add("(j.ended_wall, j.number) < (?, ?)");
    all.values.emplace_back(query.before->first);
    all.values.emplace_back(static_cast<std::int64_t>(query.before->second));
  }
  return "j.ended_wall DESC, j.number DESC";
}

Result<AttemptRow> read_attempt(const Statement& row) {
  AttemptRow attempt;
  attempt.id = {row.natural(0), row.natural(1)};
  BERTH_TRY(attempt.where, read_held(row.text(2)));
  attempt.begun_wall = row.integer(3);
  if (row.is_null(4)) return attempt;
  attempt.outcome = outcome_from(row.text(4));
  attempt.ended_wall = row.integer(5);
  attempt.exit_code = row.small(6);
  attempt.signal = row.small(7);
  attempt.gpu_seconds = row.real(8);
  attempt.why = row.text(9);
  attempt.cpu_seconds = row.real(10);
  attempt.max_rss_kib = row.integer(11);
  if (!row.is_null(13)) attempt.run_seconds = row.real(13);
  attempt.suspended_seconds = row.real(14);
  if (const auto steps = row.text(12); !steps.empty())
    attempt.steps = steps_from_json(nlohmann::json::parse(steps, nullptr, false));
  return attempt;
}

}  // namespace

Result<std::unique_ptr<StoreReader>> StoreReader::open(Database database) {
  auto reader = std::make_unique<StoreReader>();
  Database& db = reader->database_ = std::move(database);
  BERTH_TRY(reader->specs_, SpecRows::open(db));
  BERTH_TRY(reader->past_,
            db.prepare(past_query() + "WHERE j.number = ? AND j.outcome IS NOT NULL"));
  BERTH_TRY(reader->attempts_,
            db.prepare("SELECT generation, counter, held, begun_wall, outcome, ended_wall, "
                       "exit_code, signal, gpu_seconds, why, cpu_seconds, max_rss_kib, steps, "
                       "run_seconds, suspended_seconds FROM attempts WHERE job = ? "
                       "ORDER BY generation, counter"));
  BERTH_TRY(reader->by_key_, db.prepare("SELECT number FROM keys WHERE user = ? AND key = ?"));
  BERTH_TRY(reader->usage_,
            db.prepare("SELECT user, \"group\", gpu_seconds FROM usage ORDER BY user, \"group\""));
  BERTH_TRY(reader->ended_,
            db.prepare("SELECT user, \"group\", gpu_seconds, ended_wall FROM attempts "
                       "WHERE outcome IS NOT NULL AND ended_wall >= ? ORDER BY ended_wall"));
  return reader;
}

Result<std::vector<LoggedPass>> StoreReader::engine() {
  const std::lock_guard lock(mutex_);
  BERTH_TRY(Statement rows, database_.prepare("SELECT at, bytes FROM engine ORDER BY pass"));
  std::vector<LoggedPass> passes;
  for (;;) {
    BERTH_TRY(const bool has_row, rows.step());
    if (!has_row) return passes;
    passes.push_back({Time{Duration{rows.integer(0)}}, std::string{rows.blob(1)}});
  }
}

Result<std::optional<PastJob>> StoreReader::past(JobNumber job) {
  const std::lock_guard lock(mutex_);
  past_.bind(job);
  BERTH_TRY(const bool has_row, past_.step());
  if (!has_row) return std::nullopt;
  auto found = read_past(past_, specs_);
  past_.reset();  // an open row would keep the log from being emptied
  specs_.forget();
  if (!found) return tl::unexpected<Error>(std::move(found).error());
  return *std::move(found);
}

Result<std::vector<PastJob>> StoreReader::past_jobs(const PastQuery& query) {
  const std::lock_guard lock(mutex_);
  Conditions conditions = conditions_of(query);
  const std::string_view order = begin_page(conditions, query);
  BERTH_TRY(Statement select,
            database_.prepare(fmt::format("{}{} ORDER BY {} LIMIT {}", past_query(), conditions.sql,
                                          order, std::min(query.limit, kMostRows))));
  conditions.bind(select);
  std::vector<PastJob> found;
  specs_.forget();
  for (;;) {
    BERTH_TRY(const bool has_row, select.step());
    if (!has_row) break;
    BERTH_TRY(PastJob job, read_past(select, specs_));
    found.push_back(std::move(job));
  }
  specs_.forget();
  return found;
}

Result<std::size_t> StoreReader::count_past(const PastQuery& query) {
  const std::lock_guard lock(mutex_);
  const Conditions conditions = conditions_of(query);
  // There is no index by outcome; any other index would look up every row separately.
  const bool is_by_outcome =
      conditions.values.size() == query.outcomes.size() && !query.outcomes.empty();
  BERTH_TRY(Statement count,
            database_.prepare(fmt::format("SELECT count(*) FROM jobs j {}{}",
                                          is_by_outcome ? "NOT INDEXED " : "", conditions.sql)));
  conditions.bind(count);
  BERTH_TRY(const bool has_row, count.step());
  return has_row ? static_cast<std::size_t>(count.natural(0)) : 0;
}

Result<std::vector<AttemptRow>> StoreReader::attempts(JobNumber job) {
  const std::lock_guard lock(mutex_);
  attempts_.bind(job);
  std::vector<AttemptRow> found;
  for (;;) {
    BERTH_TRY(const bool has_row, attempts_.step());
    if (!has_row) break;
    auto attempt = read_attempt(attempts_);
    if (!attempt) {
      attempts_.reset();
      return tl::unexpected<Error>(std::move(attempt).error());
    }
    found.push_back(*std::move(attempt));
  }
  attempts_.reset();
  return found;
}

Result<std::optional<JobNumber>> StoreReader::by_key(const std::string& user,
                                                     const std::string& key) {
  const std::lock_guard lock(mutex_);
  by_key_.bind(std::string_view(user), std::string_view(key));
  BERTH_TRY(const bool has_row, by_key_.step());
  std::optional<JobNumber> found;
  if (has_row) found = by_key_.natural(0);
  by_key_.reset();
  return found;
}

Result<std::set<AttemptId>> StoreReader::started_since(Time since) {
  const std::lock_guard lock(mutex_);
  BERTH_TRY(Statement rows, database_.prepare("SELECT body FROM journal WHERE kind = 'started' "
                                              "AND at >= ?"));
  rows.bind(since.time_since_epoch().count());
  std::set<AttemptId> found;
  for (;;) {
    BERTH_TRY(const bool has_row, rows.step());
    if (!has_row) return found;
    BERTH_TRY(const RecordBody body, decode("started", rows.text(0)));
    if (const auto* started = std::get_if<StartedRecord>(&body)) found.insert(started->attempt);
  }
}

Result<std::vector<Store::Usage>> StoreReader::plain_usage() {
  const std::lock_guard lock(mutex_);
  std::vector<Store::Usage> all;
  usage_.reset();
  for (;;) {
    BERTH_TRY(const bool has_row, usage_.step());
    if (!has_row) break;
    all.push_back({std::string(usage_.text(0)), std::string(usage_.text(1)), usage_.real(2)});
  }
  usage_.reset();
  return all;
}

Result<void> StoreReader::fill(DecayedUsage& usage, double half_life, std::int64_t now_wall) {
  const std::lock_guard lock(mutex_);
  // What ended before this weighs too little to be seen.
  const double oldest =
      std::max(static_cast<double>(now_wall) - DecayedUsage::kSpan * half_life * 1e6, -9e18);
  ended_.bind(static_cast<std::int64_t>(oldest));
  for (;;) {
    BERTH_TRY(const bool has_row, ended_.step());
    if (!has_row) break;
    usage.add(half_life, ended_.integer(3),
              {std::string(ended_.text(0)), std::string(ended_.text(1)), ended_.real(2)});
  }
  ended_.reset();
  return {};
}

}  // namespace berth
