// `berth slurm watch`: hands the queue back to Slurm when Berth is gone. Runs until it is ended.
#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include <fmt/format.h>

#include "apps/slurm.h"
#include "base/log.h"
#include "base/params.h"
#include "slurm/heartbeat.h"
#include "slurm/setup.h"
#include "slurm/watchdog.h"

namespace berth {

namespace {

using client::OptionSpec;
using client::Takes;
using slurm::Watchdog;

constexpr std::array kWatchOptions{
    OptionSpec{"after", 0, Takes::Value, "TIME",
               "without a sign of life of Berth for so long (default: 10m)", "What"},
    OptionSpec{"heartbeat", 0, Takes::Value, "FILE",
               "Berth's sign of life (default: as setup was told)", "Where"},
    OptionSpec{"conf", 0, Takes::Value, "FILE", "slurm.conf (default: the one slurmctld reads)",
               "Where"},
    OptionSpec{"commands", 0, Takes::Value, "DIR", "where Slurm's commands are (default: PATH)",
               "Where"},
};

constexpr const char* kPart = "slurm-watch";
constexpr std::chrono::milliseconds kLookAgain{60'000};

volatile std::sig_atomic_t was_told_to_end = 0;
void note_end(int) { was_told_to_end = 1; }

std::chrono::milliseconds steady_now() {
  // Not the clock that counts on while the machine sleeps: then Berth sleeps as well.
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

class Watch {
 public:
  Watch(slurm::InstalledCommands& commands, std::chrono::milliseconds after, std::string conf,
        std::string heartbeat)
      : commands_(commands),
        watchdog_(after, kLookAgain),
        conf_(std::move(conf)),
        heartbeat_(std::move(heartbeat)),
        between_(std::clamp(after / 10, std::chrono::milliseconds{200},
                            std::chrono::milliseconds{5'000})) {}

  void run() {
    while (was_told_to_end == 0) {
      look();
      std::this_thread::sleep_for(between_);
    }
    BERTH_LOG(log_, Info, kPart, "ended");
  }
  Logger& log() { return log_; }

 private:
  void look() {
    const auto beat = slurm::last_beat(heartbeat_path());
    switch (watchdog_.look(beat, steady_now())) {
      case Watchdog::Verdict::HandBack: return hand_back(beat);
      case Watchdog::Verdict::Back:
        BERTH_LOG(log_, Info, kPart, "Berth is back");
        return take_back();
      case Watchdog::Verdict::Alive:
        if (is_first_life_) take_back();  // the gate may stand open since before we began
        is_first_life_ = false;
        return;
      case Watchdog::Verdict::Silent:
      case Watchdog::Verdict::Gone: return;
    }
  }

  /// Setup may be run while we watch.
  std::string heartbeat_path() {
    if (!heartbeat_.empty()) return heartbeat_;
    const auto state = slurm::load_state(conf_);
    if (state && *state && !(*state)->heartbeat.empty()) return (*state)->heartbeat;
    return slurm::kDefaultHeartbeat;
  }

  void hand_back(std::optional<std::int64_t> beat) {
    BERTH_LOG(log_, Warn, kPart, "no sign of life of Berth: handing the queue back to Slurm",
              {"heartbeat", heartbeat_path()},
              {"silent_seconds", watchdog_.silence().count() / 1000});
    if (auto state = slurm::load_state(conf_); state && *state) {
      if (const auto opened = slurm::set_qos_gate(commands_, **state, false); !opened)
        BERTH_LOG(log_, Error, kPart, "the QOS gate is not open", {"why", opened.error().text()});
    }
    const auto is_back = [&] {
      const auto now = slurm::last_beat(heartbeat_path());
      return now && now != beat;
    };
    const auto released = slurm::release_all(commands_, {.should_stop = is_back});
    if (!released) {
      BERTH_LOG(log_, Error, kPart, "the queue is not handed back",
                {"why", released.error().text()});
      return;
    }
    for (const std::string& failure : released->failures)
      BERTH_LOG(log_, Warn, kPart, "Slurm refused", {"what", failure});
    BERTH_LOG(log_, Info, kPart, released->was_stopped ? "Berth is back: stopped" : "handed back",
              {"released", released->released}, {"nodes_cleared", released->nodes_cleared},
              {"left_held", released->left_held});
  }

  /// New jobs are held by the script again; a QOS gate that we opened is shut.
  void take_back() {
    auto state = slurm::load_state(conf_);
    if (!state || !*state || !(*state)->handed_back) return;
    if (const auto shut = slurm::set_qos_gate(commands_, **state, true); !shut)
      BERTH_LOG(log_, Error, kPart, "the QOS gate is not shut", {"why", shut.error().text()});
    else
      BERTH_LOG(log_, Info, kPart, "the QOS gate is shut again");
  }

  slurm::InstalledCommands& commands_;
  Watchdog watchdog_;
  const std::string conf_, heartbeat_;
  const std::chrono::milliseconds between_;
  bool is_first_life_ = true;
  Logger log_;
};

Exit run_watch(const client::Parsed& given) {
  auto after = parse_duration(given.has("after") ? given.value("after") : "10m");
  if (!after || *after < std::chrono::seconds(1))
    return complain(
        Exit::Misuse,
        fmt::format("slurm watch: --after: '{}' is no time of at least 1s", given.value("after")));
  slurm::InstalledCommands commands(given.value("commands"), given.value("conf"));
  const auto conf = slurm::find_conf(commands, given.value("conf"));
  if (!conf) return complain(Exit::Failure, conf.error());
  struct sigaction action {};
  action.sa_handler = note_end;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  Watch watch(commands, std::chrono::duration_cast<std::chrono::milliseconds>(*after), *conf,
              given.value("heartbeat"));
  BERTH_LOG(watch.log(), Info, kPart, "watching", {"conf", *conf},
            {"after_seconds", std::chrono::duration_cast<std::chrono::seconds>(*after).count()});
  watch.run();
  return Exit::Success;
}

}  // namespace

const SlurmVerb kSlurmWatch{
    .name = "watch",
    .summary = "hand the queue back to Slurm when Berth has been gone for a while",
    .examples = "berth slurm watch --after 10m",
    .options = kWatchOptions,
    .run = run_watch,
};

}  // namespace berth
