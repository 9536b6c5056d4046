// A training job whose speed is known exactly: a step takes a time and no work, shorter with more
// devices, longer beside another pacer on one of them. It counts its steps in FOLDER/NAME.steps and
// goes on from there, and writes where it is into FOLDER/NAME.at while it trains.
//
//   pacer --folder F --name N --steps N --step-ms X
//         [--gains X]    speed with d devices is 1 + X (d - 1); 1
//         [--beside X]   a step takes so many times as long beside another; 1
//         [--epoch N]    steps of an epoch, whose losses it reports; 0: it reports none
//         [--floor X]    of the losses, which fall from 1 to that as 1 / (1 + epoch)
//         [--cores N]    speed with c cores is min(c, N); 0: cores do not count. FOLDER/NAME.cores
//                        then has the numbers of cores it has had, in order
//         [--phases 1]   while FOLDER/NAME.validate is there it says that it validates, and does
//                        nothing
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "berth_training.h"

namespace {

namespace files = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Who has not come by for so long is suspended, or gone.
constexpr double kAwaySeconds = 0.7;
/// Nobody is late for so long while it runs.
constexpr std::chrono::milliseconds kSuspended{1000};

std::set<int> devices_granted() {
  const char* list = std::getenv("BERTH_DEVICES");
  std::istringstream in(list == nullptr ? "" : list);
  std::set<int> devices;
  for (std::string one; std::getline(in, one, ',');) devices.insert(std::atoi(one.c_str()));
  return devices;
}

int cores_bound() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

class Pacer {
 public:
  explicit Pacer(std::map<std::string, std::string> said)
      : said_(std::move(said)), run_(berth_training::Resizes::Yes) {
    std::ifstream{mine(".steps")} >> step_;
    devices_ = devices_granted();
  }

  int train() {
    const auto steps = static_cast<std::int64_t>(number("--steps", 1));
    const auto epoch = number("--epoch", 0);
    while (step_ < steps) {
      come_by();
      if (number("--phases", 0) > 0) validate();
      const std::chrono::duration<double> takes{step_ms() / 1000};
      sleep_on(takes);
      ++step_;
      berth_training::Report report{.iteration = step_, .batch = 32};
      report.seconds = takes.count();
      if (epoch > 0) {
        const double floor = number("--floor", 0);
        report.epoch = static_cast<double>(step_) / epoch;
        report.loss = floor + (1 - floor) / (1 + *report.epoch);
      }
      run_.report(report);
      if (const auto size = run_.wanted_size()) {
        devices_ = {size->devices.begin(), size->devices.end()};
        come_by();
        run_.resized(*size);
      }
      write(".steps", std::to_string(step_));
      if (run_.should_checkpoint()) run_.checkpointed(step_, mine(".steps"));
      if (run_.should_stop()) return leave(berth_training::kExitCode);
    }
    return leave(0);
  }

 private:
  [[nodiscard]] double number(const std::string& name, double otherwise) const {
    const auto found = said_.find(name);
    return found == said_.end() ? otherwise : std::atof(found->second.c_str());
  }
  [[nodiscard]] std::string mine(const std::string& end) const {
    return said_.at("--folder") + "/" + said_.at("--name") + end;
  }
  /// Whole or not at all: others read it at any time.
  void write(const std::string& end, const std::string& text) const {
    std::ofstream{mine(end + ".new")} << text;
    files::rename(mine(end + ".new"), mine(end));
  }
  void come_by() const {
    std::string text;
    for (const int device : devices_) text += std::to_string(device) + " ";
    write(".at", text);
  }
  /// Steps follow each other by the clock: one that other work on the cores makes late shortens the
  /// next, so that the pace is the same on a busy machine. Who was suspended catches nothing up.
  void sleep_on(std::chrono::duration<double> takes) {
    const auto now = Clock::now();
    const double late = std::chrono::duration<double>(now - due_).count();
    if (now - due_ > kSuspended) due_ = now;
    late_ = std::clamp(late, 0.9 * late_, 1.0);
    due_ += std::chrono::duration_cast<Clock::duration>(takes);
    std::this_thread::sleep_until(due_);
  }
  [[nodiscard]] int leave(int code) const {
    std::error_code ignored;
    files::remove(mine(".at"), ignored);
    return code;
  }
  void validate() {
    if (!files::exists(mine(".validate"))) return;
    run_.begin_validation();
    while (files::exists(mine(".validate")))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    run_.begin_training();
    due_ = Clock::now();
  }
  [[nodiscard]] double speed_of_cores() {
    const double most = number("--cores", 0);
    if (most <= 0) return 1;
    const int cores = cores_bound();
    if (std::exchange(cores_, cores) != cores) {
      history_ += std::to_string(cores) + " ";
      write(".cores", history_);
    }
    return std::min<double>(cores, most);
  }
  [[nodiscard]] bool has_company() const {
    std::error_code ignored;
    for (const auto& entry : files::directory_iterator(said_.at("--folder"), ignored)) {
      if (entry.path().extension() != ".at" || entry.path() == mine(".at")) continue;
      const auto age = files::file_time_type::clock::now() - entry.last_write_time(ignored);
      // As late as I am by the load of the machine, others may be.
      const double away = kAwaySeconds + 4 * late_;
      if (ignored || std::chrono::duration<double>(age).count() > away) continue;
      std::ifstream in(entry.path());
      for (int device = 0; in >> device;) {
        if (devices_.contains(device)) return true;
      }
    }
    return false;
  }
  [[nodiscard]] double step_ms() {
    const double more = devices_.empty() ? 0 : static_cast<double>(devices_.size()) - 1;
    const double alone =
        number("--step-ms", 50) / (1 + number("--gains", 1) * more) / speed_of_cores();
    return has_company() ? alone * number("--beside", 1) : alone;
  }

  const std::map<std::string, std::string> said_;
  berth_training::Run run_;
  std::set<int> devices_;
  std::int64_t step_ = 0;
  Clock::time_point due_ = Clock::now();
  double late_ = 0;  // seconds, of late
  int cores_ = 0;
  std::string history_;
};

}  // namespace

int main(int count, char** words) {
  std::map<std::string, std::string> said;
  for (int i = 1; i + 1 < count; i += 2) said[words[i]] = words[i + 1];
  if (count % 2 == 0 || !said.contains("--folder") || !said.contains("--name")) return 2;
  return Pacer{std::move(said)}.train();
}
