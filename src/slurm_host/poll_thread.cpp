#include "slurm_host/poll_thread.h"

namespace berth {

namespace {
/// What is wanted in one pass comes in several calls: they are waited for.
constexpr std::chrono::milliseconds kGather{20};
}  // namespace

PollThread::PollThread(std::function<void()> turn, std::chrono::milliseconds every)
    : turn_(std::move(turn)), every_(every), thread_([this] { work(); }) {}

PollThread::~PollThread() {
  {
    const std::lock_guard lock{mutex_};
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PollThread::wake() {
  {
    const std::lock_guard lock{mutex_};
    is_woken_ = true;
  }
  changed_.notify_all();
}

void PollThread::work() {
  std::unique_lock lock{mutex_};
  while (!is_stopping_) {
    lock.unlock();
    turn_();
    lock.lock();
    changed_.wait_for(lock, every_, [&] { return is_woken_ || is_stopping_; });
    if (is_woken_) changed_.wait_for(lock, kGather, [&] { return is_stopping_; });
    is_woken_ = false;
  }
}

}  // namespace berth
