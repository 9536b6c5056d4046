// Trains a small network and talks with Berth about it; see README.md.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "berth_training.h"
#include "checkpoint.h"
#include "loader.h"
#include "network.h"

namespace {

using trainer::Checkpoint;
using trainer::DataOptions;
using trainer::Network;
using trainer::Sample;
using Clock = std::chrono::steady_clock;

constexpr const char* kHelp =
    "trainer: trains a small network on generated data\n"
    "  --epochs N           (10)\n"
    "  --samples N          in an epoch (4096)\n"
    "  --batch N            samples per step (32)\n"
    "  --rate X             learning rate (0.05)\n"
    "  --seed N             (1)\n"
    "  --workers N          threads that prepare data (2)\n"
    "  --loader-work N      rounds of arithmetic per sample (0)\n"
    "  --device-ms X        one device takes so long for a step, without a core; several\n"
    "                       share it (0)\n"
    "  --validate-ms X      after each epoch it validates so long, without a core (0)\n"
    "  --in-place yes|no    goes on with other devices when asked to (yes)\n"
    "  --checkpoint FILE    restored at the start; written when asked to and at the end\n"
    "  --checkpoint-every N steps (0: only when asked to)\n";

struct Options {
  DataOptions data;
  std::int64_t epochs = 10;
  double rate = 0.05;
  double device_ms = 0;
  double validate_ms = 0;
  std::string checkpoint;
  std::int64_t checkpoint_every = 0;
  bool in_place = true;

  [[nodiscard]] std::int64_t steps_per_epoch() const { return data.samples / data.batch; }
  /// Everything that decides what is learned.
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t rate_bits = 0;
    std::memcpy(&rate_bits, &rate, sizeof rate_bits);
    std::uint64_t hash = trainer::mix(data.seed);
    hash = trainer::mix(hash ^ static_cast<std::uint64_t>(data.samples));
    hash = trainer::mix(hash ^ static_cast<std::uint64_t>(data.batch));
    return trainer::mix(hash ^ rate_bits);
  }
};

bool parse(int count, char** words, Options& options) {
  std::map<std::string, std::string> said;
  for (int i = 1; i + 1 < count; i += 2) said[words[i]] = words[i + 1];
  if (count % 2 == 0) return false;
  const auto whole = [&](const char* name, std::int64_t least, auto& into) {
    const auto found = said.find(name);
    if (found == said.end()) return true;
    char* end = nullptr;
    const long long value = std::strtoll(found->second.c_str(), &end, 10);
    const bool good = *end == '\0' && !found->second.empty() && value >= least;
    into = static_cast<std::remove_reference_t<decltype(into)>>(value);
    said.erase(found);
    return good;
  };
  const auto number = [&](const char* name, double& into) {
    const auto found = said.find(name);
    if (found == said.end()) return true;
    char* end = nullptr;
    into = std::strtod(found->second.c_str(), &end);
    const bool good = *end == '\0' && !found->second.empty() && into >= 0;
    said.erase(found);
    return good;
  };
  if (const auto found = said.find("--checkpoint"); found != said.end()) {
    options.checkpoint = found->second;
    said.erase(found);
  }
  if (const auto found = said.find("--in-place"); found != said.end()) {
    options.in_place = found->second == "yes";
    if (!options.in_place && found->second != "no") return false;
    said.erase(found);
  }
  return whole("--epochs", 1, options.epochs) && whole("--samples", 1, options.data.samples) &&
         whole("--batch", 1, options.data.batch) && whole("--seed", 0, options.data.seed) &&
         whole("--workers", 1, options.data.workers) &&
         whole("--loader-work", 0, options.data.work) && number("--rate", options.rate) &&
         number("--device-ms", options.device_ms) && number("--validate-ms", options.validate_ms) &&
         whole("--checkpoint-every", 0, options.checkpoint_every) && said.empty() &&
         options.data.batch <= options.data.samples;
}

/// What the environment grants; one device outside Berth.
std::size_t devices_granted() {
  const char* gpus = std::getenv("BERTH_GPUS");
  const long count = gpus == nullptr ? 1 : std::strtol(gpus, nullptr, 10);
  return count < 1 ? 1 : static_cast<std::size_t>(count);
}

/// The samples [begin, end) of a batch, shared out among the devices: each computes its own part.
void compute(const std::vector<Sample>& batch, std::size_t begin, std::size_t end,
             std::size_t devices, const Network& network, std::vector<Network::Gradient>& gradients,
             std::vector<double>& errors) {
  const auto part_of = [&](std::size_t device) { return begin + (end - begin) * device / devices; };
  const auto work = [&](std::size_t device) {
    for (std::size_t i = part_of(device); i < part_of(device + 1); ++i)
      errors[i] = network.gradient_of(batch[i], gradients[i]);
  };
  std::vector<std::thread> others;
  for (std::size_t device = 1; device < devices; ++device)
    others.emplace_back([&, device] { work(device); });
  work(0);
  for (std::thread& other : others) other.join();
}

/// One step over the batch, a micro-batch at a time; the mean squared error before it.
double train_on(const std::vector<Sample>& batch, int sub_steps, std::size_t devices,
                const Options& options, Network& network) {
  const std::size_t parts =
      std::min<std::size_t>(static_cast<std::size_t>(sub_steps), batch.size());
  std::vector<Network::Gradient> gradients(batch.size());
  std::vector<double> errors(batch.size());
  double error = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = batch.size() * part / parts;
    const std::size_t end = batch.size() * (part + 1) / parts;
    compute(batch, begin, end, devices, network, gradients, errors);
    for (std::size_t i = begin; i < end; ++i) {
      network.add(gradients[i]);
      error += errors[i];
    }
    // A device that computes leaves the cores alone.
    if (options.device_ms > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(
          options.device_ms / static_cast<double>(parts * devices)));
    }
  }
  network.step(options.rate, batch.size());
  return error / static_cast<double>(batch.size());
}

double final_loss(const Options& options, const Network& network) {
  DataOptions data = options.data;
  data.work = 0;
  double sum = 0;
  for (std::int64_t i = 0; i < data.samples; ++i) sum += network.error(make_sample(data, i));
  return sum / static_cast<double>(data.samples);
}

class Training {
 public:
  explicit Training(Options options)
      : options_(std::move(options)),
        berth_(options_.in_place ? berth_training::Resizes::Yes : berth_training::Resizes::No),
        network_(options_.data.seed) {}

  int run() {
    if (!restore()) return 1;
    const std::int64_t end = options_.epochs * options_.steps_per_epoch();
    trainer::Loader loader{options_.data, state_.iteration, end};
    say_devices("begins");
    while (state_.iteration < end) {
      const auto began = Clock::now();
      const double loss = train_on(loader.take(), berth_.sub_steps(), devices_, options_, network_);
      ++state_.iteration;
      berth_.report({.iteration = state_.iteration,
                     .epoch = static_cast<double>(state_.iteration) /
                              static_cast<double>(options_.steps_per_epoch()),
                     .loss = loss,
                     .batch = options_.data.batch,
                     .seconds = std::chrono::duration<double>(Clock::now() - began).count()});
      if (options_.validate_ms > 0 && state_.iteration % options_.steps_per_epoch() == 0) {
        berth_.begin_validation();
        std::this_thread::sleep_for(
            std::chrono::duration<double, std::milli>(options_.validate_ms));
        berth_.begin_training();
      }
      most_sub_steps_ = std::max(most_sub_steps_, berth_.sub_steps());
      resize_if_asked();
      const bool is_due =
          options_.checkpoint_every > 0 && state_.iteration % options_.checkpoint_every == 0;
      if ((is_due || berth_.should_checkpoint()) && !save()) return 1;
      if (berth_.should_stop()) {
        std::printf("stopped after %lld steps\n", static_cast<long long>(state_.iteration));
        return berth_training::kExitCode;
      }
    }
    if (!save()) return 1;
    const double loss = final_loss(options_, network_);
    std::printf("sub-steps %d\nloss %.17g %a\n", most_sub_steps_, loss, loss);
    return 0;
  }

 private:
  void say_devices(const char* what) const {
    std::printf("%s with %zu devices after %lld steps\n", what, devices_,
                static_cast<long long>(state_.iteration));
    std::fflush(stdout);
  }
  /// Between two steps nobody is on any device.
  void resize_if_asked() {
    const auto size = berth_.wanted_size();
    if (!size) return;
    if (size->devices.size() != devices_) {
      devices_ = size->devices.size();
      say_devices("goes on");
    }
    berth_.resized(*size);
  }
  bool restore() {
    state_.settings = options_.fingerprint();
    if (options_.checkpoint.empty()) return true;
    switch (load(options_.checkpoint, state_)) {
      case trainer::Loaded::NotThere: return true;
      case trainer::Loaded::NotOurs:
        std::fprintf(stderr, "trainer: %s is not a checkpoint of this training\n",
                     options_.checkpoint.c_str());
        return false;
      case trainer::Loaded::Yes: break;
    }
    network_.weights = state_.weights;
    std::printf("continues after %lld steps\n", static_cast<long long>(state_.iteration));
    std::fflush(stdout);
    return true;
  }
  bool save() {
    if (options_.checkpoint.empty()) return true;
    state_.weights = network_.weights;
    if (!trainer::save(state_, options_.checkpoint)) {
      std::fprintf(stderr, "trainer: cannot write %s: %s\n", options_.checkpoint.c_str(),
                   std::strerror(errno));
      return false;
    }
    berth_.checkpointed(state_.iteration, options_.checkpoint);
    return true;
  }

  const Options options_;
  berth_training::Run berth_;
  Network network_;
  Checkpoint state_;
  std::size_t devices_ = devices_granted();
  int most_sub_steps_ = 1;
};

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse(count, words, options)) {
    std::fputs(kHelp, stderr);
    return 2;
  }
  return Training{std::move(options)}.run();
}
