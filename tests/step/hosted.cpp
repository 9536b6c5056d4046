#include "step/hosted.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step/local_socket.h"
#include "step/terminal.h"

namespace berth::step {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kPatience = 30s;

std::optional<int> try_wait(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

bool becomes_true(const std::function<bool()>& question) {
  const auto until = Clock::now() + kPatience;
  while (!question()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

HostProcess::HostProcess(SessionOptions options, const std::string& below) {
  std::string pattern = (std::filesystem::temp_directory_path() / "berth-step-XXXXXX").string();
  root_ = ::mkdtemp(pattern.data());
  directory_ = below.empty() ? root_ : root_ + "/" + below;
  std::filesystem::create_directories(directory_);
  options.directory = directory_;
  if (options.program.file.empty()) options.program.file = options.program.words.front();
  pid_ = ::fork();
  if (pid_ == 0) {
    const auto code = host_session(std::move(options));
    ::_exit(code ? *code : 99);
  }
}

HostProcess::~HostProcess() {
  if (!code_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

Fd HostProcess::connect() const {
  Fd found;
  becomes_true([&] {
    auto connected = connect_at(directory_, kSessionSocket);
    if (connected) found = std::move(*connected);
    return found.is_open();
  });
  return found;
}

std::string HostProcess::reason() const {
  const auto text = get_file(directory_ + "/" + kReasonFile);
  return text && *text ? **text : "";
}

void HostProcess::kill(int number) const { ::kill(pid_, number); }

std::optional<int> HostProcess::exit_code() {
  becomes_true([&] {
    if (!code_) code_ = try_wait(pid_);
    return code_.has_value();
  });
  return code_;
}

FrameClient::FrameClient(Fd socket, const Hello& hello) : socket_(std::move(socket)) {
  say(FrameKind::Hello, payload_of(hello));
}

void FrameClient::say(FrameKind kind, std::string_view payload) { send_raw(frame(kind, payload)); }

void FrameClient::send_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void FrameClient::take(const Frame& said) {
  switch (said.kind) {
    case FrameKind::Welcome: is_welcome = true; break;
    case FrameKind::Refused: refusal = said.payload; break;
    case FrameKind::Output: output += said.payload; break;
    case FrameKind::ErrorOutput: error += said.payload; break;
    case FrameKind::Notice: notices += said.payload; break;
    case FrameKind::Credit: credit += credit_from(said.payload).value_or(0); break;
    case FrameKind::Exit: code = byte_from(said.payload); break;
    default: break;
  }
}

bool FrameClient::hear_until(const std::function<bool()>& enough) {
  const auto until = Clock::now() + kPatience;
  while (!enough()) {
    if (is_gone_ || Clock::now() > until) return false;
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 100) <= 0) continue;
    char block[4096];
    const ssize_t got = ::recv(socket_.get(), block, sizeof block, 0);
    if (got <= 0) {
      is_gone_ = true;
      continue;
    }
    reader_.add({block, static_cast<std::size_t>(got)});
    while (true) {
      const auto next = reader_.next();
      if (!next || !*next) break;
      take(**next);
    }
  }
  return true;
}

TerminalClient::TerminalClient(WindowSize size, const std::function<int()>& body) {
  winsize window{};
  window.ws_row = size.rows;
  window.ws_col = size.columns;
  int ours = -1;
  pid_ = ::forkpty(&ours, nullptr, nullptr, &window);
  if (pid_ == 0) {
    ::setenv("TERM", "vt100", 1);
    ::_exit(body());
  }
  terminal_.reset(ours);
  make_nonblocking(ours);
}

TerminalClient::~TerminalClient() {
  if (code_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void TerminalClient::type(std::string_view keys) const {
  static_cast<void>(write_all(terminal_.get(), keys));
}

void TerminalClient::resize(WindowSize size) const { set_window_size(terminal_.get(), size); }

void TerminalClient::kill(int number) const { ::kill(pid_, number); }

void TerminalClient::read_screen() {
  char block[4096];
  while (true) {
    const ssize_t got = ::read(terminal_.get(), block, sizeof block);
    if (got <= 0) return;
    screen_.append(block, static_cast<std::size_t>(got));
  }
}

bool TerminalClient::shows(const std::string& text) {
  return becomes_true([&] {
    read_screen();
    return screen_.find(text) != std::string::npos;
  });
}

bool TerminalClient::is_raw() const {
  termios now{};
  return ::tcgetattr(terminal_.get(), &now) == 0 && (now.c_lflag & ICANON) == 0;
}

std::optional<int> TerminalClient::exit_code() {
  becomes_true([&] {
    read_screen();  // one that cannot write does not end
    if (!code_) code_ = try_wait(pid_);
    return code_.has_value();
  });
  read_screen();
  return code_;
}

}  // namespace berth::step
