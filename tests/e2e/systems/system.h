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
  std::string more = {};      // lines of the configuration
  std::string cluster = {};   // a cluster file, instead of slots
  std::string profiles = {};  // a profile file
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
  double gains = 1;   // speed by each further device
  double beside = 1;  // times as slow beside another
  int epoch = 0;      // steps of it; 0: reports no losses
  double floor = 0;   // of the losses
};

class System {
 public:
  using Job = std::uint64_t;
  using Json = nlohmann::json;
  /// Begins it; the test fails if it does not answer.
  explicit System(const SystemOptions& options);
  /// Cancels what it was given: a frozen process dies only once it is thawed.
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  [[nodiscard]] Served& served() noexcept { return served_; }
  /// A training job that saves when it is asked to and goes on from there.
  [[nodiscard]] Json trainer(const std::string& name, const TrainerOptions& options) const;
  [[nodiscard]] Json pacer(const std::string& name, const PacerOptions& options) const;
  /// How many steps a pacer has made.
  [[nodiscard]] int steps(const std::string& name) const;
  /// A script of bash. `$COUNT` is a file of its own for whatever it counts.
  [[nodiscard]] Json script(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::string counted(const std::string& name) const;

  Job submit(const Json& spec);
  /// Submitted, and refused: what was said.
  [[nodiscard]] std::string refusal(const Json& spec);
  [[nodiscard]] Json view(Job job) const { return served_.view_of(job); }
  [[nodiscard]] bool is(Job job, const std::string& state) const {
    return served_.state_of(job) == state;
  }
  /// Waits until it is over.
  Json ended(Job job);
  /// Waits until it is so; the test fails if that takes a minute.
  void until(const std::string& what, const std::function<bool()>& condition);

 private:
  Served served_;
  std::vector<Job> jobs_;
};

[[nodiscard]] double median(std::vector<double> values);

}  // namespace berth::test
