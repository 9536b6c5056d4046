// A training program as a job of a real hub: started with the environment Berth would give it.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_directory.h"
#include "training/hub.h"

namespace berth::test {

struct Ended {
  int exit = -1;  // -1: killed
  std::string output;
  [[nodiscard]] std::string line(const std::string& prefix) const;  // the first that begins so
};

class Program {
 public:
  using Environment = std::map<std::string, std::string>;
  Program(std::vector<std::string> command, const Environment& environment, std::string output);
  ~Program();  // kills it
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  void signal(int number) const;
  [[nodiscard]] bool is_alive();
  /// Within two minutes; otherwise it is killed.
  [[nodiscard]] Ended wait();

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  std::string output_;
};

/// A hub with one job, number 7, whose attempts it expects.
class OneJob {
 public:
  static constexpr JobNumber kJob = 7;
  OneJob() { open(); }
  void open();
  void close() { hub_.reset(); }
  [[nodiscard]] TrainingHub& hub() { return *hub_; }
  /// Another attempt: what it finds in its environment. Others may no longer speak.
  [[nodiscard]] Program::Environment begin();
  [[nodiscard]] std::string file(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  /// Until what the hub knows fulfils the condition; false after a minute.
  [[nodiscard]] bool wait_until(const std::function<bool(const TrainingFigures&)>& holds);
  [[nodiscard]] bool wait_for_iteration(double iteration) {
    return wait_until(
        [&](const TrainingFigures& figures) { return figures.iterations >= iteration; });
  }

 private:
  TemporaryDirectory folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string token_;
  int attempts_ = 0;
  std::unique_ptr<TrainingHub> hub_;
};

}  // namespace berth::test
