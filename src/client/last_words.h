// What a person who presses Ctrl-C is told before the program ends: for as long as it lives, SIGINT
// and SIGTERM first write one line to standard error and then do what they always do. One at a time
// in a process; words may be changed at any moment.
#pragma once

#include <list>
#include <string>

namespace berth::client {

class LastWords {
 public:
  LastWords();
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  void set(std::string line);

 private:
  std::list<std::string> said_;  // a signal may be reading any of them
};

}  // namespace berth::client
