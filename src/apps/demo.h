// `berth demo`: what the scheduler does, in about a minute. Starts one of its own, gives it a
// handful of small training jobs, shows the queue until all are over, and sets what happened beside
// what first come, first served would have made of the same jobs.
#pragma once

#include <cstdint>
#include <string>

namespace berth {

struct DemoOptions {
  std::string policy = "sjf";
  std::string trainer;     // program of examples/trainer; empty: a training of our own
  double speed = 1;        // jobs are so many times shorter
  std::int64_t train = 0;  // be one of the jobs: train so many epochs and leave; 0: do not
};

}  // namespace berth
