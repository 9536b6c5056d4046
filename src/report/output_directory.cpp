// Results are written beside their destination and moved there at the end, so that a reader never
// sees half a run. A directory that holds anything we did not write is refused: nobody loses files
// to a mistyped --out.

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "report/html.h"
#include "report/run_files.h"
#include "report/run_json.h"
#include "report/run_output.h"
#include "report/table.h"

namespace berth {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kUnfinished = ".berth-tmp-";
constexpr std::array<std::string_view, 9> kOurFiles{
    "jobs.csv",  "summary.json",   "actions.csv", "timeline.csv", "intervals.csv",
    "nodes.csv", "comparison.csv", "report.html", "figures"};

// By name, or by content for the sub-directories of a comparison, whose names are labels.
bool is_ours(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  if (name.starts_with(kUnfinished)) return true;
  if (std::ranges::find(kOurFiles, name) != kOurFiles.end()) return true;
  std::error_code code;
  return fs::is_directory(entry.path(), code) && fs::exists(entry.path() / "summary.json", code) &&
         fs::exists(entry.path() / "jobs.csv", code);  // a run of a comparison
}

std::vector<fs::directory_entry> entries_of(const fs::path& dir, std::error_code& code) {
  std::vector<fs::directory_entry> entries;
  for (auto it = fs::directory_iterator(dir, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    entries.push_back(*it);
  }
  return entries;
}

/// May this existing directory be written to?
Result<void> admit(const std::string& dir, Overwrite overwrite) {
  std::error_code code;
  const auto entries = entries_of(dir, code);
  if (code) return fail(fmt::format("{}: cannot read the directory: {}", dir, code.message()));
  if (overwrite == Overwrite::Anything || entries.empty()) return {};
  const auto foreign = std::ranges::find_if_not(entries, is_ours);
  const bool has_run = fs::exists(fs::path(dir) / "summary.json", code);
  // A run that was killed while writing: safe to replace.
  const bool only_leftovers = std::ranges::all_of(entries, [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with(kUnfinished);
  });
  if (foreign == entries.end() && (has_run || only_leftovers)) return {};
  const std::string what =
      foreign == entries.end()
          ? "is not empty and holds no complete Berth run"
          : fmt::format("is not empty and holds '{}', which Berth did not write",
                        foreign->path().filename().string());
  return fail(
      fmt::format("{}: {} (name a new directory, or --force to write into this one)", dir, what));
}

// One by one, to know which of them are ours to remove if the run fails.
Result<std::vector<std::string>> make_parents(const fs::path& target) {
  std::vector<std::string> made;
  std::error_code code;
  fs::path path;
  for (const fs::path& part : target.parent_path()) {
    path /= part;
    if (fs::is_directory(path, code)) continue;
    if (!fs::create_directory(path, code)) {
      return fail(fmt::format("{}: cannot create directory '{}': {}", target.string(),
                              path.string(), code.message()));
    }
    made.push_back(path.string());
  }
  return made;
}

}  // namespace

Result<OutputDirectory> OutputDirectory::create(const std::string& dir, Overwrite overwrite) {
  if (dir.empty()) return fail("the output directory has an empty name");
  std::error_code code;
  OutputDirectory made;
  fs::path target = fs::absolute(dir, code).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "dir/" is "dir"
  made.target_ = target.string();
  made.exists_ = fs::exists(target, code);
  if (made.exists_ && !fs::is_directory(target, code)) {
    return fail(fmt::format("{}: is a file, not a directory (name another one)", dir));
  }
  if (made.exists_) {
    BERTH_TRY_VOID(admit(dir, overwrite));
    // Inside the directory, because only there a rename is sure to stay on one file system.
    made.temporary_ = (target / fmt::format("{}{}", kUnfinished, ::getpid())).string();
  } else {
    BERTH_TRY(made.made_, make_parents(target));
    made.temporary_ = fmt::format("{}.tmp-{}", made.target_, ::getpid());
  }
  fs::remove_all(made.temporary_, code);
  if (!fs::create_directory(made.temporary_, code)) {
    const std::string reason = code.message();
    made.temporary_.clear();
    return fail(fmt::format("{}: cannot write there: {}", dir, reason));
  }
  return made;
}

OutputDirectory::OutputDirectory(OutputDirectory&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      made_(std::exchange(other.made_, {})),
      exists_(other.exists_) {}

OutputDirectory::~OutputDirectory() {
  std::error_code code;
  if (!temporary_.empty()) fs::remove_all(temporary_, code);
  // commit() clears the list: these are left only if the run failed.
  for (auto parent = made_.rbegin(); parent != made_.rend(); ++parent) {
    fs::remove(*parent, code);  // only if nothing else came to live there
  }
}

Result<void> OutputDirectory::write(const std::string& relative_path, std::string_view content) {
  const fs::path path = fs::path(temporary_) / relative_path;
  std::error_code code;
  fs::create_directories(path.parent_path(), code);
  if (code)
    return fail(fmt::format("{}: cannot create: {}", path.parent_path().string(), code.message()));
  return write_file(path.string(), content);
}

Result<void> OutputDirectory::write_run(const RunData& run, const std::string& subdirectory) {
  const std::string prefix = subdirectory.empty() ? "" : subdirectory + "/";
  BERTH_TRY_VOID(write(prefix + "jobs.csv", jobs_csv(run)));
  BERTH_TRY_VOID(write(prefix + "nodes.csv", nodes_csv(run)));
  if (!run.timeline.empty()) BERTH_TRY_VOID(write(prefix + "timeline.csv", timeline_csv(run)));
  if (run.actions) BERTH_TRY_VOID(write(prefix + "actions.csv", actions_csv(run)));
  if (run.gantt) BERTH_TRY_VOID(write(prefix + "intervals.csv", intervals_csv(run)));
  return write(prefix + "summary.json", summary_json(run) + "\n");
}

Result<void> OutputDirectory::write_report(std::span<const RunData> runs,
                                           const ReportLabels& labels) {
  BERTH_TRY_VOID(write("report.html", report_html(runs, labels)));
  if (runs.size() == 1 && fs::exists(fs::path(temporary_) / "summary.json")) {
    if (labels.title.empty()) return {};
    return write(
        "summary.json",
        summary_json(runs.front(), {.directory = {}, .is_baseline = false, .title = labels.title}) +
            "\n");
  }
  std::vector<SummaryExtras> extras;
  for (const RunData& run : runs) {
    const bool is_baseline = labels.baseline && (run.summary.label == *labels.baseline ||
                                                 run.summary.policy == *labels.baseline);
    extras.push_back({directory_name(run.summary.label), is_baseline, labels.title});
  }
  BERTH_TRY_VOID(write("comparison.csv", comparison_csv(runs)));
  return write("summary.json", summaries_json(runs, extras) + "\n");
}

Result<void> OutputDirectory::commit() {
  if (exists_) {
    BERTH_TRY_VOID(move_into_existing());
  } else {
    std::error_code code;
    fs::rename(temporary_, target_, code);
    if (code)
      return fail(fmt::format("{}: cannot put the results in place: {}", target_, code.message()));
  }
  temporary_.clear();
  made_.clear();
  return {};
}

/// The old summary goes first and the new one comes last: in between the directory is no run.
Result<void> OutputDirectory::move_into_existing() {
  std::error_code code;
  const fs::path target{target_};
  fs::remove(target / "summary.json", code);
  for (const auto& entry : entries_of(target, code)) {
    if (entry.path() != temporary_ && is_ours(entry)) fs::remove_all(entry.path(), code);
  }
  auto entries = entries_of(temporary_, code);
  // false sorts before true: summary.json comes last.
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) {
    return std::pair(entry.path().filename() == "summary.json", entry.path());
  });
  for (const auto& entry : entries) {
    const fs::path to = target / entry.path().filename();
    if (fs::is_directory(to, code)) fs::remove_all(to, code);
    fs::rename(entry.path(), to, code);
    if (code)
      return fail(fmt::format("{}: cannot put '{}' in place: {}", target_,
                              entry.path().filename().string(), code.message()));
  }
  fs::remove_all(temporary_, code);
  return {};
}

Result<void> write_run(const std::string& dir, const RunData& run, const ReportLabels& labels,
                       Overwrite overwrite) {
  BERTH_TRY(auto directory, OutputDirectory::create(dir, overwrite));
  BERTH_TRY_VOID(directory.write_run(run));
  BERTH_TRY_VOID(directory.write_report({&run, 1}, labels));
  return directory.commit();
}

Result<void> write_comparison(const std::string& dir, std::span<const RunData> runs,
                              const ReportLabels& labels, Overwrite overwrite) {
  BERTH_TRY(auto directory, OutputDirectory::create(dir, overwrite));
  for (const RunData& run : runs)
    BERTH_TRY_VOID(directory.write_run(run, directory_name(run.summary.label)));
  BERTH_TRY_VOID(directory.write_report(runs, labels));
  return directory.commit();
}

// A label may hold anything; as a folder it is plain letters, and never one of our files.
std::string directory_name(const std::string& label) {
  std::string name = label.empty() ? "run" : label;
  for (char& c : name) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  // A label such as ".." must not lead out of the directory.
  if (name.front() == '.') name.front() = '_';
  const bool taken = std::ranges::find(kOurFiles, name) != kOurFiles.end();
  return taken ? name + "_" : name;
}

}  // namespace berth
