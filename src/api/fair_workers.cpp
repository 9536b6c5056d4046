#include "api/fair_workers.h"

#include <algorithm>

namespace berth::api {

FairWorkers::FairWorkers(std::size_t threads)
    : most_of_one_(std::max<std::size_t>(1, threads / 2)) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(Right::Common); });
  threads_.emplace_back([this] { work(Right::Admin); });
}

void FairWorkers::post(const std::string& name, Right right, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    Line& line = lines_[name];
    line.right = right;
    line.waiting.push_back(std::move(work));
  }
  has_work_.notify_all();  // one alone might be a thread that may not take it
}

/// Whoever has waited longest for its turn. There are as many lines as people ask at this moment.
std::map<std::string, FairWorkers::Line>::iterator FairWorkers::next(Right right) {
  auto best = lines_.end();
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    const bool is_mine = right == Right::Common || line->second.right == Right::Admin;
    // The admins' own thread is beyond what one name may have of the others.
    const std::size_t most = most_of_one_ + (right == Right::Admin ? 1 : 0);
    if (!is_mine || line->second.waiting.empty() || line->second.running >= most) continue;
    if (best == lines_.end() || line->second.served < best->second.served) best = line;
  }
  return best;
}

void FairWorkers::work(Right right) {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto line = lines_.end();
    has_work_.wait(lock, [&] { return is_over_ || (line = next(right)) != lines_.end(); });
    if (is_over_) return;
    std::function<void()> task = std::move(line->second.waiting.front());
    line->second.waiting.pop_front();
    line->second.served = ++turns_;
    ++line->second.running;
    lock.unlock();
    task();
    task = nullptr;  // with all it holds, before others wait for the lock
    lock.lock();
    --line->second.running;
    if (line->second.waiting.empty() && line->second.running == 0) {
      lines_.erase(line);
    } else {
      has_work_.notify_all();
    }
  }
}

void FairWorkers::join() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  lines_.clear();
}

}  // namespace berth::api
