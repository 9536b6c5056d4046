#include "slurm/link_lines.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/split.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "slurm/numbers.h"
#include "slurm/squeue_text.h"

namespace berth::slurm {

namespace {

constexpr std::size_t kJobFields = 42;  // before the gres of its nodes
constexpr std::size_t kNodeFields = 14;

// Marks of a job's state above its phase.
constexpr std::uint32_t kPhaseBits = 0xff;
constexpr std::uint32_t kConfiguring = (1U << 14U) | (1U << 18U);  // or its nodes are powered up
constexpr std::uint32_t kCompleting = (1U << 15U) | (1U << 23U);   // or its data is staged out
constexpr std::uint32_t kStopped = 1U << 16U;

/// One field after the other.
class Fields {
 public:
  explicit Fields(const Row& row) : row_(row) {}
  [[nodiscard]] std::string_view text() { return row_[at_++]; }
  template <class T>
  [[nodiscard]] T number(T otherwise) {
    return number_or<T>(text(), otherwise);
  }
  [[nodiscard]] Result<std::vector<std::string>> nodes() { return expand_hostlist(text()); }

 private:
  const Row& row_;
  std::size_t at_ = 1;
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (const std::string_view word : split(text, ','))
    if (!word.empty()) all.emplace_back(word);
  return all;
}

void set_state(Job& job, std::uint32_t state) {
  const std::uint32_t phase = state & kPhaseBits;
  job.phase = phase < static_cast<std::uint32_t>(JobPhase::Unknown) ? static_cast<JobPhase>(phase)
                                                                    : JobPhase::Unknown;
  job.completing = (state & kCompleting) != 0;
  job.configuring = (state & kConfiguring) != 0;
  if (job.phase == JobPhase::Running && (state & kStopped) != 0) job.phase = JobPhase::Suspended;
}

void set_held(Job& job, std::vector<std::string> names, const Row& row) {
  for (std::size_t i = 0; i < names.size(); ++i)
    job.held.push_back({.node = std::move(names[i]), .gres = parse_gres(row[kJobFields + i])});
  // libslurm tells CPUs and memory only in all.
  if (job.held.size() == 1) {
    job.held.front().cpus = job.cpus;
    job.held.front().memory_mib = tres_mebibytes(job.tres_held);
  }
}

void escape(std::string_view text, std::string& line) {
  for (const char letter : text) {
    switch (letter) {
      case '\t': line += "\\t"; break;
      case '\n': line += "\\n"; break;
      case '\r': line += "\\r"; break;
      case '\\': line += "\\\\"; break;
      case '\0': break;  // ends a text in C; nobody means it
      default: line += letter;
    }
  }
}

std::string unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      plain += text[at];
      continue;
    }
    const char letter = text[++at];
    plain += letter == 't' ? '\t' : letter == 'n' ? '\n' : letter == 'r' ? '\r' : letter;
  }
  return plain;
}

}  // namespace

std::string encode_line(const std::vector<std::string_view>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += '\t';
    escape(fields[i], line);
  }
  return line + '\n';
}

void Row::read(std::string_view line) {
  fields_.clear();
  decoded_.clear();
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\t', begin), line.size());
    const std::string_view field = line.substr(begin, end - begin);
    const bool is_plain = field.find('\\') == std::string_view::npos;
    fields_.push_back(is_plain ? field : decoded_.emplace_back(unescape(field)));
    begin = end + 1;
  }
}

Result<Job> job_of(const Row& row) {
  if (row.size() < kJobFields)
    return fail(
        fmt::format("a job has {} fields where at least {} belong", row.size(), kJobFields));
  Fields fields(row);
  Job job;
  job.key.job = fields.number<std::uint32_t>(0);
  job.key.restarts = fields.number<std::uint32_t>(0);
  job.key.submitted = fields.number<std::int64_t>(0);
  job.array = fields.number<std::uint32_t>(0);
  job.array_tasks = fields.text();
  job.uid = fields.number<std::uint32_t>(UINT32_MAX);
  job.user = fields.text();
  job.account = fields.text();
  job.partition = fields.text();
  job.qos = fields.text();
  job.name = fields.text();
  set_state(job, fields.number<std::uint32_t>(kPhaseBits));
  job.reason = fields.text();
  if (const std::string_view described = fields.text(); !described.empty()) job.reason = described;
  job.reason = or_empty(job.reason);
  job.priority = fields.number<std::uint32_t>(1);
  job.is_batch = fields.text() != "0";
  job.may_requeue = fields.text() != "0";
  job.eligible = fields.number<std::int64_t>(0);
  job.started = fields.number<std::int64_t>(0);
  job.ended = fields.number<std::int64_t>(0);
  job.time_limit = std::int64_t{fields.number<std::uint32_t>(0)} * 60;
  job.min_nodes = fields.number<std::int32_t>(1);
  job.max_nodes = fields.number<std::int32_t>(0);
  job.tasks = fields.number<std::int32_t>(0);
  job.cpus = fields.number<std::int32_t>(0);
  job.per_job = parse_gres(fields.text());
  job.per_node = parse_gres(fields.text());
  job.per_task = parse_gres(fields.text());
  job.per_socket = parse_gres(fields.text());
  job.tres_requested = fields.text();
  job.tres_held = fields.text();
  job.memory_mib = tres_mebibytes(job.tres_requested);
  BERTH_TRY(auto held, fields.nodes());
  BERTH_TRY(job.required_nodes, fields.nodes());
  BERTH_TRY(job.excluded_nodes, fields.nodes());
  job.features = fields.text();
  job.dependency = fields.text();
  job.reservation = fields.text();
  job.exclusive = fields.text() == "1";
  job.comment = fields.text();
  job.admin_comment = fields.text();
  set_exit_status(job, fields.number<std::uint32_t>(0));
  if (job.key.job == 0 || job.key.submitted == 0) return fail("a job has no id or no submit time");
  set_held(job, std::move(held), row);
  settle(job);
  return job;
}

Result<Node> node_of(const Row& row) {
  if (row.size() < kNodeFields)
    return fail(
        fmt::format("a node has {} fields where at least {} belong", row.size(), kNodeFields));
  Fields fields(row);
  Node node;
  node.name = fields.text();
  node.state = fields.text();
  node.reason = fields.text();
  node.features = words(fields.text());
  node.cpus = fields.number<std::int32_t>(0);
  node.cpus_held = fields.number<std::int32_t>(0);
  node.sockets = fields.number<std::int32_t>(1);
  node.memory_mib = fields.number<std::int64_t>(0);
  node.memory_mib -= std::min(node.memory_mib, fields.number<std::int64_t>(0));
  node.memory_held_mib = fields.number<std::int64_t>(0);
  node.gres = parse_gres(fields.text());
  node.gres_held = parse_gres(fields.text());
  correct_shards(node.gres_held, fields.text());
  if (node.name.empty()) return fail("a node has no name");
  return node;
}

}  // namespace berth::slurm
