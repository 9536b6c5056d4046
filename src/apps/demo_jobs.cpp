#include "apps/demo_jobs.h"

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "base/rng.h"

namespace berth {

namespace {

// An epoch is ten steps of 50 ms: half a second.
constexpr int kSamples = 320, kBatch = 32, kDeviceMillis = 50;
constexpr double kEpochSeconds = 1e-3 * kDeviceMillis * kSamples / kBatch;
constexpr std::size_t kInputs = 8, kHidden = 16;

constexpr std::array<DemoJob, 10> kJobs{{{"large-a", 2, 0.0, 24},
                                         {"large-b", 2, 0.5, 16},
                                         {"whole-machine", 4, 1.0, 10},
                                         {"small-a", 1, 1.5, 3},
                                         {"medium-a", 1, 2.0, 6},
                                         {"medium-b", 2, 3.0, 8},
                                         {"sweep-1", 1, 4.0, 4},
                                         {"sweep-2", 1, 4.5, 4},
                                         {"medium-c", 3, 6.0, 8},
                                         {"small-b", 1, 8.0, 2}}};

double uniform(Rng& rng) { return 2 * rng.uniform() - 1; }

/// One hidden layer with tanh.
class SmallNetwork {
 public:
  explicit SmallNetwork(Rng& rng) {
    for (auto& row : first_)
      for (double& weight : row) weight = uniform(rng) / std::sqrt(double{kInputs});
    for (double& weight : second_) weight = uniform(rng) / std::sqrt(double{kHidden});
  }
  using Input = std::array<double, kInputs>;

  /// One step down the gradient of this sample's squared error; the error before it.
  double learn(const Input& input, double wanted, double rate) {
    std::array<double, kHidden> hidden{};
    double answer = 0;
    for (std::size_t h = 0; h < kHidden; ++h) {
      for (std::size_t i = 0; i < kInputs; ++i) hidden[h] += first_[h][i] * input[i];
      hidden[h] = std::tanh(hidden[h]);
      answer += second_[h] * hidden[h];
    }
    const double off = answer - wanted;
    for (std::size_t h = 0; h < kHidden; ++h) {
      const double back = off * second_[h] * (1 - hidden[h] * hidden[h]);
      second_[h] -= rate * off * hidden[h];
      for (std::size_t i = 0; i < kInputs; ++i) first_[h][i] -= rate * back * input[i];
    }
    return off * off;
  }

 private:
  std::array<Input, kHidden> first_{};
  std::array<double, kHidden> second_{};
};

}  // namespace

std::span<const DemoJob> demo_jobs() { return kJobs; }

JobSpec demo_spec(const DemoJob& job, const DemoOptions& options, const std::string& directory) {
  const double seconds = job.seconds / options.speed;
  const auto epochs = std::max<std::int64_t>(1, std::llround(seconds / kEpochSeconds));
  JobSpec spec;
  spec.name = job.name;
  spec.gpus = job.gpus;
  spec.workdir = directory;
  spec.output = directory + "/%x.out";
  spec.estimate = std::max<std::int64_t>(1, std::llround(seconds));
  spec.grace_seconds = 1;
  if (options.trainer.empty()) {
    spec.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "demo", "--train",
                    std::to_string(epochs)};
  } else {
    spec.command = {
        std::filesystem::absolute(options.trainer).string(),  // jobs have their own directory
        "--epochs",
        std::to_string(epochs),
        "--samples",
        std::to_string(kSamples),
        "--batch",
        std::to_string(kBatch),
        "--device-ms",
        std::to_string(kDeviceMillis),
        "--workers",
        "1"};
  }
  return spec;
}

double demo_training(std::int64_t epochs) {
  constexpr double kRate = 0.05;
  Rng rng{1};
  SmallNetwork network{rng};
  double error = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    error = 0;
    for (int sample = 0; sample < kSamples; ++sample) {
      SmallNetwork::Input input{};
      for (double& value : input) value = uniform(rng);
      error += network.learn(input, std::sin(2 * input[0]) + input[1] * input[2], kRate);
      if (sample % kBatch == kBatch - 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(kDeviceMillis));
    }
  }
  return error / kSamples;
}

}  // namespace berth
