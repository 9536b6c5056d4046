// Tables of measurements as points. Every cell is checked against a range in which the fits stay
// finite; up to twenty faults are reported with line and column.

#include "lab/fit/measurements.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/suggest.h"
#include "model/catalogue.h"

namespace berth {

namespace {

constexpr std::size_t kMaxMessages = 20;

struct Limits {
  double low = 0;
  double high = 0;
};
constexpr Limits kTime{1e-9, 1e7};
constexpr Limits kCount{1, 1e6};
constexpr Limits kSamples{1e-6, 1e9};
constexpr Limits kShare{0, 1};
constexpr Limits kTimes{1e-3, 1e3};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Typed cells of a table, with complaints.
class Cells {
 public:
  explicit Cells(const Table& table) : table_(table) {}

  /// False, and said so, if columns are missing or unknown, or there are no rows.
  bool has_columns(std::span<const std::string> needed, std::span<const std::string> known) {
    for (const std::string& title : needed) {
      if (!table_.column(title)) head(fmt::format("the column '{}' is missing", title));
    }
    for (const std::string& title : table_.columns()) {
      if (std::ranges::find(known, title) == known.end())
        head(fmt::format("no column is called '{}'{}", title, suggestion(title, known)));
    }
    if (table_.size() == 0) head("there are no measurements below the header (add rows)");
    return error_.messages.empty();
  }

  double number(std::size_t row, std::string_view title, Limits limits) {
    const std::size_t column = *table_.column(title);
    const auto value = finite_number(table_.cell(row, column));
    if (value && *value >= limits.low && *value <= limits.high) return *value;
    wrong(row, column,
          fmt::format("{} must be a number from {} to {}, got '{}' (correct or drop the row)",
                      title, limits.low, limits.high, table_.cell(row, column).substr(0, 40)));
    // Any good value: the fault is on record, and reading goes on to find the others.
    return limits.low > 0 ? limits.low : 1;
  }
  // An optional column may be missing altogether or empty in a row.
  double number_or(std::size_t row, std::string_view title, Limits limits, double otherwise) {
    const auto column = table_.column(title);
    if (!column || table_.cell(row, *column).empty()) return otherwise;
    return number(row, title, limits);
  }
  std::int32_t whole(std::size_t row, std::string_view title, Limits limits) {
    const double value = number(row, title, limits);
    if (value != std::floor(value))
      wrong(row, *table_.column(title), fmt::format("{} must be a whole number", title));
    return static_cast<std::int32_t>(value);
  }
  std::string word(std::size_t row, std::string_view title) {
    const std::size_t column = *table_.column(title);
    if (table_.cell(row, column).empty())
      wrong(row, column, fmt::format("{} is empty (name it or drop the row)", title));
    return std::string(table_.cell(row, column));
  }
  std::string device(std::size_t row) {
    const std::string name = lower(word(row, "device"));
    if (name.empty() || find_device(name)) return name;
    std::vector<std::string> known;
    for (const DeviceType& one : built_in_devices()) known.push_back(one.name);
    wrong(row, *table_.column("device"),
          fmt::format("no device type is called '{}'{}", name.substr(0, 40),
                      suggestion(name.substr(0, 40), known)));
    return name;
  }
  /// From `level`, else from `nodes`: one is a server, several are a rack.
  Level level(std::size_t row, std::int32_t gpus) {
    // One GPU talks to nobody: whatever the row says of distance does not matter.
    if (gpus <= 1) return Level::Device;
    if (const std::string_view name = table_.text(row, "level"); !name.empty()) {
      std::vector<std::string> known;
      for (const Level one : kAllLevels) {
        if (to_string(one) == name) return one;
        known.emplace_back(to_string(one));
      }
      wrong(row, *table_.column("level"),
            fmt::format("no level is called '{}'{}", name.substr(0, 40),
                        suggestion(name.substr(0, 40), known)));
      return Level::Server;
    }
    if (!table_.column("nodes") || table_.text(row, "nodes").empty()) {
      wrong(row, *table_.column("gpus"),
            "a gang of several GPUs needs level or nodes (say how far apart they were)");
      return Level::Server;
    }
    return whole(row, "nodes", kCount) > 1 ? Level::Rack : Level::Server;
  }

  template <class T>
  Result<T> finish(T value) {
    if (!error_.messages.empty()) return tl::unexpected<Error>(std::move(error_));
    return value;
  }

 private:
  void head(std::string_view what) {
    error_.messages.push_back(fmt::format("{}:1:1: {}", table_.name(), what));
  }
  void wrong(std::size_t row, std::size_t column, std::string_view what) {
    if (error_.messages.size() < kMaxMessages)
      error_.messages.push_back(fmt::format("{}: {}", table_.place(row, column), what));
  }

  const Table& table_;
  Error error_;
};

/// One table of points under their model's name.
template <class Point, class Read>
Result<ByModel<Point>> read_by_model(const Table& table, std::span<const std::string> needed,
                                     std::span<const std::string> known, Read read) {
  Cells cells(table);
  ByModel<Point> points;
  if (cells.has_columns(needed, known)) {
    for (std::size_t row = 0; row < table.size(); ++row)
      points[cells.word(row, "model")].push_back(read(cells, row));
  }
  return cells.finish(std::move(points));
}

}  // namespace

Result<ByModel<StepPoint>> read_steps(const Table& table) {
  static const std::vector<std::string> kNeeded{"model", "device", "gpus", "batch", "seconds"};
  static const std::vector<std::string> kKnown{"model", "device", "gpus",    "level",
                                               "nodes", "batch",  "seconds", "site"};
  return read_by_model<StepPoint>(table, kNeeded, kKnown, [&](Cells& cells, std::size_t row) {
    StepPoint point;
    point.device = cells.device(row);
    point.site = std::string(table.text(row, "site"));
    point.gpus = cells.whole(row, "gpus", kCount);
    point.level = cells.level(row, point.gpus);
    point.batch = cells.number(row, "batch", kSamples);
    point.seconds = cells.number(row, "seconds", kTime);
    return point;
  });
}

Result<ByModel<LocalityPoint>> read_locality(const Table& table) {
  static const std::vector<std::string> kNeeded{"model", "gpus", "relative_speed"};
  static const std::vector<std::string> kKnown{"model", "gpus", "level", "nodes", "relative_speed"};
  return read_by_model<LocalityPoint>(table, kNeeded, kKnown, [&](Cells& cells, std::size_t row) {
    LocalityPoint point;
    point.gpus = cells.whole(row, "gpus", {2, kCount.high});
    point.level = cells.level(row, point.gpus);
    point.relative_speed = cells.number(row, "relative_speed", kTimes);
    return point;
  });
}

Result<std::vector<PairPoint>> read_pairs(const Table& table) {
  static const std::vector<std::string> kNeeded{"of", "beside", "slowdown"};
  static const std::vector<std::string> kKnown{
      "of", "beside", "slowdown", "of_utilisation", "beside_utilisation", "memory_utilisation"};
  Cells cells(table);
  std::vector<PairPoint> points;
  if (cells.has_columns(kNeeded, kKnown)) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      points.push_back(
          {.of = cells.word(row, "of"),
           .beside = cells.word(row, "beside"),
           .slowdown = cells.number(row, "slowdown", kTimes),
           .of_utilisation = cells.number_or(row, "of_utilisation", kShare, 0),
           .beside_utilisation = cells.number_or(row, "beside_utilisation", kShare, 0),
           .memory_utilisation = cells.number_or(row, "memory_utilisation", {0, 2}, 0)});
    }
  }
  return cells.finish(std::move(points));
}

Result<ByModel<CpuPoint>> read_cpu(const Table& table) {
  static const std::vector<std::string> kColumns{"model", "cores", "speed"};
  return read_by_model<CpuPoint>(table, kColumns, kColumns, [](Cells& cells, std::size_t row) {
    return CpuPoint{cells.number(row, "cores", {1e-3, 1e4}), cells.number(row, "speed", kSamples)};
  });
}

Result<ByModel<MemoryPoint>> read_memory(const Table& table) {
  static const std::vector<std::string> kColumns{"model", "batch", "mib"};
  return read_by_model<MemoryPoint>(table, kColumns, kColumns, [](Cells& cells, std::size_t row) {
    return MemoryPoint{cells.number(row, "batch", kSamples), cells.number(row, "mib", {1, 1e8})};
  });
}

}  // namespace berth
