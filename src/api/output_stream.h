// The output of a job as a body: a range of the file, or the file as it grows until the job is
// over. Survives what happens to such files: not there yet, cut to nothing and written anew by the
// next attempt, replaced by another. Watches by looking a few times a second: works on every file
// system, network ones too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "api/message.h"
#include "api/owned_file.h"

namespace berth::api {

struct OutputRange {
  std::int64_t offset = 0;  // negative: so many bytes before the end
  std::int64_t limit = 0;   // bytes; 0: to the end
  bool follow = false;
};

class OutputStream final : public BodySource {
 public:
  /// Where the output is now and whether more can come.
  struct Look {
    std::string path;
    std::string user;
    bool is_over = false;
  };
  /// `look` asks the service; nothing: the job is gone, or no longer the reader's to see.
  OutputStream(std::function<std::optional<Look>()> look, FileHandle file, OutputRange range);

  void start(std::function<void()>) override {}
  [[nodiscard]] Piece next(Because because) override;
  [[nodiscard]] std::chrono::milliseconds patience() const override {
    return std::chrono::milliseconds(200);
  }
  [[nodiscard]] bool blocks() const override { return true; }
  [[nodiscard]] bool is_endless() const override { return range_.follow; }

  /// First byte that will be sent and the end of the file as it is now.
  [[nodiscard]] std::int64_t begin() const noexcept { return offset_; }
  [[nodiscard]] std::int64_t end() const noexcept { return end_; }

 private:
  struct Shape {
    std::int64_t size = 0;
    std::pair<std::int64_t, std::int64_t> changed;  // seconds and nanoseconds of the last write
  };
  [[nodiscard]] static Shape shape_of(const FileHandle& file);
  [[nodiscard]] std::string read_piece(std::int64_t end);
  [[nodiscard]] std::string read_growth();
  void look_for_another_file(const Look& look);

  std::function<std::optional<Look>()> look_;
  FileHandle file_;  // closed: not there yet
  OutputRange range_;
  Shape seen_;  // when it was last read
  std::int64_t offset_ = 0;
  std::int64_t end_ = 0;
};

}  // namespace berth::api
