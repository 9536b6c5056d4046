#include "apps/step_host.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/draft.h"
#include "client/options.h"
#include "exec/environment.h"
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
    OptionSpec{"detached", 0, Nothing, "", "begins at once and needs no client"},
    OptionSpec{"link", 0, Value, "PORT", "{port} is this one, 0: a free one; its link is kept"},
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

/// A port of the loopback that nobody has now.
Result<std::uint16_t> free_port(std::uint16_t wanted) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(wanted);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (wanted != 0 && !is_port_free(wanted))
    return fail("port " + std::to_string(wanted) + " is in use");
  if (wanted != 0) return wanted;
  if (::bind(socket.get(), plain, length) != 0 || ::getsockname(socket.get(), plain, &length) != 0)
    return fail("there is no free port");
  return ntohs(address.sin_port);
}

/// The words say {port}; whoever may look into the directory finds the link there.
Result<void> put_link(step::SessionOptions& options, std::uint16_t wanted) {
  const auto port = free_port(wanted);
  if (!port) {
    static_cast<void>(put_file(options.directory + "/" + step::kReasonFile, port.error().text()));
    return tl::unexpected<Error>(port.error());
  }
  constexpr std::string_view kPort = "{port}";
  for (std::string& word : options.program.words)
    if (const auto at = word.find(kPort); at != std::string::npos)
      word.replace(at, kPort.size(), std::to_string(*port));
  const std::string token = variable("JUPYTER_TOKEN");
  return put_file(
      options.directory + "/" + step::kLinkFile,
      "http://127.0.0.1:" + std::to_string(*port) + "/" + (token.empty() ? "" : "?token=" + token));
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
  options.needs_client = !parsed.has("detached");
  options.program.words = parsed.operands;
  if (parsed.has("link")) {
    BERTH_TRY(const auto wanted, client::parse_count(parsed.value("link"), 0, 65'535));
    BERTH_TRY_VOID(put_link(options, static_cast<std::uint16_t>(wanted)));
  }
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
