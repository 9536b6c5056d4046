// One reader for every format that is a table: a TableFormat says which column is which field, this
// file maps the header once and then fills jobs cell by cell. What a format cannot say by columns,
// its own function does at the end of a row.

#include "trace/table.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"
#include "trace/cell.h"
#include "trace/csv.h"
#include "trace/tables.h"
#include "trace/writer.h"

namespace berth {

namespace {

constexpr std::array kNativeColumns{
    TableColumn{"job_id", Field::Key, Presence::Required},
    TableColumn{"submit_time", Field::Submit, Presence::Required},
    TableColumn{"gpus", Field::Gpus, Presence::Required},
    TableColumn{"duration", Field::RunTime, Presence::Required},
    TableColumn{"user", Field::User},
    TableColumn{"group", Field::Group},
    TableColumn{"queue", Field::Queue},
    TableColumn{"name", Field::Name},
    TableColumn{"model", Field::Model},
    TableColumn{"gpu_type", Field::GpuType},
    TableColumn{"gpus_min", Field::GpusMin},
    TableColumn{"gpus_max", Field::GpusMax},
    TableColumn{"gpu_milli", Field::GpuMilli},
    TableColumn{"cpus", Field::Cpus},
    TableColumn{"memory_gb", Field::MemoryGb},
    TableColumn{"batch_size", Field::BatchSize},
    TableColumn{"iterations", Field::Iterations},
    TableColumn{"deadline", Field::Deadline},
    TableColumn{"soft_deadline", Field::SoftDeadline},
    TableColumn{"priority", Field::Priority},
    TableColumn{"weight", Field::Weight},
    TableColumn{"kind", Field::Kind},
    TableColumn{"study", Field::Study},
    TableColumn{"status", Field::Status},
    TableColumn{"error", Field::Error},
    TableColumn{"failed_attempts", Field::FailedAttempts},
    TableColumn{"estimate", Field::Estimate},
    TableColumn{"cancel_time", Field::CancelTime},
    TableColumn{"start_time", Field::RecordedStart},
    TableColumn{"finish_time", Field::RecordedEnd},
    TableColumn{"run_time", Field::RecordedHeld},
    TableColumn{"restarts", Field::Restarts},
    TableColumn{"cut", Field::Cut},
};

std::string lower(std::string_view text) {
  std::string result(trimmed(text));
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// A column of the file that means something to the format.
struct Mapped {
  const TableColumn* column;
  std::size_t position;  // field index in the row
};

class TableReader {
 public:
  TableReader(std::string_view bytes, const std::string& file, const TableFormat& format,
              const ReadOptions& options)
      : format_(format),
        builder_(file, format.name, options),
        rows_(bytes, likely_delimiter(first_line(bytes)),
              quotes_for(likely_delimiter(first_line(bytes)))),
        estimated_rows_(estimate_rows(bytes)) {}

  Result<Trace> read(ReadReport* report) {
    bool has_row = rows_.next();
    if (format_.header == Header::Named) {
      if (has_row) map_header();
      has_row = has_row && !builder_.has_fatal() && rows_.next();
    } else {
      map_positions();
    }
    if (!format_.note.empty()) builder_.note(std::string(format_.note));
    builder_.trace().jobs.reserve(estimated_rows_);
    for (; has_row; has_row = rows_.next()) read_row();
    return builder_.finish(report);
  }

 private:
  static std::string_view first_line(std::string_view bytes) {
    return bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  }

  static constexpr std::size_t kMostReserved = 4'000'000;

  // From the length of the first lines, to reserve memory once.
  static std::size_t estimate_rows(std::string_view bytes) {
    const std::string_view beginning = bytes.substr(0, 65'536);
    const auto lines = static_cast<std::size_t>(std::ranges::count(beginning, '\n')) + 1;
    const std::size_t estimate = lines * (bytes.size() / (beginning.size() + 1) + 1);
    return std::min({estimate, bytes.size() / 8 + 1, kMostReserved});  // blank lines are no rows
  }

  // A quote is an ordinary character in what Slurm prints.
  static CsvQuotes quotes_for(std::string_view delimiter) {
    return delimiter == "|" || delimiter == kSnowman ? CsvQuotes::Plain : CsvQuotes::Quoted;
  }

  // No header: the format's order of columns is the file's.
  void map_positions() {
    width_ = std::max(rows_.fields().size(), format_.columns.size());
    for (std::size_t i = 0; i < format_.columns.size(); ++i) map_to(format_.columns[i], i);
  }

  void map_header() {
    width_ = rows_.fields().size();
    for (const std::string_view name : rows_.fields()) header_.push_back(lower(name));
    for (const TableColumn& column : format_.columns) map_column(column);
    if (&format_ == &tables::kNative) note_unknown_columns();
  }

  void map_column(const TableColumn& column) {
    const auto found = std::ranges::find(header_, column.name);
    if (found == header_.end()) {
      if (column.presence == Presence::Required) report_missing(column);
      return;
    }
    const auto position = static_cast<std::size_t>(found - header_.begin());
    // Two columns of one name: taking either would be a guess.
    if (const auto again = std::find(found + 1, header_.end(), column.name);
        again != header_.end()) {
      builder_.fatal(rows_.line(), static_cast<std::size_t>(again - header_.begin()) + 1,
                     fmt::format("column {} appears twice (remove or rename one)", column.name));
    }
    map_to(column, position);
  }

  void map_to(const TableColumn& column, std::size_t position) {
    mapped_.push_back({&column, position});
    const auto field = static_cast<std::size_t>(column.field);
    // Where two columns are keys, the later one of the format counts.
    if (column.field == Field::Key) id_position_ = position;
    if (column.field == Field::Gpus) gpus_column_ = position + 1;
    constexpr auto kText0 = static_cast<std::size_t>(Field::Text0);
    if (field >= kText0) text_columns_[field - kText0] = position + 1;
  }

  void report_missing(const TableColumn& column) {
    const auto near = nearest_names(column.name, header_);
    std::string remedy =
        near.empty() ? "add it to the header" : fmt::format("rename column {}?", near.front());
    if (&format_ == &tables::kNative) remedy += "; for other trace formats pass --format";
    builder_.fatal(rows_.line(), 1, fmt::format("column {} is missing ({})", column.name, remedy));
  }

  void note_unknown_columns() {
    std::vector<std::string> known;
    for (const TableColumn& column : format_.columns) known.emplace_back(column.name);
    for (const std::string& name : header_) {
      if (name.empty() || std::ranges::find(known, name) != known.end()) continue;
      if (name == kEnergyColumn) continue;  // of `berth export`, for people
      const auto near = nearest_names(name, known);
      const std::string hint = near.empty() ? "" : fmt::format(" (did you mean {}?)", near.front());
      builder_.note(fmt::format("column {} is not known and was ignored{}", in_quotes(name), hint));
    }
  }

  void read_row() {
    builder_.begin_row(rows_.line());
    const auto fields = rows_.fields();
    if (!has_right_width(fields)) return;
    TraceJob job;
    const std::string_view key =
        format_.ids == Ids::RowNumber ? std::string_view{} : trimmed(fields[id_position_]);
    TableRow row{builder_, job, key, {}, text_columns_, RunEnd::Over};
    for (const Mapped& mapped : mapped_) read_cell(row, mapped, fields[mapped.position]);
    if (format_.complete != nullptr && builder_.row_is_good()) format_.complete(row);
    if (!builder_.row_is_good()) return;
    if (job.gpus < 1 && format_.no_gpu == NoGpu::LeaveOut)
      return builder_.leave_out("rows that ask for no GPU");
    if (job.duration == Duration{} && format_.never_ran == NeverRan::LeaveOut) {
      return builder_.leave_out("rows that never ran (run time 0)");
    }
    check_row(builder_, job, gpus_column_);
    if (format_.ids == Ids::Runs) return builder_.end_run(job, key, id_position_ + 1, row.end);
    end_row(job, key);
  }

  void read_cell(TableRow& row, const Mapped& mapped, std::string_view text) {
    const TableColumn& column = *mapped.column;
    constexpr auto kText0 = static_cast<std::size_t>(Field::Text0);
    if (const auto field = static_cast<std::size_t>(column.field); field >= kText0) {
      // Two columns may say the same: what the later one leaves open, the earlier one has said.
      if (const std::string_view said = trimmed(text); !said.empty())
        row.texts[field - kText0] = said;
      return;
    }
    if (text.empty()) {
      if (column.presence == Presence::Required) {
        builder_.problem({.column = mapped.position + 1,
                          .rule = fmt::format("{} must not be empty", column.name)});
      }
      return;
    }
    store_cell(builder_, row.job, column.field,
               {.column_name = column.name,
                .column = mapped.position + 1,
                .text = text,
                .ticks_per_unit = format_.ticks_per_unit,
                .least_gpus = format_.no_gpu == NoGpu::Invalid ? 1 : 0});
  }

  bool has_right_width(std::span<const std::string_view> fields) {
    if (rows_.has_open_quote()) {
      builder_.problem({.column = fields.size(), .rule = "a quote is opened but never closed"});
      return false;
    }
    if (fields.size() == width_) return true;
    // Spreadsheets pad rows with empty fields on the right; those say nothing.
    const bool padded = fields.size() > width_ &&
                        std::ranges::all_of(fields.subspan(width_),
                                            [](auto field) { return trimmed(field).empty(); });
    if (padded || (fields.size() > width_ && last_is_free_text())) return true;
    if (fields.size() < width_ && !rows_.is_terminated()) {
      builder_.problem(
          {.column = fields.size(),
           .rule = fmt::format("the last row is cut off: {} of {} fields", fields.size(), width_),
           .remedy = "fetch the file again, or pass --skip-invalid"});
      return false;
    }
    builder_.problem(
        {.column = fields.size(),
         .rule = fmt::format("row has {} fields, expected {}", fields.size(), width_)});
    return false;
  }

  /// What Slurm's users wrote may hold the separator: where it stands last, nothing is lost by it.
  [[nodiscard]] bool last_is_free_text() const {
    static constexpr std::array<std::string_view, 6> kFree{"submitline", "jobname",      "comment",
                                                           "workdir",    "admincomment", "extra"};
    return format_.ids == Ids::Runs && !header_.empty() &&
           std::ranges::find(kFree, header_.back()) != kFree.end();
  }

  void end_row(const TraceJob& job, std::string_view key) {
    if (format_.ids == Ids::RowNumber) {
      return builder_.end_row(job, fmt::format("row-{}", ++row_number_), 0, IdRule::Unique);
    }
    const IdRule rule = format_.ids == Ids::GivenMayRepeat ? IdRule::MakeUnique : IdRule::Unique;
    builder_.end_row(job, key, id_position_ + 1, rule);
  }

  const TableFormat& format_;
  TraceBuilder builder_;
  CsvRows rows_;
  std::size_t estimated_rows_;
  std::vector<std::string> header_;
  std::vector<Mapped> mapped_;
  std::size_t width_ = 0;
  std::size_t id_position_ = 0;
  std::size_t gpus_column_ = 0;
  std::size_t row_number_ = 0;
  std::array<std::size_t, kTexts> text_columns_{};
};

}  // namespace

const TableFormat tables::kNative{
    .name = "native", .columns = kNativeColumns, .never_ran = NeverRan::Keep};

Result<Trace> read_table(std::string_view bytes, const std::string& file, const TableFormat& format,
                         const ReadOptions& options, ReadReport* report) {
  return TableReader{bytes, file, format, options}.read(report);
}

}  // namespace berth
