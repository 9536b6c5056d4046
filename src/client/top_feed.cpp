// Two threads beside the screen: one asks for snapshots and carries out actions, one listens to
// events and tells the first that its snapshot is stale. The lock is never held while talking to
// the scheduler.

#include "client/top_feed.h"

#include <chrono>

#include <fmt/format.h>

#include "client/commands.h"
#include "client/sse.h"

namespace berth::client {

namespace {

using namespace std::chrono_literals;
constexpr auto kEvery = 2s;
constexpr auto kAtMost = 150ms;  // a burst of events is one question
constexpr std::size_t kMaxJobs = 2'000;

}  // namespace

// What could be had is shown; the first thing that failed is told.
TopSnapshot ask_for_snapshot(Scheduler& scheduler, const std::string& user) {
  TopSnapshot snapshot;
  snapshot.at = unix_now();
  auto cluster = scheduler.cluster();
  if (!cluster) {
    snapshot.trouble = cluster.error().text();
    return snapshot;
  }
  auto nodes = scheduler.nodes();
  auto jobs = scheduler.jobs({.user = user, .most = kMaxJobs});
  snapshot.cluster = *std::move(cluster);
  if (nodes)
    snapshot.nodes = *std::move(nodes);
  else
    snapshot.trouble = nodes.error().text();
  if (jobs) {
    snapshot.jobs = std::move(jobs->jobs);
    snapshot.jobs_in_all = jobs->total;
  } else {
    snapshot.trouble = jobs.error().text();
  }
  return snapshot;
}

TopFeed::TopFeed(const Endpoint& endpoint, std::string user, std::function<void()> changed)
    : endpoint_(endpoint), user_(std::move(user)), changed_(std::move(changed)) {
  asker_ = std::thread([this] { ask(); });
  listener_ = std::thread([this] { listen(); });
}

TopFeed::~TopFeed() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    // The listener may be blocked in a read; this ends it.
    if (stream_) stream_->interrupt();
  }
  wanted_.notify_all();
  asker_.join();
  listener_.join();
}

TopSnapshot TopFeed::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::string TopFeed::message() const {
  const std::lock_guard lock(mutex_);
  return message_;
}

void TopFeed::act(JobAction action) {
  {
    const std::lock_guard lock(mutex_);
    actions_.push_back(std::move(action));
  }
  wanted_.notify_all();
}

void TopFeed::ask() {
  Scheduler scheduler(endpoint_, 5s);
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    while (!actions_.empty()) {
      JobAction action = std::move(actions_.front());
      actions_.pop_front();
      lock.unlock();
      const auto results = scheduler.act(action);
      std::string text =
          !results ? results.error().text()
          : results->empty()
              ? fmt::format("{}: nothing to do", to_string(action.verb))
              : fmt::format("job {}: {}", results->front().job, results->front().text);
      lock.lock();
      message_ = std::move(text);
    }
    // Before asking: an event that comes during the question means asking again.
    is_stale_ = false;
    lock.unlock();
    TopSnapshot snapshot = ask_for_snapshot(scheduler, user_);
    lock.lock();
    if (snapshot.trouble.empty())
      latest_ = std::move(snapshot);
    else
      latest_.trouble = std::move(snapshot.trouble);  // what was known stays on the screen
    latest_.at = unix_now();
    lock.unlock();
    changed_();
    lock.lock();
    wanted_.wait_for(lock, kAtMost, [&] { return is_over_ || !actions_.empty(); });
    wanted_.wait_for(lock, kEvery, [&] { return is_over_ || is_stale_ || !actions_.empty(); });
  }
}

// Any event will do: what changed is asked for, not derived from events.
void TopFeed::listen() {
  Scheduler scheduler(endpoint_, 5s);
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    lock.unlock();
    auto stream = scheduler.stream("/events");
    lock.lock();
    if (!stream || is_over_) {
      wanted_.wait_for(lock, kEvery, [&] { return is_over_; });
      continue;
    }
    stream_ = *std::move(stream);
    EventReader events;
    while (!is_over_) {
      lock.unlock();
      const auto piece = stream_->next();
      lock.lock();
      if (!piece || piece->empty()) break;
      events.add(*piece);
      while (events.next()) is_stale_ = true;
      if (is_stale_) wanted_.notify_all();
    }
    stream_.reset();
    wanted_.wait_for(lock, kAtMost, [&] { return is_over_; });
  }
}

}  // namespace berth::client
