#include "support/sim_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/crash_point.h"
#include "store/checksum.h"

namespace berth::test {

namespace {

// u32 length of what follows the checksum, u64 checksum, i64 at, i64 wall, u8 length of the kind,
// kind, body. Little endian.
constexpr std::size_t kHead = 12;
constexpr std::size_t kFixed = 17;

template <class Word>
void put(std::string& out, Word word) {
  for (std::size_t i = 0; i < sizeof word; ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(word) >> (8 * i) & 0xffU);
}

template <class Word>
Word get(std::string_view bytes, std::size_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < sizeof(Word); ++i)
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return static_cast<Word>(word);
}

/// The entry at the front of these bytes, if it is whole; `length`: of its frame.
std::optional<JournalEntry> entry_at(std::string_view bytes, std::size_t& length) {
  if (bytes.size() < kHead + kFixed) return std::nullopt;
  const std::size_t size = get<std::uint32_t>(bytes, 0);
  if (size < kFixed || size > bytes.size() - kHead) return std::nullopt;
  const auto kind = static_cast<std::size_t>(get<std::uint8_t>(bytes, kHead + 16));
  if (kFixed + kind > size) return std::nullopt;
  length = kHead + size;
  return JournalEntry{.sequence = 0,
                      .at = get<std::int64_t>(bytes, kHead),
                      .wall = get<std::int64_t>(bytes, kHead + 8),
                      .kind = bytes.substr(kHead + kFixed, kind),
                      .body = bytes.substr(kHead + kFixed + kind, size - kFixed - kind)};
}

bool is_asked(const PastQuery& query, const PastJob& past) {
  const JobSpec& spec = *past.job.spec;
  return (!query.user || *query.user == spec.user) &&
         (!query.group || *query.group == spec.group) &&
         (!query.queue || *query.queue == spec.queue) &&
         (!query.name || *query.name == spec.name) &&
         (query.numbers.empty() ||
          std::ranges::find(query.numbers, past.job.number) != query.numbers.end()) &&
         (query.outcomes.empty() ||
          std::ranges::find(query.outcomes, past.outcome) != query.outcomes.end()) &&
         (!query.since_wall || past.ended_wall >= *query.since_wall) &&
         (!query.until_wall || past.ended_wall < *query.until_wall);
}

}  // namespace

void frame(const Record& record, std::uint64_t sequence, std::uint64_t& checksum,
           std::string& out) {
  const std::string body = encode(record.body);
  const JournalEntry entry{.sequence = sequence,
                           .at = record.at.time_since_epoch().count(),
                           .wall = record.wall,
                           .kind = kind_of(record.body),
                           .body = body};
  checksum = chained(checksum, entry);
  put(out, static_cast<std::uint32_t>(kFixed + entry.kind.size() + body.size()));
  put(out, checksum);
  put(out, entry.at);
  put(out, entry.wall);
  put(out, static_cast<std::uint8_t>(entry.kind.size()));
  out += entry.kind;
  out += body;
}

void SimStore::Tables::add(const Record& record, const Ledger::Change& change) {
  if (const auto* submit = std::get_if<SubmitRecord>(&record.body);
      submit && !submit->spec.key.empty())
    keys[{submit->spec.user, submit->spec.key}] = submit->first;
  if (const auto* pass = std::get_if<EngineRecord>(&record.body)) {
    if (pass->begins) engine.clear();
    engine.push_back({record.at, pass->bytes});
  }
  if (const auto* intent = std::get_if<IntentRecord>(&record.body)) {
    AttemptRow row;
    row.id = intent->attempt;
    row.where = intent->where;
    row.begun_wall = record.wall;
    attempts[intent->job][row.id] = row;
  }
  if (const auto* resize = std::get_if<ResizeRecord>(&record.body))
    attempts[resize->job][resize->attempt].where = resize->where;
  if (const auto* end = std::get_if<EndRecord>(&record.body); end && !end->attempt.is_none()) {
    AttemptRow& row = attempts[end->job][end->attempt];
    row.ended_wall = record.wall;
    row.outcome = end->outcome;
    row.exit_code = end->exit_code;
    row.signal = end->signal;
    row.gpu_seconds = end->gpu_seconds;
    row.run_seconds = end->run_seconds;
    row.suspended_seconds = end->suspended_seconds;
    row.why = end->why;
    const JobSpec& spec = change.past ? *change.past->job.spec : *change.live->spec;
    ended.push_back({record.wall, {spec.user, spec.group, end->gpu_seconds}});
  }
  if (change.past) {
    past[change.job] = *change.past;
    by_end[{change.past->ended_wall, change.job}] = change.job;
  }
}

SimStore::SimStore(SimDisk& disk, std::string file)
    : disk_(disk), file_(std::move(file)), checksum_(kFirstChecksum), chain_{kFirstChecksum} {}

Result<void> SimStore::usable() const {
  if (broken_.empty()) return {};
  return fail(fmt::format("the store stopped: {}", broken_));
}

tl::unexpected<Error> SimStore::broken(const std::string& what) {
  broken_ = fmt::format(
      "{}: {}", what, disk_.fault() == DiskFault::Enospc ? "no space left" : "input/output error");
  return fail(broken_);
}

void SimStore::reset() {
  tables_ = {};
  batch_.clear();
  sequence_ = 0;
  checksum_ = kFirstChecksum;
  chain_.assign(1, kFirstChecksum);
  end_ = 0;
}

Result<Ledger> SimStore::recover() {
  BERTH_TRY_VOID(usable());
  reset();
  if (!disk_.exists(file_) && !disk_.create(file_)) return broken("create");
  Ledger ledger;
  const std::string bytes = disk_.read(file_);
  for (std::size_t length = 0; end_ < bytes.size(); end_ += length) {
    const std::string_view rest = std::string_view(bytes).substr(end_);
    auto entry = entry_at(rest, length);
    if (!entry) break;
    entry->sequence = sequence_ + 1;
    const std::uint64_t checksum = chained(checksum_, *entry);
    if (checksum != get<std::uint64_t>(rest, 4)) break;  // nothing behind it can be taken for good
    BERTH_TRY(RecordBody body, decode(entry->kind, entry->body));
    const Record record{Time{Duration{entry->at}}, entry->wall, std::move(body)};
    BERTH_TRY(const auto change, ledger.replay(record));
    tables_.add(record, change);
    ++sequence_;
    checksum_ = checksum;
    chain_.push_back(checksum_);
  }
  dropped_bytes_ = bytes.size() - end_;
  // What was read may not be synced yet, if only the process had died.
  if (!disk_.truncate(file_, end_) || !disk_.sync(file_) || !disk_.sync_directory())
    return broken("recovery");
  return ledger;
}

Result<void> SimStore::append(const Record& record, const Ledger::Change& change) {
  BERTH_TRY_VOID(usable());
  frame_.clear();
  frame(record, sequence_ + 1, checksum_, frame_);
  last_kind_ = kind_of(record.body);
  if (!disk_.write(file_, end_, frame_)) return broken("write");
  end_ += frame_.size();
  ++sequence_;
  chain_.push_back(checksum_);
  batch_.emplace_back(record, change);
  crash_point("store.appended");
  return {};
}

Result<void> SimStore::commit() {
  BERTH_TRY_VOID(usable());
  if (batch_.empty()) return {};
  crash_point("store.committing");
  if (!disk_.sync(file_)) return broken("sync");
  for (const auto& [record, change] : batch_) tables_.add(record, change);
  batch_.clear();
  crash_point("store.committed");
  return {};
}

Result<std::optional<PastJob>> SimStore::past(JobNumber job) {
  BERTH_TRY_VOID(usable());
  const auto found = tables_.past.find(job);
  if (found == tables_.past.end()) return std::nullopt;
  return found->second;
}

Result<std::vector<PastJob>> SimStore::past_jobs(const PastQuery& query) {
  BERTH_TRY_VOID(usable());
  std::vector<PastJob> found;
  if (query.order == PastQuery::Order::Number) {
    auto at = tables_.past.upper_bound(query.after.value_or(0));
    for (; at != tables_.past.end() && found.size() < query.limit; ++at) {
      if (is_asked(query, at->second)) found.push_back(at->second);
    }
    return found;
  }
  auto from = query.before ? tables_.by_end.lower_bound(*query.before) : tables_.by_end.end();
  while (from != tables_.by_end.begin() && found.size() < query.limit) {
    const PastJob& past = tables_.past.at((--from)->second);
    if (is_asked(query, past)) found.push_back(past);
  }
  return found;
}

Result<std::size_t> SimStore::count_past(const PastQuery& query) {
  BERTH_TRY_VOID(usable());
  const auto count = std::ranges::count_if(
      tables_.past, [&](const auto& entry) { return is_asked(query, entry.second); });
  return static_cast<std::size_t>(count);
}

Result<std::vector<AttemptRow>> SimStore::attempts(JobNumber job) {
  BERTH_TRY_VOID(usable());
  std::vector<AttemptRow> found;
  if (const auto of_job = tables_.attempts.find(job); of_job != tables_.attempts.end())
    for (const auto& [id, row] : of_job->second) found.push_back(row);
  return found;
}

Result<std::optional<JobNumber>> SimStore::by_key(const std::string& user, const std::string& key) {
  BERTH_TRY_VOID(usable());
  const auto found = tables_.keys.find({user, key});
  if (found == tables_.keys.end()) return std::nullopt;
  return found->second;
}

Result<std::vector<Store::Usage>> SimStore::usage(std::int64_t now_wall, double half_life) {
  BERTH_TRY_VOID(usable());
  DecayedUsage sums;
  const double kept = std::max(half_life, 0.0);
  sums.open(kept, now_wall);
  for (const auto& [wall, attempt] : tables_.ended) sums.add(kept, wall, attempt);
  return sums.at(kept, now_wall);
}

}  // namespace berth::test
