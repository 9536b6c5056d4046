#include "daemon/journal_writer.h"

#include <future>

#include <fmt/format.h>

namespace berth {

namespace {
/// Orders of one commit: beyond that, those who wait longest would wait for everybody.
constexpr std::size_t kMostOrders = 512;
}  // namespace

/// What a library throws over one request is that request's matter.
Result<std::vector<RecordBody>> JournalWriter::ask(WriteOrder& order) const {
  try {
    return order.make(ledger_);
  } catch (const std::exception& error) {
    return fail(fmt::format("something went wrong inside, this is a bug: {}", error.what()));
  }
}

/// An order is refused as a whole by its first record. A later one that cannot follow is our
/// mistake, and the ledger cannot take the ones before it back: that is the end, as a failed commit
/// is.
Result<std::vector<Committed>> JournalWriter::apply(WriteOrder& order) {
  BERTH_TRY(auto bodies, ask(order));
  last_ = std::max(last_, std::max(ledger_.now(), clock_->now()));
  const std::int64_t wall = clock_->wall();
  std::vector<Committed> done;
  done.reserve(bodies.size());
  for (RecordBody& body : bodies) {
    Record record{.at = last_, .wall = wall, .body = std::move(body)};
    auto change = ledger_.apply(record);
    if (!change) {
      is_broken_ = !done.empty();
      return tl::unexpected<Error>(change.error());
    }
    if (const auto appended = store_->append(record, *change); !appended) {
      is_broken_ = true;
      return tl::unexpected<Error>(appended.error());
    }
    done.push_back({std::move(record), *std::move(change)});
  }
  return done;
}

/// Nothing of this batch will ever be durable: whoever waits is told so.
void JournalWriter::refuse(std::span<WriteOrder> orders, const Error& error) {
  for (const WriteOrder& order : orders) {
    if (order.done) order.done(tl::unexpected<Error>(error));
  }
}

Result<void> JournalWriter::write(std::span<WriteOrder> orders) {
  std::vector<Result<std::vector<Committed>>> results;
  results.reserve(orders.size());
  bool anything = false;
  for (WriteOrder& order : orders) {
    results.push_back(apply(order));
    if (is_broken_) {
      Error error = results.back().error();
      refuse(orders, error);
      return tl::unexpected<Error>(std::move(error));
    }
    anything = anything || (results.back() && !results.back()->empty());
  }
  if (anything) {
    if (const auto durable = store_->commit(); !durable) {
      refuse(orders, durable.error());
      return durable;
    }
    for (const auto& result : results) {
      if (result && !result->empty()) publish_(*result);
    }
  }
  for (std::size_t i = 0; i < orders.size(); ++i) {
    if (orders[i].done) orders[i].done(results[i]);
  }
  return {};
}

Result<std::vector<Committed>> JournalWriter::write(std::vector<RecordBody> bodies) {
  Result<std::vector<Committed>> answer;
  WriteOrder order{
      .make = [&](const Ledger&) -> Result<std::vector<RecordBody>> { return std::move(bodies); },
      .done = [&](const Result<std::vector<Committed>>& result) { answer = result; }};
  BERTH_TRY_VOID(write({&order, 1}));
  return answer;
}

JournalThread::JournalThread(JournalWriter& writer, std::function<void(const Error&)> failed)
    : writer_(writer), failed_(std::move(failed)), thread_([this] { work(); }) {}

JournalThread::~JournalThread() { stop(); }

void JournalThread::stop() {
  {
    const std::lock_guard lock{mutex_};
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::size_t JournalThread::in_line() const {
  const std::lock_guard lock{mutex_};
  return urgent_.size() + waiting_.size();
}

bool JournalThread::put(std::vector<WriteOrder>& line, WriteOrder& order) {
  const std::lock_guard lock{mutex_};
  if (is_stopping_ || has_failed_) return false;
  const bool sleeps = urgent_.empty() && waiting_.empty();  // otherwise somebody has woken it
  line.push_back(std::move(order));
  if (sleeps) wake_.notify_one();
  return true;
}

void JournalThread::write_later(WriteOrder order) {
  if (!put(waiting_, order) && order.done) order.done(fail("the scheduler is stopping"));
}

Result<std::vector<Committed>> JournalThread::write(std::vector<RecordBody> bodies) {
  std::promise<Result<std::vector<Committed>>> promise;
  auto answer = promise.get_future();
  WriteOrder order{
      .make = [&](const Ledger&) -> Result<std::vector<RecordBody>> { return std::move(bodies); },
      .done = [&](const Result<std::vector<Committed>>& result) { promise.set_value(result); }};
  if (!put(urgent_, order)) return fail("the scheduler is stopping");
  return answer.get();
}

void JournalThread::work() {
  std::vector<WriteOrder> batch;
  for (;;) {
    {
      std::unique_lock lock{mutex_};
      wake_.wait(lock, [&] { return is_stopping_ || !urgent_.empty() || !waiting_.empty(); });
      if (urgent_.empty() && waiting_.empty()) return;
      batch = std::exchange(urgent_, {});
      const auto end =
          waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMostOrders));
      batch.insert(batch.end(), std::make_move_iterator(waiting_.begin()),
                   std::make_move_iterator(end));
      waiting_.erase(waiting_.begin(), end);
    }
    const auto written = writer_.write(batch);
    batch.clear();
    if (written) continue;
    std::vector<WriteOrder> refused;
    {
      const std::lock_guard lock{mutex_};
      has_failed_ = true;
      refused = std::exchange(urgent_, {});
      refused.insert(refused.end(), std::make_move_iterator(waiting_.begin()),
                     std::make_move_iterator(waiting_.end()));
      waiting_.clear();
    }
    for (const WriteOrder& order : refused) {
      if (order.done) order.done(tl::unexpected<Error>(written.error()));
    }
    failed_(written.error());
    return;
  }
}

}  // namespace berth
