#include "step/attachment.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/boot_clock.h"
#include "base/terminal_text.h"
#include "step/local_socket.h"
#include "step/session_peer.h"
#include "step/terminal.h"

namespace berth::step {

namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr int kGlance = 500;  // milliseconds between looks whether we are in the foreground again

/// Signals as things to read, blocked meanwhile.
class HeardSignals {
 public:
  HeardSignals() {
    sigset_t heard;
    sigemptyset(&heard);
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT})
      sigaddset(&heard, number);
    ::sigprocmask(SIG_BLOCK, &heard, &before_);
    fd_.reset(::signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  ~HeardSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeardSignals(const HeardSignals&) = delete;
  HeardSignals& operator=(const HeardSignals&) = delete;
  HeardSignals(HeardSignals&&) = delete;
  HeardSignals& operator=(HeardSignals&&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::optional<int> next() const {
    signalfd_siginfo what{};
    if (::read(fd_.get(), &what, sizeof what) != sizeof what) return std::nullopt;
    return static_cast<int>(what.ssi_signo);
  }

 private:
  sigset_t before_{};
  Fd fd_;
};

/// Waits for slow readers. False: nobody reads, or nothing can be written.
bool put_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put >= 0) {
      text.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

class Attachment {
 public:
  Attachment(Fd socket, const AttachOptions& options)
      : options_(options), host_(std::move(socket), 0) {
    make_nonblocking(host_.fd());
  }

  AttachEnd run();

 private:
  void greet();
  [[nodiscard]] bool is_watching() const { return options_.input == InputUse::Withheld; }
  [[nodiscard]] bool is_gone(int terminal) const;
  [[nodiscard]] bool can_read_input() const;
  void read_input();
  void hear();
  void obey(const Frame& said);
  void show(int fd, bool& is_open, std::string_view text);
  void tell(const std::string& text) const;
  void take_signal(int number);
  void take_interrupt();
  void finish(AttachEnd end) {
    if (!end_) end_ = std::move(end);
  }
  void leave(int number) { finish({.kind = AttachEnd::Kind::Left, .code = 128 + number}); }

  const AttachOptions& options_;
  SessionPeer host_;
  HeardSignals signals_;
  std::unique_ptr<RawTerminal> raw_;  // while it is on a terminal
  bool is_welcome_ = false;
  bool is_terminal_ = false;  // the program's
  // Asked before it can go away: afterwards nothing tells a terminal that is gone from a pipe.
  const std::array<bool, 3> was_terminal_{::isatty(0) == 1, ::isatty(1) == 1, ::isatty(2) == 1};
  bool input_ended_ = false;
  bool is_output_open_ = true, is_error_open_ = true;
  std::size_t credit_ = 0;
  int interrupts_ = 0;
  std::int64_t interrupted_at_ = 0;
  std::optional<AttachEnd> end_;
};

AttachEnd Attachment::run() {
  greet();
  while (!end_) {
    const bool reads = can_read_input();
    const auto wanted = static_cast<short>(POLLIN | (host_.has_output() ? POLLOUT : 0));
    // A terminal is looked at even if its keys are not wanted: it may go away.
    const int input = reads || was_terminal_[0] ? 0 : -1;
    const auto keys = static_cast<short>(reads ? POLLIN : 0);
    std::array<pollfd, 3> fds{
        {{host_.fd(), wanted, 0}, {signals_.fd(), POLLIN, 0}, {input, keys, 0}}};
    ::poll(fds.data(), fds.size(), reads || input_ended_ ? -1 : kGlance);
    while (const auto number = signals_.next()) take_signal(*number);
    if ((fds[0].revents & ~POLLOUT) != 0) hear();
    if (fds[2].revents != 0 && !end_) reads ? read_input() : leave(SIGHUP);
    if (!host_.flush()) hear();  // its last words may still be there
  }
  raw_.reset();
  return *std::move(end_);
}

void Attachment::greet() {
  const char* term = std::getenv("TERM");
  Hello hello;
  hello.takes_over = options_.takes_over;
  if (!is_watching()) {
    hello.size = window_size(0);
    if (hello.size == WindowSize{}) hello.size = window_size(1);
  }
  if (term != nullptr && ::isatty(1) == 1) hello.term = term;
  host_.send(FrameKind::Hello, payload_of(hello));
  input_ended_ = options_.input != InputUse::PassedOn;
  if (options_.input == InputUse::Ended) host_.send(FrameKind::EndOfInput);
}

/// Whether that stream was a terminal and nobody is at its other end any more.
bool Attachment::is_gone(int terminal) const {
  return was_terminal_[static_cast<std::size_t>(terminal)] && ::isatty(terminal) == 0;
}

/// A process in the background that reads its terminal is stopped.
bool Attachment::can_read_input() const {
  if (input_ended_ || credit_ == 0) return false;
  const pid_t front = ::tcgetpgrp(0);
  return front < 0 || front == ::getpgrp();
}

void Attachment::read_input() {
  std::array<char, 16U << 10U> block{};
  const ssize_t got = ::read(0, block.data(), std::min(block.size(), credit_));
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    // Of a terminal only a key ends the input; an error, or an end after which it is none, means
    // that it is gone.
    if (was_terminal_[0] && (got < 0 || is_gone(0))) return leave(SIGHUP);
    input_ended_ = true;
    return host_.send(FrameKind::EndOfInput);
  }
  credit_ -= static_cast<std::size_t>(got);
  host_.send_all(FrameKind::Input, {block.data(), static_cast<std::size_t>(got)});
}

void Attachment::hear() {
  const bool is_there = host_.receive();
  while (!end_) {
    const auto said = host_.next();
    if (!said) return finish({.kind = AttachEnd::Kind::Lost, .text = said.error().text()});
    if (!*said) break;
    obey(**said);
  }
  if (!is_there) finish({.kind = AttachEnd::Kind::Lost});
}

void Attachment::obey(const Frame& said) {
  switch (said.kind) {
    case FrameKind::Welcome:
      is_welcome_ = true;
      is_terminal_ = welcome_from(said.payload).value_or(Welcome{}).is_terminal;
      // Who only watches keeps the keys, Ctrl-C above all.
      if (is_terminal_ && !is_watching()) raw_ = std::make_unique<RawTerminal>(0);
      return;
    case FrameKind::Refused:
      return finish({.kind = AttachEnd::Kind::Refused, .text = harmless(said.payload)});
    case FrameKind::Output: return show(1, is_output_open_, said.payload);
    case FrameKind::ErrorOutput: return show(2, is_error_open_, said.payload);
    case FrameKind::Credit: credit_ += credit_from(said.payload).value_or(0); return;
    case FrameKind::Notice: return tell(harmless(said.payload));
    case FrameKind::Exit:
      return finish({.kind = AttachEnd::Kind::Exited, .code = byte_from(said.payload).value_or(1)});
    default: return finish({.kind = AttachEnd::Kind::Lost, .text = "it speaks another language"});
  }
}

void Attachment::show(int fd, bool& is_open, std::string_view text) {
  if (!is_open || put_all(fd, text)) return;
  if (is_gone(fd)) return leave(SIGHUP);
  if (is_watching()) return leave(SIGPIPE);
  is_open = false;
  host_.send(FrameKind::OutputClosed, std::string(1, static_cast<char>(fd)));
}

void Attachment::tell(const std::string& text) const {
  const bool is_raw = raw_ && raw_->is_raw();
  const std::string line = options_.program + ": " + text;
  put_all(2, is_raw ? "\r\n" + line + "\r\n" : line + "\n");
}

void Attachment::take_signal(int number) {
  if (number == SIGCONT || number == SIGWINCH) {
    if (number == SIGCONT && raw_) raw_->enter();
    const WindowSize size = window_size(0);
    if (is_terminal_ && !is_watching() && size != WindowSize{})
      host_.send(FrameKind::Resize, payload_of(size));
    return;
  }
  if (is_watching()) return leave(number);
  if (number == SIGINT && !is_terminal_) return take_interrupt();
  // A terminal that is gone, or somebody who wants us gone: the session stays for a while. Without
  // a terminal a signal is meant for the program.
  if (number == SIGHUP || (is_terminal_ && number == SIGTERM)) return leave(number);
  host_.send(FrameKind::Signal, std::string(1, static_cast<char>(number)));
}

void Attachment::take_interrupt() {
  const std::int64_t now = boot_clock_micros();
  interrupts_ = now - interrupted_at_ <= kSecond ? interrupts_ + 1 : 1;
  interrupted_at_ = now;
  if (options_.quits_on_interrupt) ++interrupts_;
  if (interrupts_ == 1) return tell("interrupt (one more within 1 sec to abort)");
  const bool kills = interrupts_ > 2;
  if (kills) tell("forcing termination of " + options_.what);  // of Ctrl-C the step tells itself
  host_.send(FrameKind::Signal, std::string(1, static_cast<char>(kills ? SIGKILL : SIGINT)));
}

}  // namespace

AttachEnd attach(Fd socket, const AttachOptions& options) {
  return Attachment(std::move(socket), options).run();
}

}  // namespace berth::step
