#include "apps/serving.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>

namespace berth {

namespace {

sigset_t our_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) sigaddset(&signals, number);
  return signals;
}

/// Waits for signals in a thread of its own: nothing is done inside a handler.
class SignalThread {
 public:
  SignalThread(const sigset_t& signals, std::function<void(int)> heard)
      : thread_([signals, heard = std::move(heard)] {
          for (int number = 0; sigwait(&signals, &number) == 0;) {
            if (number == SIGUSR2) return;  // the end, from our destructor
            heard(number);
          }
        }) {}
  ~SignalThread() {
    pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
  }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  std::thread thread_;
};

}  // namespace

Result<void> make_directory(const std::filesystem::path& path, mode_t mode) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return fail(fmt::format("{}: {}", path.parent_path().string(), error.message()));
  const bool is_made = mkdir(path.c_str(), mode) == 0;
  if (!is_made && errno != EEXIST)
    return fail(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  if (is_made && chmod(path.c_str(), mode) != 0)  // whatever our mask takes away
    return fail(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  return {};
}

void block_signals() {
  const sigset_t signals = our_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a limit of files is a write that fails
}

void notify(std::string_view text) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length == 0 || length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  static_cast<void>(sendto(fd, text.data(), text.size(), MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&address), size));
  close(fd);
}

Result<void> serve_until_stopped(api::Listening listening, api::ServerOptions options,
                                 const Served& served) {
  api::Server server{served.service, std::move(options)};
  server.start(std::move(listening));
  const SignalThread listener{our_signals(), [&](int number) {
                                if (number == SIGHUP) return served.reload();
                                notify("STOPPING=1");
                                served.stop();
                              }};
  notify("READY=1");
  auto ended = served.run();
  server.stop();
  return ended;
}

}  // namespace berth
