// What no job can ask for, whoever asks.
#include <algorithm>

#include <fmt/format.h>

#include "model/grid.h"
#include "model/job_spec_json.h"
#include "model/path_pattern.h"

namespace berth {

namespace {

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

/// Line breaks, escapes: names stand in tables, logs and measurements. NUL has its own complaint.
bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return (c > 0 && c < ' ') || c == '\x7f'; });
}

void check_texts(const JobSpec& spec, std::vector<std::string>& faults) {
  const auto check = [&](std::string_view key, std::string_view text, std::size_t limit) {
    if (has_nul(text)) faults.push_back(fmt::format("{}: holds a NUL byte", key));
    if (text.size() > limit)
      faults.push_back(fmt::format("{}: {} bytes, at most {}", key, text.size(), limit));
  };
  check("script", spec.script, kMaxScriptBytes);
  for (const auto& [key, text] : {std::pair{"name", &spec.name},
                                  {"user", &spec.user},
                                  {"group", &spec.group},
                                  {"queue", &spec.queue},
                                  {"gpu_type", &spec.gpu_type},
                                  {"model", &spec.model},
                                  {"study", &spec.study},
                                  {"qos", &spec.qos},
                                  {"submit_host", &spec.submit_host},
                                  {"key", &spec.key}}) {
    check(key, *text, kMaxNameBytes);
    if (has_control(*text)) faults.push_back(fmt::format("{}: holds a control character", key));
  }
  for (const auto& [key, text] : {std::pair{"workdir", &spec.workdir},
                                  {"input", &spec.input},
                                  {"output", &spec.output},
                                  {"error", &spec.error},
                                  {"container", &spec.container},
                                  {"comment", &spec.comment}})
    check(key, *text, 4'096);
  if (spec.umask.size() > 4 || spec.umask.find_first_not_of("01234567") != std::string::npos ||
      (spec.umask.size() == 4 && spec.umask.front() != '0'))
    faults.push_back(fmt::format("umask: '{}' is no octal mask (as in 027)", spec.umask));
  if (has_control(spec.container)) faults.emplace_back("container: holds a control character");
  for (const std::string& fault : grid_problems(spec)) faults.push_back(fault);
  if (!spec.workdir.empty() && spec.workdir.front() != '/')
    faults.push_back(fmt::format("workdir: '{}' is not absolute", spec.workdir));
  if (spec.name.find('/') != std::string::npos) faults.emplace_back("name: holds a slash");
  for (const auto& [key, pattern] : {std::pair{"output", &spec.output}, {"error", &spec.error}}) {
    if (const auto fine = check_path_pattern(*pattern); !fine)
      faults.push_back(fmt::format("{}: {}", key, fine.error().text()));
  }
}

void check_program(const JobSpec& spec, std::vector<std::string>& faults) {
  if (spec.script.empty() && (spec.command.empty() || spec.command.front().empty()))
    faults.emplace_back("command: nothing to run (give a command or a script)");
  if (!spec.script.empty() && !spec.script.starts_with("#!"))
    faults.emplace_back("script: its first line must begin with #!");
  if (std::ranges::any_of(spec.command, has_nul)) faults.emplace_back("command: holds a NUL byte");
  std::size_t bytes = 0;
  for (const auto& [name, value] : spec.env) {
    bytes += name.size() + value.size() + 2;
    if (name.empty() || has_nul(name) || has_nul(value) || name.find('=') != std::string::npos)
      faults.push_back(
          fmt::format("env: '{}' is no name of a variable, or its value holds a NUL", name));
  }
  for (const std::string& word : spec.command) bytes += word.size() + 1;
  if (bytes > kMaxEnvironmentBytes) {
    faults.push_back(
        fmt::format("env: {} bytes with the command, at most {}", bytes, kMaxEnvironmentBytes));
  }
}

void check_counts(const JobSpec& spec, std::vector<std::string>& faults) {
  const auto within = [&](std::string_view key, double value, double low, double high) {
    if (!(value >= low && value <= high))
      faults.push_back(fmt::format("{}: {} is not within {} and {}", key, value, low, high));
  };
  constexpr double kMany = 1e6;
  within("gpus", spec.gpus, 0, kMany);
  within("gpus_min", spec.gpus_min, 0, kMany);
  within("gpus_max", spec.gpus_max, 0, kMany);
  within("gpu_milli", spec.gpu_milli, 1, 1'000);
  within("gpu_memory_mib", spec.gpu_memory_mib, 0, 1e9);
  within("cpus", spec.cpus, 0, kMany);
  within("memory_mib", spec.memory_mib, 0, 2e9);
  within("tasks", spec.tasks, 1, 4'096);
  within("time_limit", static_cast<double>(spec.time_limit), 0, kUnlimitedTime);
  within("estimate", static_cast<double>(spec.estimate), 0, 3.2e9);
  within("priority", spec.priority, -1e9, 1e9);
  within("weight", spec.weight, 1e-6, 1e6);
  within("max_retries", spec.max_retries, 0, 1'000);
  within("warn_signal", spec.warn_signal, 1, 64);
  within("warn_seconds", static_cast<double>(spec.warn_seconds), 0, 86'400);
  within("grace_seconds", static_cast<double>(spec.grace_seconds), 0, 86'400);
  within("begin", static_cast<double>(spec.begin), 0, 1e11);
  if (spec.deadline) within("deadline", static_cast<double>(*spec.deadline), 0, 1e11);
  within("batch_size", spec.batch_size, 0, 1e9);
  within("iterations", static_cast<double>(spec.iterations), 0, 1e15);
  if (spec.requeue_exit_code) within("requeue_exit_code", *spec.requeue_exit_code, 1, 255);
  if (spec.gpu_milli < 1'000 && spec.gpus > 1)
    faults.emplace_back("gpu_milli: only a job of one device takes a share of it");
  if (spec.gpus == 0 && (spec.gpus_min > 0 || spec.gpus_max > 0))
    faults.emplace_back("gpus: a job without GPUs is not elastic");
  if (spec.gpus == 0 && (spec.gpu_memory_mib > 0 || !spec.gpu_type.empty()))
    faults.push_back(fmt::format("{}: the job asks for no GPU",
                                 spec.gpu_memory_mib > 0 ? "gpu_memory_mib" : "gpu_type"));
  if (spec.gpus_min > 0 && spec.gpus_min > spec.gpus)
    faults.push_back(fmt::format("gpus_min: {} is above gpus ({})", spec.gpus_min, spec.gpus));
  if (spec.gpus_max > 0 && spec.gpus_max < spec.gpus)
    faults.push_back(fmt::format("gpus_max: {} is below gpus ({})", spec.gpus_max, spec.gpus));
}

}  // namespace

std::vector<std::string> problems(const JobSpec& spec) {
  std::vector<std::string> faults;
  check_program(spec, faults);
  check_texts(spec, faults);
  check_counts(spec, faults);
  return faults;
}

std::vector<std::string> impossible_numbers(const JobSpec& spec) {
  std::vector<std::string> faults;
  check_counts(spec, faults);
  const bool has_array = spec.array.has_value();
  if (has_array && (spec.array->indices.empty() || spec.array->indices.size() > kMaxArraySize))
    faults.push_back(fmt::format("array: {} jobs", spec.array->indices.size()));
  return faults;
}

}  // namespace berth
