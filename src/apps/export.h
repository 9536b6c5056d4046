// `berth export`: the history of a live scheduler as a trace file.
#pragma once

#include <string>

namespace berth {

struct ExportOptions {
  std::string out;           // "-": standard output
  std::string server;        // empty: as every live command finds it
  std::string since, until;  // of the end; empty: open
  std::string user, group, queue;
  bool quiet = false;
};

/// `berth profiles export`: what jobs of a live scheduler have shown of themselves.
struct ProfilesOptions {
  std::string verb;
  std::string out = "-";
  std::string server;
};

}  // namespace berth
