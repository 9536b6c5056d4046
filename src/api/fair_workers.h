// Threads for questions that wait for a disk or a pass. Who asks much waits behind itself: names
// take turns, one name has at most half of the threads, and a thread of their own serves admins
// alone, so that somebody can always look and act. Any thread may post.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace berth::api {

class FairWorkers {
 public:
  enum class Right : std::uint8_t { Common, Admin };
  explicit FairWorkers(std::size_t threads);
  ~FairWorkers() { join(); }
  FairWorkers(const FairWorkers&) = delete;
  FairWorkers& operator=(const FairWorkers&) = delete;

  void post(const std::string& name, Right right, std::function<void()> work);
  /// Ends what is under way; what has not begun never does.
  void join();

 private:
  struct Line {
    std::deque<std::function<void()>> waiting;
    std::size_t running = 0;
    Right right = Right::Common;
    std::uint64_t served = 0;  // when it last had its turn
  };
  void work(Right right);
  [[nodiscard]] std::map<std::string, Line>::iterator next(Right right);

  const std::size_t most_of_one_;
  std::mutex mutex_;  // of what follows
  std::condition_variable has_work_;
  std::map<std::string, Line> lines_;
  std::uint64_t turns_ = 0;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::api
