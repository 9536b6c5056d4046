#include "exec/order_file.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "exec/fields.h"

namespace berth {

namespace {

std::optional<std::uint64_t> unsigned_of(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || at != end || text.empty()) return std::nullopt;
  return value;
}

/// Reads values by their names and remembers the first that is wrong.
class Reader {
 public:
  explicit Reader(const Field& field) : field_(field) {}

  template <class T>
  void number(std::string_view name, T& target, std::int64_t low, std::int64_t high) {
    if (field_.name != name) return;
    const auto value = integer_of(field_.value);
    if (!value || *value < low || *value > high) return reject();
    target = static_cast<T>(*value);
  }
  void flag(std::string_view name, bool& target) {
    std::int64_t value = target ? 1 : 0;
    number(name, value, 0, 1);
    target = value != 0;
  }
  /// What a program, a path or a variable can carry: no zero byte.
  void text(std::string_view name, std::string& target) {
    if (field_.name != name) return;
    if (field_.value.find('\0') != std::string_view::npos) return reject();
    target = field_.value;
  }
  void bytes(std::string_view name, std::string& target) {
    if (field_.name == name) target = field_.value;
  }
  void attempt(std::string_view name, AttemptId& target) {
    if (field_.name != name) return;
    const auto value = attempt_named(field_.value);
    if (!value) return reject();
    target = *value;
  }
  void job(std::string_view name, JobNumber& target) {
    if (field_.name != name) return;
    const auto value = unsigned_of(field_.value);
    if (!value) return reject();
    target = *value;
  }
  void more(std::string_view name, std::vector<std::string>& target) {
    if (field_.name != name) return;
    text(name, target.emplace_back());
  }
  void groups(std::string_view name, std::vector<std::uint32_t>& target) {
    if (field_.name == name) number(name, target.emplace_back(), 0, kMaxId);
  }
  void cores(std::string_view name, std::vector<std::int32_t>& target) {
    if (field_.name != name) return;
    const auto value = cores_from(field_.value);
    if (!value) return reject();
    target = *value;
  }
  void variable(std::string_view name, std::vector<std::pair<std::string, std::string>>& target) {
    if (field_.name != name) return;
    const auto equals = field_.value.find('=');
    if (equals == 0 || equals == std::string_view::npos ||
        field_.value.find('\0') != std::string_view::npos)
      return reject();
    target.emplace_back(field_.value.substr(0, equals), field_.value.substr(equals + 1));
  }
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }

  static constexpr std::int64_t kMaxId = std::numeric_limits<std::uint32_t>::max() - 1;

 private:
  void reject() noexcept { is_good_ = false; }

  Field field_;
  bool is_good_ = true;
};

constexpr std::int64_t kMaxSeconds = 100'000'000'000;  // 3,170 years: sums do not overflow
constexpr std::int64_t kMaxClock = std::numeric_limits<std::int64_t>::max();

bool read_into(ShimOrder& shim, const Field& field) {
  Reader read(field);
  LaunchOrder& order = shim.order;
  read.job("job", order.job);
  read.attempt("attempt", order.attempt);
  read.bytes("script", order.script);
  read.more("arg", order.command);
  read.text("workdir", order.workdir);
  read.variable("env", order.env);
  read.more("cleanup", order.cleanup);
  read.text("input", order.input);
  read.text("output", order.output);
  read.text("error", order.error);
  read.flag("append", order.append_output);
  read.number("tasks", order.tasks, 1, kMaxTasks);
  read.flag("ranks", order.ranks);
  read.number("umask", order.umask, 0, 0777);
  read.text("tmp_root", order.tmp_root);
  read.number("uid", order.uid, 0, Reader::kMaxId);
  read.number("gid", order.gid, 0, Reader::kMaxId);
  read.groups("group", order.groups);
  read.cores("cores", order.cores);
  read.bytes("grant", order.grant);
  read.number("memory_mib", order.memory_mib, 0, kMaxSeconds);
  read.number("files_soft", order.files.soft, 0, kMaxSeconds);
  read.number("files_hard", order.files.hard, 0, kMaxSeconds);
  read.number("time_limit", order.time_limit, 0, kMaxSeconds);
  read.number("warn_seconds", order.warn_seconds, 0, kMaxSeconds);
  read.number("warn_signal", order.warn_signal, 1, 64);
  read.flag("warn_shell", order.warn_shell);
  read.number("grace_seconds", order.grace_seconds, 0, kMaxSeconds);
  read.text("helper", order.helper);
  read.more("cgroup", shim.cgroups);
  return read.is_good();
}

bool read_into(ExitRecord& record, const Field& field) {
  Reader read(field);
  read.job("job", record.job);
  read.attempt("attempt", record.attempt);
  read.number("exit_code", record.exit_code, 0, 255);
  read.number("signal", record.signal, 0, 127);
  read.flag("timed_out", record.timed_out);
  read.number("stopped", record.stopped, 0, static_cast<std::int64_t>(Stopped::Killed));
  read.flag("was_started", record.was_started);
  read.bytes("why", record.why);
  read.bytes("boot", record.boot_id);
  read.number("begun", record.begun_clock, 0, kMaxClock);
  read.number("ended", record.ended_clock, 0, kMaxClock);
  read.number("max_rss_kib", record.max_rss_kib, 0, kMaxClock);
  read.flag("out_of_memory", record.out_of_memory);
  read.number("peak_kib", record.peak_kib, 0, kMaxClock);
  std::int64_t cpu_micros = std::llround(record.cpu_seconds * 1e6);
  read.number("cpu_micros", cpu_micros, 0, kMaxSeconds * 1'000'000);
  record.cpu_seconds = static_cast<double>(cpu_micros) * 1e-6;
  return read.is_good();
}

template <class T>
Result<T> decode_as(std::string_view bytes, std::string_view kind) {
  BERTH_TRY(const auto fields, read_fields(bytes, kind));
  T value;
  for (const Field& field : fields)
    if (!read_into(value, field))
      return fail("'" + std::string(field.name) + "' has no legal value");
  return value;
}

}  // namespace

std::string encode_order(const ShimOrder& shim) {
  const LaunchOrder& order = shim.order;
  FieldWriter out("order");
  out.add("job", std::to_string(order.job));
  out.add("attempt", attempt_name(order.attempt));
  if (!order.script.empty()) out.add("script", order.script);
  for (const std::string& word : order.command) out.add("arg", word);
  out.add("workdir", order.workdir);
  for (const auto& [name, value] : order.env) out.add("env", name + "=" + value);
  for (const std::string& word : order.cleanup) out.add("cleanup", word);
  out.add("input", order.input);
  out.add("output", order.output);
  out.add("error", order.error);
  out.add("append", std::int64_t{order.append_output});
  out.add("tasks", std::int64_t{order.tasks});
  out.add("ranks", std::int64_t{order.ranks});
  out.add("umask", std::int64_t{order.umask});
  out.add("tmp_root", order.tmp_root);
  out.add("uid", std::int64_t{order.uid});
  out.add("gid", std::int64_t{order.gid});
  for (const std::uint32_t group : order.groups) out.add("group", std::int64_t{group});
  if (!order.cores.empty()) out.add("cores", cores_text(order.cores));
  if (!order.grant.empty()) out.add("grant", order.grant);
  out.add("memory_mib", order.memory_mib);
  out.add("files_soft", static_cast<std::int64_t>(order.files.soft));
  out.add("files_hard", static_cast<std::int64_t>(order.files.hard));
  out.add("time_limit", order.time_limit);
  out.add("warn_seconds", order.warn_seconds);
  out.add("warn_signal", std::int64_t{order.warn_signal});
  out.add("warn_shell", std::int64_t{order.warn_shell});
  out.add("grace_seconds", order.grace_seconds);
  if (!order.helper.empty()) out.add("helper", order.helper);
  for (const std::string& directory : shim.cgroups) out.add("cgroup", directory);
  return std::move(out).finish();
}

Result<ShimOrder> decode_order(std::string_view bytes) {
  BERTH_TRY(auto shim, decode_as<ShimOrder>(bytes, "order"));
  if (shim.order.attempt.is_none()) return fail("it names no attempt");
  if (shim.order.script.empty() && shim.order.command.empty()) return fail("it names no program");
  return shim;
}

std::string encode_exit(const ExitRecord& record) {
  FieldWriter out("exit");
  out.add("job", std::to_string(record.job));
  out.add("attempt", attempt_name(record.attempt));
  out.add("exit_code", std::int64_t{record.exit_code});
  out.add("signal", std::int64_t{record.signal});
  out.add("timed_out", std::int64_t{record.timed_out});
  out.add("stopped", static_cast<std::int64_t>(record.stopped));
  out.add("was_started", std::int64_t{record.was_started});
  out.add("why", record.why);
  out.add("boot", record.boot_id);
  out.add("begun", record.begun_clock);
  out.add("ended", record.ended_clock);
  out.add("cpu_micros", std::int64_t{std::llround(record.cpu_seconds * 1e6)});
  out.add("max_rss_kib", record.max_rss_kib);
  out.add("out_of_memory", std::int64_t{record.out_of_memory});
  out.add("peak_kib", record.peak_kib);
  return std::move(out).finish();
}

Result<ExitRecord> decode_exit(std::string_view bytes) {
  BERTH_TRY(auto record, decode_as<ExitRecord>(bytes, "exit"));
  if (record.attempt.is_none()) return fail("it names no attempt");
  return record;
}

std::string attempt_name(AttemptId attempt) {
  return std::to_string(attempt.generation) + "." + std::to_string(attempt.counter);
}

std::optional<AttemptId> attempt_named(std::string_view text) noexcept {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto generation = unsigned_of(text.substr(0, dot));
  const auto counter = unsigned_of(text.substr(dot + 1));
  if (!generation || !counter || *generation == 0) return std::nullopt;
  return AttemptId{*generation, *counter};
}

std::string cores_text(const std::vector<std::int32_t>& cores) {
  std::string text;
  for (const std::int32_t core : cores)
    text.append(text.empty() ? "" : ",").append(std::to_string(core));
  return text;
}

std::optional<std::vector<std::int32_t>> cores_from(std::string_view text) {
  std::vector<std::int32_t> cores;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto core = integer_of(text.substr(0, comma));
    if (!core || *core < 0 || *core > kMaxCore) return std::nullopt;
    cores.push_back(static_cast<std::int32_t>(*core));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;
  }
  return cores;
}

}  // namespace berth
