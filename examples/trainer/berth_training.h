// Talks with the Berth scheduler from C++ training code: one header, no dependencies, no threads.
//
//   berth_training::Run run;                       // from the environment; outside Berth a no-op
//   for (...) {
//     ... one iteration, its batch split into run.sub_steps() parts ...
//     run.report({.iteration = i, .loss = loss, .batch = 32, .seconds = seconds});
//     if (run.should_checkpoint()) { ... save ...; run.checkpointed(i, path); }
//     if (run.should_stop()) return berth_training::kExitCode;
//   }
//
// Code that can go on with other devices makes its run with Resizes::Yes and asks, between two
// iterations, whether run.wanted_size() is there: it leaves the devices that are not named, takes
// the others and says run.resized(size), or run.cannot_resize(size) to be stopped and started anew.
//
// Nothing here blocks or fails: while the scheduler is away reports are lost, and a new connection
// is tried now and then. SIGTERM, the warning before a preemption, is a request to save and stop.
// The protocol is described in docs/formats/training-protocol.md.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth_training {

inline constexpr int kExitCode = 143;  // stopped, not done

struct Report {
  std::int64_t iteration = 0;  // done, over all attempts
  std::optional<double> epoch{};
  std::optional<double> loss{};
  std::int64_t batch = 0;  // samples per iteration
  double seconds = 0;      // this iteration took
};

enum class Resizes { No, Yes };

/// Devices that the job is to run on, numbered as in CUDA_VISIBLE_DEVICES.
struct Size {
  std::int64_t id = 0;
  std::vector<int> devices{};
  std::vector<int> cores{};  // its processes are bound to; empty: any
};

namespace detail {

inline volatile std::sig_atomic_t warned = 0;
inline void on_warning(int) { warned = 1; }

/// The number after "key": in one flat JSON object as the scheduler writes them.
inline std::optional<double> number(std::string_view line, std::string_view key) {
  const std::string quoted = "\"" + std::string(key) + "\":";
  const std::size_t found = line.find(quoted);
  if (found == std::string_view::npos) return std::nullopt;
  const std::string rest(line.substr(found + quoted.size(), 32));
  char* end = nullptr;
  const double value = std::strtod(rest.c_str(), &end);
  if (end == rest.c_str()) return std::nullopt;
  return value;
}

/// The whole numbers of "key":[...].
inline std::vector<int> numbers(std::string_view line, std::string_view key) {
  std::vector<int> all;
  const std::string quoted = "\"" + std::string(key) + "\":[";
  const std::size_t found = line.find(quoted);
  if (found == std::string_view::npos) return all;
  const std::size_t begin = found + quoted.size();
  const std::string list(line.substr(begin, line.find(']', begin) - begin));
  for (const char* at = list.c_str(); *at != '\0';) {
    char* end = nullptr;
    all.push_back(static_cast<int>(std::strtol(at, &end, 10)));
    if (end == at) return {};
    at = *end == ',' ? end + 1 : end;
  }
  return all;
}

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

inline std::string text_of(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

inline const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace detail

class Run {
 public:
  explicit Run(Resizes resizes = Resizes::No) : resizes_(resizes == Resizes::Yes) {
    if (*detail::environment("BERTH_JOB_ID") == '\0') return;
    struct sigaction action {};
    action.sa_handler = detail::on_warning;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGTERM, &action, nullptr);
    path_ = detail::environment("BERTH_TRAINING_SOCKET");
    connect();
  }
  ~Run() {
    if (fd_ < 0) return;
    flush(true);
    send_line("{\"type\":\"bye\"}");
    disconnect();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Cheap: sends at most ten times a second and hears what was said meanwhile.
  void report(const Report& report) {
    if (path_.empty()) return;
    const double seconds = unsent_.seconds + report.seconds;
    unsent_ = report;
    unsent_.seconds = seconds;
    has_unsent_ = true;
    flush(false);
  }
  void checkpointed(std::int64_t iteration, const std::string& path) {
    wants_checkpoint_ = false;
    if (path_.empty()) return;
    flush(true);
    send_line("{\"type\":\"checkpointed\",\"iteration\":" + std::to_string(iteration) +
              ",\"path\":" + detail::quoted(path) + "}");
  }
  /// The code validates, or trains again: cores may go where they are needed meanwhile.
  void begin_validation() { say_phase("validation"); }
  void begin_training() { say_phase("training"); }
  [[nodiscard]] bool should_checkpoint() const { return wants_checkpoint_ || should_stop(); }
  [[nodiscard]] bool should_stop() const { return wants_stop_ || detail::warned != 0; }
  /// Into how many parts a batch is to be split; their gradients add up.
  [[nodiscard]] int sub_steps() const { return sub_steps_; }
  /// The most device memory this process may have allocated, for its allocator; 0: no limit.
  [[nodiscard]] int memory_mib() const { return memory_mib_; }
  /// On what the job is to run from now on, if the scheduler has asked; until it is answered.
  [[nodiscard]] const std::optional<Size>& wanted_size() const { return wanted_size_; }
  /// Every process of the job has left the devices that are not named.
  void resized(const Size& size) { answer_size(size, "true"); }
  void cannot_resize(const Size& size) { answer_size(size, "false"); }
  [[nodiscard]] bool is_connected() const { return fd_ >= 0; }

 private:
  using Clock = std::chrono::steady_clock;

  void say_phase(const char* phase) {
    if (path_.empty()) return;
    flush(true);
    phase_ = phase;
    send_phase();
  }
  void send_phase() { send_line("{\"type\":\"phase\",\"phase\":\"" + phase_ + "\"}"); }

  void connect() {
    const auto now = Clock::now();
    if (path_.empty() || fd_ >= 0 || now < next_try_) return;
    next_try_ = now + pause_;
    pause_ = std::min<Clock::duration>(2 * pause_, std::chrono::seconds{30});
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) return;
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return disconnect();
    const char* rank = detail::environment("RANK");
    send_line(std::string("{\"type\":\"hello\",\"v\":1,\"job\":") +
              std::to_string(std::strtoull(detail::environment("BERTH_JOB_ID"), nullptr, 10)) +
              ",\"token\":" + detail::quoted(detail::environment("BERTH_TRAINING_TOKEN")) +
              ",\"rank\":" + std::to_string(std::strtoul(rank, nullptr, 10)) +
              (resizes_ ? ",\"resizes\":true" : "") + ",\"sdk\":\"c++/1\"}");
    if (!phase_.empty()) send_phase();  // it may have changed while nobody heard
  }
  void disconnect() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    heard_.clear();
  }

  void answer_size(const Size& size, const char* done) {
    const std::int64_t id = size.id;  // it may be our own that we forget
    wanted_size_.reset();
    send_line("{\"type\":\"resized\",\"id\":" + std::to_string(id) + ",\"done\":" + done + "}");
  }

  void flush(bool now) {
    const auto time = Clock::now();
    if (!now && time < next_report_) return;
    next_report_ = time + std::chrono::milliseconds{100};
    connect();
    hear();
    if (!has_unsent_ || fd_ < 0) return;
    has_unsent_ = false;
    std::string line = "{\"type\":\"report\",\"iteration\":" + std::to_string(unsent_.iteration) +
                       ",\"batch\":" + std::to_string(unsent_.batch) +
                       ",\"seconds\":" + detail::text_of(unsent_.seconds) +
                       ",\"sub_steps\":" + std::to_string(sub_steps_);
    if (unsent_.epoch) line += ",\"epoch\":" + detail::text_of(*unsent_.epoch);
    if (unsent_.loss && std::isfinite(*unsent_.loss))
      line += ",\"loss\":" + detail::text_of(*unsent_.loss);
    unsent_.seconds = 0;
    send_line(line + "}");
  }

  /// A socket that takes only half of a line is closed: the rest would have to wait, and we do not.
  void send_line(const std::string& line) {
    if (fd_ < 0) return;
    const std::string text = line + "\n";
    const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != static_cast<ssize_t>(text.size())) disconnect();
  }

  void hear() {
    char bytes[4096];
    while (fd_ >= 0) {
      const ssize_t got = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (got <= 0) return disconnect();
      heard_.append(bytes, static_cast<std::size_t>(got));
      if (heard_.size() > 65'536) return disconnect();
    }
    for (std::size_t end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
      obey(std::string_view(heard_).substr(0, end));
      heard_.erase(0, end + 1);
    }
  }

  void obey(std::string_view line) {
    const auto is = [&](const char* type) {
      return line.find("\"type\":\"" + std::string(type) + "\"") != std::string_view::npos;
    };
    if (is("welcome")) {
      pause_ = kFirstPause;
    } else if (is("terms")) {
      sub_steps_ = std::max(1, static_cast<int>(detail::number(line, "sub_steps").value_or(1)));
      memory_mib_ = std::max(0, static_cast<int>(detail::number(line, "memory_mib").value_or(0)));
    } else if (is("checkpoint")) {
      wants_checkpoint_ = true;
      wants_stop_ = wants_stop_ || line.find("\"stop\":true") != std::string_view::npos;
    } else if (is("resize") && resizes_) {
      Size size{.id = static_cast<std::int64_t>(detail::number(line, "id").value_or(-1)),
                .devices = detail::numbers(line, "devices"),
                .cores = detail::numbers(line, "cores")};
      if (size.id >= 0 && !size.devices.empty()) wanted_size_ = std::move(size);
    }
  }

  static constexpr Clock::duration kFirstPause = std::chrono::milliseconds{200};
  const bool resizes_;
  std::optional<Size> wanted_size_;
  std::string path_;
  int fd_ = -1;
  std::string heard_;
  std::string phase_;  // as it was last said
  Report unsent_;
  bool has_unsent_ = false;
  bool wants_checkpoint_ = false;
  bool wants_stop_ = false;
  int sub_steps_ = 1;
  int memory_mib_ = 0;
  Clock::time_point next_report_{};
  Clock::time_point next_try_{};
  Clock::duration pause_ = kFirstPause;
};

}  // namespace berth_training
