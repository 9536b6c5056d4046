// Runs the real berth program in a temporary folder and hands back what it printed and how it
// ended.
#pragma once

#include <string>
#include <vector>

namespace berth::test {

struct Ran {
  int exit = -1;  // -1: ended by a signal
  int signal = 0;
  std::string out;
  std::string err;
};

/// A folder that is gone when the test is.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes the file and answers its path.
  std::string file(const std::string& name, const std::string& content) const;
  [[nodiscard]] std::string read(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;  // sorted

 private:
  std::string path_;
};

/// Arguments as they are, no shell; the working directory is the folder.
[[nodiscard]] Ran berth(const TempFolder& folder, const std::vector<std::string>& arguments);
/// A shell command in which $BERTH is the program.
[[nodiscard]] Ran shell(const TempFolder& folder, const std::string& command);
/// Starts the program without waiting, its output in files `out` and `err` of the folder; the
/// process id.
[[nodiscard]] int start_berth(const TempFolder& folder, const std::vector<std::string>& arguments);

[[nodiscard]] std::string example(const std::string& name);  // of examples/
/// A column of a CSV without quotes, by row.
[[nodiscard]] std::vector<std::string> column(const std::string& csv, const std::string& name);

}  // namespace berth::test
