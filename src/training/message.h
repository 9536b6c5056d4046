// The words between training code and scheduler: one JSON object a line, in both directions
// (docs/formats/training-protocol.md). Keys that are not known are ignored, so that either side may
// be older; a line that makes no sense is an error that says why, never more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"
#include "perf/terms.h"

namespace berth {

inline constexpr std::int32_t kTrainingProtocol = 1;
inline constexpr std::size_t kMostMetrics = 32;

// From the code.
struct Hello {
  std::int32_t version = kTrainingProtocol;
  JobNumber job = 0;
  std::string token;
  std::int32_t rank = 0;
  std::string sdk;
  bool resizes = false;  // it can go on with other devices
};
struct Report {
  std::int64_t iteration = 0;         // done since the training began, over all attempts
  std::optional<double> epoch;        // done, with fractions
  std::optional<double> loss;         // of late
  std::optional<double> seconds;      // spent training since the last report
  std::optional<std::int64_t> batch;  // samples per iteration and worker
  std::optional<double> samples;      // since the last report, if not iterations x batch
  std::int32_t sub_steps = 1;         // micro-batches it makes of one
  std::optional<double> noise_scale;  // of the gradient, in samples
  std::map<std::string, double> metrics;
};
struct Checkpointed {
  std::int64_t iteration = 0;
  std::string path;
};
/// The answer to a request for another size.
struct Resized {
  std::uint64_t id = 0;
  bool done = false;  // it has left all other devices; otherwise it cannot
};
/// What it does from now on, until it says otherwise.
struct PhaseNote {
  Phase phase = Phase::Training;
};
struct Bye {};
using FromCode = std::variant<Hello, Report, Checkpointed, Resized, PhaseNote, Bye>;
[[nodiscard]] Result<FromCode> parse_from_code(std::string_view line);

// To the code; each ends with a newline.
[[nodiscard]] std::string welcome_line(JobNumber job);
[[nodiscard]] std::string terms_line(const Terms& terms);
/// Stop: leave once it is written.
enum class AfterCheckpoint : std::uint8_t { GoOn, Stop };
[[nodiscard]] std::string checkpoint_line(double deadline_seconds, AfterCheckpoint then);
/// The job will have so many after its next start.
[[nodiscard]] std::string resize_line(std::int32_t gpus);
/// Go on with exactly these devices, and answer.
struct ResizeAsk {
  std::uint64_t id = 0;
  std::vector<std::int32_t> devices{};  // of the machine
  std::vector<std::int32_t> cores{};    // empty: any
  double deadline_seconds = 0;
};
[[nodiscard]] std::string resize_line(const ResizeAsk& ask);
[[nodiscard]] std::string error_line(std::string_view why);

}  // namespace berth
