#include "client/last_words.h"

#include <atomic>
#include <csignal>
#include <cstring>

#include <unistd.h>

namespace berth::client {

namespace {

/// A signal handler has no other way to get at it.
std::atomic<const char*> words = nullptr;

// Only what is allowed in a handler: an atomic load, write() and raise(). The default action then
// ends the process as if nobody had looked.
void speak_and_die(int signal) {
  if (const char* line = words.load()) {
    [[maybe_unused]] const ssize_t written =  // there is nobody left to tell if it fails
        ::write(STDERR_FILENO, line, std::strlen(line));
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void handle(void (*handler)(int), int signal) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  // A parent that ignores the signal (nohup, a shell's background job) wants us to ignore it too.
  if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

LastWords::LastWords() {
  for (const int signal : {SIGINT, SIGTERM}) handle(speak_and_die, signal);
}

LastWords::~LastWords() {
  for (const int signal : {SIGINT, SIGTERM}) handle(SIG_DFL, signal);
  words = nullptr;
}

void LastWords::set(std::string line) {
  // Old lines stay in memory: the handler may be reading one of them right now.
  said_.push_back(std::move(line) + "\n");
  words = said_.back().c_str();
}

}  // namespace berth::client
