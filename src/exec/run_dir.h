// The files of attempts, and how they are made durable. All that scheduler and shims share lies in
// one directory: order.ID, attempt.ID (the claim), script.ID, cores.ID, tmp.ID (where its own
// temporary directory is), exit.ID, and the directory steps.ID, which belongs to the job's user. The
// rest belongs to the scheduler; others may pass through it (mode 0711) to run their own script, and
// read nothing.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "store/record.h"

namespace berth {

class RunDir {
 public:
  explicit RunDir(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string order(AttemptId attempt) const { return file("order.", attempt); }
  [[nodiscard]] std::string claim(AttemptId attempt) const { return file("attempt.", attempt); }
  [[nodiscard]] std::string script(AttemptId attempt) const { return file("script.", attempt); }
  [[nodiscard]] std::string cores(AttemptId attempt) const { return file("cores.", attempt); }
  [[nodiscard]] std::string tmp(AttemptId attempt) const { return file("tmp.", attempt); }
  [[nodiscard]] std::string steps(AttemptId attempt) const { return file("steps.", attempt); }
  [[nodiscard]] std::string exit(AttemptId attempt) const { return file("exit.", attempt); }

  /// Makes it with its mode where it is missing.
  [[nodiscard]] Result<void> make() const;
  /// Names made or removed so far are durable.
  [[nodiscard]] Result<void> sync() const;

 private:
  [[nodiscard]] std::string file(const char* kind, AttemptId attempt) const;

  std::string path_;
};

}  // namespace berth
