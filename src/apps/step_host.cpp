#include "apps/step_host.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include <unistd.h>

#include "client/draft.h"
#include "client/options.h"
#include "exec/gpu_energy.h"
#include "model/step.h"
#include "step/join_request.h"
#include "step/session.h"

namespace berth {

namespace {

using client::OptionSpec;
using client::Parsed;
using enum client::Takes;

constexpr int kMisuse = 2;
constexpr const char* kOwnProgram = "/proc/self/exe";  // also if its file was replaced meanwhile
constexpr double kBusyGpu = 0.01;

constexpr std::array kOptions{
    OptionSpec{"pty", 0, Nothing, "", "on a pseudo-terminal"},
    OptionSpec{"as", 0, Value, "NAME", "runs this program under this name"},
    OptionSpec{"join", 0, Value, "N", "as the request of this number says"},
    OptionSpec{"hold", 0, Nothing, "", "only waits: the job is held for others to step into"},
    OptionSpec{"wait", 0, Value, "SECONDS", "for the first client (default 60)"},
    OptionSpec{"grace", 0, Value, "SECONDS", "without a client (default 300)"},
    OptionSpec{"idle", 0, Value, "SECONDS", "unused (default: the limit of the job's queue)"},
};

int complain(const std::string& text) {
  std::fprintf(stderr, "berth step-host: %s\n", text.c_str());
  return kMisuse;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// An option, else a variable, else as it is.
Result<void> take_seconds(const Parsed& parsed, std::string_view option, const char* name,
                          std::int64_t& seconds) {
  std::string text = parsed.value(option);
  if (text.empty()) text = variable(name);
  if (text.empty()) return {};
  const auto value = client::parse_count(text, 0, 1'000'000'000);
  if (!value) return fail(std::string(name) + ": " + value.error().text());
  seconds = *value;
  return {};
}

/// Whether a device of this job computes, where its driver says so.
std::function<bool()> gpu_watch() {
  std::vector<std::size_t> devices;
  std::string number;
  for (const char c : variable("BERTH_DEVICES") + ",") {
    if (c >= '0' && c <= '9') {
      number += c;
    } else if (!number.empty() && number.size() < 6) {
      devices.push_back(std::stoul(number));
      number.clear();
    }
  }
  const std::string library = variable("BERTH_NVML");
  auto driver = std::make_shared<GpuEnergy>(library.empty() ? "libnvidia-ml.so.1" : library);
  if (devices.empty() || driver->size() == 0) return {};
  return [driver, devices] {
    const auto busy = driver->busy();
    return std::ranges::any_of(devices, [&](std::size_t device) {
      return device < busy.size() && busy[device].value_or(0) >= kBusyGpu;
    });
  };
}

Result<void> take_request(step::SessionOptions& options, const std::string& text) {
  BERTH_TRY(const auto number, client::parse_count(text, 1, step::kMaxJoin));
  const auto join = static_cast<std::uint32_t>(number);
  BERTH_TRY(auto request, step::take_join(options.directory, join));
  options.socket = step::join_socket(join);
  options.is_whole_job = false;
  options.program.on_terminal = request.on_terminal;
  options.program.words = std::move(request.words);
  options.program.file = request.is_srun ? kOwnProgram : options.program.words.front();
  if (!request.workdir.empty() && ::chdir(request.workdir.c_str()) != 0)
    return fail(request.workdir + ": cannot be entered");
  return {};
}

Result<step::SessionOptions> options_from(const Parsed& parsed) {
  step::SessionOptions options;
  options.directory = variable(kStepsVariable);
  if (options.directory.empty()) return fail("runs inside a job only");
  BERTH_TRY_VOID(take_seconds(parsed, "wait", "BERTH_ATTACH_WAIT", options.first_wait_seconds));
  BERTH_TRY_VOID(take_seconds(parsed, "grace", "BERTH_SESSION_GRACE", options.grace_seconds));
  if (parsed.has("join")) {
    BERTH_TRY_VOID(take_request(options, parsed.value("join")));
    return options;
  }
  BERTH_TRY_VOID(take_seconds(parsed, "idle", "BERTH_IDLE_LIMIT", options.idle_seconds));
  if (options.idle_seconds > 0) options.are_gpus_busy = gpu_watch();
  if (parsed.operands.empty()) return fail("which program?");
  options.program.on_terminal = parsed.has("pty");
  options.program.words = parsed.operands;
  options.program.file = parsed.operands.front();
  if (parsed.has("as")) {
    options.program.file = kOwnProgram;
    options.program.words.insert(options.program.words.begin(), parsed.value("as"));
  }
  return options;
}

}  // namespace

int run_step_host(std::span<const std::string> words) {
  const Parsed parsed = client::parse_options(kOptions, words, client::OperandOrder::Leading);
  if (!parsed.faults.empty()) return complain(parsed.faults.front().text);
  if (parsed.has("hold")) {
    while (true) ::pause();
  }
  auto options = options_from(parsed);
  if (!options) return complain(options.error().text());
  const auto code = step::host_session(*std::move(options));
  if (!code) return complain(code.error().text());
  return *code;
}

}  // namespace berth
