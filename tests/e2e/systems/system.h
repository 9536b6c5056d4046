// A real `berth serve` on CPU slots under one policy, for a test of what that policy is for. Jobs
// pace themselves, and a test waits for what happens. See README.md.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "e2e/serve/served.h"

namespace berth::test {

struct SystemOptions {
  std::string policy;
  std::vector<std::pair<std::string, std::string>> settings = {};
  int slots = 1;
  std::string cluster = {};             // instead of one node with so many slots
  std::string more = {};                // lines of the configuration
  std::vector<std::string> users = {};  // names that jobs may have beside one's own
  std::string cluster_text = {};        // of a cluster file, instead of slots
  std::string profiles = {};            // of a profile file
};

struct TrainerOptions {
  int epochs = 1;
  int steps = 10;       // of an epoch
  double step_ms = 50;  // without a core
  double rate = 0.05;   // of learning
};

/// A job whose speed is known exactly: see pacer.cpp.
struct PacerOptions {
  int steps = 100;
  double step_ms = 50;
  double gains = 1;     // speed by each further device
  double beside = 1;    // times as slow beside another
  int epoch = 0;        // steps of it; 0: reports no losses
  double floor = 0;     // of the losses
  int cores = 0;        // up to which it gets faster; 0: they do not count
  bool phases = false;  // validates while out/NAME.validate is there
};

class System {
 public:
  using Job = std::uint64_t;
  using Json = nlohmann::json;
  /// Begins it; the test fails if it does not answer.
  explicit System(const SystemOptions& options);
  /// `prepare` writes files into the folder before it begins, and answers more lines of the
  /// configuration.
  System(const SystemOptions& options,
         const std::function<std::string(const TempFolder&)>& prepare);
  /// Cancels what it was given: a frozen process dies only once it is thawed.
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  [[nodiscard]] Served& served() noexcept { return served_; }
  /// A training job that saves when it is asked to and goes on from there.
  [[nodiscard]] Json trainer(const std::string& name, const TrainerOptions& options) const;
  [[nodiscard]] Json pacer(const std::string& name, const PacerOptions& options) const;
  /// How many steps a pacer has made.
  [[nodiscard]] int paces(const std::string& name) const;
  /// A script of bash. `$COUNT` is a file of its own for whatever it counts; `begun` notes in
  /// order() that it runs; `told WORD` is true once the test has said so.
  [[nodiscard]] Json script(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::string counted(const std::string& name) const;
  /// Lines that it has counted.
  [[nodiscard]] int steps(const std::string& name) const;
  /// Names in the order in which their scripts have begun.
  [[nodiscard]] std::string order() const;
  void tell(const std::string& word) const;

  Job submit(const Json& spec);
  /// Submitted, and refused: what was said.
  [[nodiscard]] std::string refusal(const Json& spec);
  [[nodiscard]] Json view(Job job) const { return served_.view_of(job); }
  [[nodiscard]] bool is(Job job, const std::string& state) const {
    return served_.state_of(job) == state;
  }
  /// Waits until it is over.
  Json ended(Job job);
  void cancel(Job job);
  /// What its record says: seconds from its submission to its first start.
  [[nodiscard]] double waited(Job job) const;
  /// `kill -9` of the scheduler, and another life; the test fails if its engine begins anew.
  void restart();
  /// Waits until it is so; the test fails if that takes a minute.
  void until(const std::string& what, const std::function<bool()>& condition);

 private:
  void expect_went_on() const;

  Served served_;
  std::vector<Job> jobs_;
  int restarts_ = 0;
};

/// A script that makes so many steps of 50 ms, one line each, and goes on where it was.
[[nodiscard]] std::string steps_script(int steps);
/// Makes steps until the test says the word.
[[nodiscard]] std::string steps_until(const std::string& word);
/// Whether this machine lets a test have users of its own (SystemOptions::users).
[[nodiscard]] bool can_have_users();

[[nodiscard]] double median(std::vector<double> values);

}  // namespace berth::test
