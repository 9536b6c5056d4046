#include "step/session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/boot_clock.h"
#include "step/idle_watch.h"
#include "step/kept_output.h"
#include "step/local_socket.h"
#include "step/process_use.h"
#include "step/session_peer.h"

namespace berth::step {

namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kGreetingTime = 10 * kSecond;  // from connecting to Hello
constexpr std::int64_t kFarewellTime = 5 * kSecond;   // for a client to take the last output
constexpr std::int64_t kQuietPause = kSecond / 5;     // of a terminal that nobody has open
constexpr std::uint32_t kCreditStep = 16U << 10U;
constexpr int kFailed = 1;

/// "90 s", "12 min", "2 h": for people.
std::string span_text(std::int64_t micros) {
  const std::int64_t seconds = (micros + kSecond / 2) / kSecond;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7'200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h", seconds / 3'600);
}

class Session {
 public:
  explicit Session(SessionOptions options)
      : options_(std::move(options)),
        idle_(options_.idle_seconds * kSecond, boot_clock_micros()),
        kept_(kKeptOutput) {}

  Result<int> run();

 private:
  [[nodiscard]] Result<void> open();
  [[nodiscard]] std::vector<pollfd> awaited() const;
  [[nodiscard]] int timeout() const;
  void handle(const std::vector<pollfd>& ready);
  void take_signals();
  void accept_client();
  void greet();
  void attach(const Hello& hello);
  void begin(const Hello& hello);
  void detach();
  void hear();
  void obey(const Frame& said);
  void pass_input();
  void pass_output(int fd, FrameKind kind);
  void give_credit(std::size_t bytes);
  void tell(const std::string& text);
  void watch_clock();
  void watch_idle();
  void end(const std::string& why);
  void note_program_end();
  void put_reason() const;
  void leave(int code) {
    if (!code_) code_ = code;
  }
  [[nodiscard]] bool is_over() const {
    return code_ && (!client_ || !client_->has_output() || boot_clock_micros() >= farewell_at_);
  }

  const SessionOptions options_;
  Fd listener_, signals_;
  std::optional<HostedProgram> program_;
  std::optional<SessionPeer> client_, newcomer_;
  IdleWatch idle_;
  CpuMeter cpu_;
  KeptOutput kept_;
  std::string input_;  // for the program
  bool input_ends_ = false;
  std::uint32_t consumed_ = 0;    // input since the last credit
  std::int64_t alone_until_ = 0;  // without a client; then it ends
  std::int64_t kill_at_ = 0;      // 0: it was not hung up
  std::int64_t farewell_at_ = 0;  // of a program that is over
  std::int64_t quiet_until_ = 0;  // its terminal has nobody on the other side
  std::string reason_;            // why we ended it
  std::optional<int> code_;
};

Result<void> Session::open() {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t heard;
  sigemptyset(&heard);
  for (const int number : {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT}) sigaddset(&heard, number);
  signals_.reset(::signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_.is_open()) return fail_by_errno("hear signals");
  BERTH_TRY(listener_, listen_at(options_.directory, options_.socket));
  alone_until_ = boot_clock_micros() + options_.first_wait_seconds * kSecond;
  return {};
}

Result<int> Session::run() {
  BERTH_TRY_VOID(open());
  if (!options_.needs_client) begin({});
  while (!is_over()) {
    std::vector<pollfd> fds = awaited();
    ::poll(fds.data(), fds.size(), timeout());
    handle(fds);
    watch_clock();
    if (client_ && !client_->flush()) detach();
    if (newcomer_ && !newcomer_->flush()) newcomer_.reset();
  }
  remove_at(options_.directory, options_.socket);
  if (options_.is_whole_job && !reason_.empty()) put_reason();
  if (program_ && kill_at_ != 0) program_->kill_all();  // what it left behind was told to go
  return *code_;
}

std::vector<pollfd> Session::awaited() const {
  std::vector<pollfd> fds{{listener_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  const auto add = [&](int fd, bool reads, bool writes) {
    const auto events = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    if (fd >= 0 && events != 0) fds.push_back({fd, events, 0});
  };
  if (client_) add(client_->fd(), true, client_->has_output());
  if (newcomer_) add(newcomer_->fd(), true, newcomer_->has_output());
  if (!program_ || code_) return fds;
  const bool reads = !(client_ && client_->is_behind());
  const bool is_quiet = quiet_until_ > boot_clock_micros();
  const bool is_shared = program_->input() == program_->output();
  if (!is_shared) add(program_->input(), false, !input_.empty());
  if (!is_quiet) add(program_->output(), reads, is_shared && !input_.empty());
  add(program_->error(), reads, false);
  return fds;
}

int Session::timeout() const {
  std::int64_t next = boot_clock_micros() + 60 * kSecond;
  const auto by = [&](bool applies, std::int64_t at) {
    if (applies) next = std::min(next, at);
  };
  by(options_.needs_client && !client_ && !code_, alone_until_);
  by(kill_at_ != 0, kill_at_);
  by(code_.has_value(), farewell_at_);
  by(newcomer_.has_value(), newcomer_ ? newcomer_->since() + kGreetingTime : 0);
  by(idle_.has_limit() && program_ && !code_, idle_.next_look());
  by(quiet_until_ > boot_clock_micros(), quiet_until_);
  const std::int64_t pause = (next - boot_clock_micros()) / 1000 + 1;
  return static_cast<int>(std::clamp<std::int64_t>(pause, 1, 60'000));
}

void Session::handle(const std::vector<pollfd>& ready) {
  for (const pollfd& one : ready) {
    if (one.revents == 0) continue;
    const bool can_read = (one.revents & ~POLLOUT) != 0;  // also to find out that it is gone
    if (one.fd == listener_.get()) accept_client();
    if (one.fd == signals_.get()) take_signals();
    if (newcomer_ && one.fd == newcomer_->fd() && can_read) {
      greet();
    } else if (client_ && one.fd == client_->fd() && can_read) {
      hear();
    } else if (program_ && !code_) {
      if (one.fd == program_->input() && (one.revents & (POLLOUT | POLLERR)) != 0) pass_input();
      if (one.fd == program_->output() && can_read) pass_output(one.fd, FrameKind::Output);
      if (one.fd == program_->error() && can_read) pass_output(one.fd, FrameKind::ErrorOutput);
    }
  }
}

void Session::take_signals() {
  signalfd_siginfo what{};
  while (::read(signals_.get(), &what, sizeof what) == sizeof what) {
    if (what.ssi_signo == SIGCHLD) continue;  // looked at with the clock
    if (!program_) {
      leave(128 + static_cast<int>(what.ssi_signo));
    } else if (kill_at_ == 0) {
      end("");
    }
  }
}

void Session::accept_client() {
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open() || !is_same_user(socket.get())) return;
  newcomer_.emplace(std::move(socket), boot_clock_micros());  // one that has not spoken yet goes
}

void Session::greet() {
  if (!newcomer_->receive()) return newcomer_.reset();
  const auto first = newcomer_->next();
  if (first && !*first) return;
  const auto hello =
      first && (*first)->kind == FrameKind::Hello ? hello_from((*first)->payload) : std::nullopt;
  if (!hello) return newcomer_.reset();
  const bool is_taken = client_ && !hello->takes_over;
  if (is_taken || code_) {
    newcomer_->send(FrameKind::Refused,
                    is_taken ? "somebody is attached to it already" : "it is just over");
    static_cast<void>(newcomer_->flush());
    return newcomer_.reset();
  }
  if (client_) {
    client_->send(FrameKind::Refused, "attached from elsewhere");
    static_cast<void>(client_->flush());
  }
  attach(*hello);
}

void Session::attach(const Hello& hello) {
  client_ = std::move(newcomer_);
  newcomer_.reset();
  client_->send(FrameKind::Welcome, payload_of(Welcome{options_.program.on_terminal}));
  const auto waiting =
      static_cast<std::uint32_t>(std::min<std::size_t>(input_.size(), kFirstCredit));
  client_->send(FrameKind::Credit, credit_payload(kFirstCredit - waiting));
  consumed_ = 0;
  idle_.note_use(boot_clock_micros());
  if (program_) {
    for (const Frame& piece : kept_.pieces()) client_->send_all(piece.kind, piece.payload);
    program_->resize(hello.size);
    if (options_.program.on_terminal) program_->signal(SIGWINCH);  // paint it anew
  } else {
    begin(hello);
    if (!program_) return;
  }
  hear();  // what came with the greeting
}

void Session::begin(const Hello& hello) {
  ProgramOrder order = options_.program;
  order.size = hello.size;
  order.term = hello.term;
  auto started = HostedProgram::start(order);
  if (started) {
    program_.emplace(*std::move(started));
    return;
  }
  reason_ = started.error().text();
  if (client_) client_->send(FrameKind::Refused, reason_);
  farewell_at_ = boot_clock_micros() + kFarewellTime;
  leave(kFailed);
}

void Session::detach() {
  client_.reset();
  alone_until_ = boot_clock_micros() + options_.grace_seconds * kSecond;
}

void Session::hear() {
  if (!client_->receive()) return detach();
  while (client_) {
    const auto said = client_->next();
    if (!said) return detach();  // not one of ours
    if (!*said) return;
    obey(**said);
  }
}

void Session::obey(const Frame& said) {
  switch (said.kind) {
    case FrameKind::Input:
      idle_.note_use(boot_clock_micros());
      input_ += said.payload;
      if (input_.size() > 2 * std::size_t{kFirstCredit}) return detach();  // beyond its credit
      return pass_input();
    case FrameKind::EndOfInput: input_ends_ = true; return pass_input();
    case FrameKind::Resize:
      if (const auto size = size_from(said.payload)) program_->resize(*size);
      return;
    case FrameKind::Signal:
      if (const auto number = byte_from(said.payload); number && *number >= 1 && *number <= 64) {
        if (*number == SIGKILL)
          program_->kill_all();
        else
          program_->signal(*number);
      }
      return;
    case FrameKind::OutputClosed:
      if (byte_from(said.payload) == 2)
        program_->close_error();
      else
        program_->close_output();
      return;
    default: return detach();  // nothing a client says
  }
}

void Session::pass_input() {
  while (!input_.empty() && program_->input() >= 0) {
    const ssize_t put = ::write(program_->input(), input_.data(), input_.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) break;
    input_.erase(0, static_cast<std::size_t>(put));
    give_credit(static_cast<std::size_t>(put));
  }
  if (!input_.empty()) {  // it takes no more; what comes is dropped, as by a pipe
    give_credit(input_.size());
    input_.clear();
    program_->close_input();
  }
  if (input_ends_) {
    input_ends_ = false;
    program_->close_input();
  }
}

void Session::give_credit(std::size_t bytes) {
  consumed_ += static_cast<std::uint32_t>(bytes);
  if (consumed_ < kCreditStep || !client_) return;
  client_->send(FrameKind::Credit, credit_payload(consumed_));
  consumed_ = 0;
}

void Session::pass_output(int fd, FrameKind kind) {
  std::array<char, 32U << 10U> block{};
  const ssize_t got = ::read(fd, block.data(), block.size());
  if (got > 0) {
    const std::string_view text(block.data(), static_cast<std::size_t>(got));
    kept_.add(kind, text);
    if (client_) client_->send_all(kind, text);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    // Of a terminal it means that nobody has it open now; somebody may open it again.
    if (options_.program.on_terminal)
      quiet_until_ = boot_clock_micros() + kQuietPause;
    else if (kind == FrameKind::Output)
      program_->output_ended();
    else
      program_->close_error();
  }
}

void Session::tell(const std::string& text) {
  kept_.add(FrameKind::Notice, text);
  if (client_) client_->send(FrameKind::Notice, text);
}

void Session::end(const std::string& why) {
  if (reason_.empty()) reason_ = why;
  if (!program_) return leave(kFailed);
  if (!why.empty()) tell(why);
  program_->hang_up();
  kill_at_ = boot_clock_micros() + options_.kill_seconds * kSecond;
}

void Session::put_reason() const {
  const Fd file(::open((options_.directory + "/" + kReasonFile).c_str(),
                       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.is_open()) std::ignore = ::write(file.get(), reason_.data(), reason_.size());
}

void Session::note_program_end() {
  if (!program_ || code_) return;
  const auto code = program_->try_reap();
  if (!code) return;
  // What it has said is still in the pipes; whoever else has them open is not waited for.
  std::array<pollfd, 2> rest{{{program_->output(), POLLIN, 0}, {program_->error(), POLLIN, 0}}};
  for (int rounds = 0; rounds < 1'000 && ::poll(rest.data(), rest.size(), 0) > 0; ++rounds) {
    quiet_until_ = 0;
    for (const pollfd& one : rest)
      if (one.revents != 0)
        pass_output(one.fd,
                    one.fd == program_->output() ? FrameKind::Output : FrameKind::ErrorOutput);
    if (quiet_until_ != 0) break;
    rest = {{{program_->output(), POLLIN, 0}, {program_->error(), POLLIN, 0}}};
  }
  const int told = reason_.empty() ? *code : std::max(*code, kFailed);
  if (client_) client_->send(FrameKind::Exit, std::string(1, static_cast<char>(told)));
  farewell_at_ = boot_clock_micros() + kFarewellTime;
  leave(told);
}

void Session::watch_clock() {
  note_program_end();
  const std::int64_t now = boot_clock_micros();
  if (newcomer_ && now >= newcomer_->since() + kGreetingTime) newcomer_.reset();
  if (code_) return;
  if (kill_at_ != 0 && now >= kill_at_) {
    program_->kill_all();
    kill_at_ = now + kSecond;
  } else if (options_.needs_client && kill_at_ == 0 && !client_ && now >= alone_until_) {
    end(program_ ? fmt::format("nobody was attached to the session for {}",
                               span_text(options_.grace_seconds * kSecond))
                 : fmt::format("nobody attached to the session within {}",
                               span_text(options_.first_wait_seconds * kSecond)));
  }
  if (kill_at_ == 0) watch_idle();
}

void Session::watch_idle() {
  const std::int64_t now = boot_clock_micros();
  if (!idle_.has_limit() || !program_ || now < idle_.next_look()) return;
  // Everything of the job: what was left in the background is below the shim, our parent.
  auto processes = below(options_.is_whole_job ? ::getppid() : ::getpid(), running_processes());
  std::erase_if(processes, [](const ProcessUse& one) { return one.pid == ::getpid(); });
  const IdleWatch::Look seen{.now = now,
                             .cpu_micros = cpu_.micros_since(processes),
                             .are_gpus_busy = options_.are_gpus_busy && options_.are_gpus_busy()};
  const IdleWatch::Verdict verdict = idle_.look(seen);
  const std::string idle = span_text(idle_.idle_micros(now));
  if (verdict == IdleWatch::Verdict::End)
    end(fmt::format("idle for {}: the limit of this queue is {}", idle,
                    span_text(idle_.limit_micros())));
  if (verdict == IdleWatch::Verdict::Warn)
    tell(fmt::format("this session has been idle for {}; it ends in {} unless used", idle,
                     span_text(idle_.limit_micros() - idle_.idle_micros(now))));
}

}  // namespace

Result<int> host_session(SessionOptions options) { return Session(std::move(options)).run(); }

}  // namespace berth::step
