// `berth slurm status`: is it set up, does Berth live, who holds what.
#include <array>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "apps/slurm.h"
#include "base/json_writer.h"
#include "slurm/setup.h"
#include "slurm/setup_status.h"

namespace berth {

namespace {

using client::OptionSpec;
using client::Takes;

constexpr std::array kStatusOptions{
    OptionSpec{"conf", 0, Takes::Value, "FILE", "slurm.conf (default: the one slurmctld reads)",
               "Where"},
    OptionSpec{"commands", 0, Takes::Value, "DIR", "where Slurm's commands are (default: PATH)",
               "Where"},
    OptionSpec{"json", 0, Takes::Nothing, "", "as JSON", "Output"},
};

/// Where the link program would be found beside this one; empty: it is not there.
std::string link_program() {
  std::error_code code;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return {};
  for (const char* place : {"berth-slurm-link", "../libexec/berth/berth-slurm-link"}) {
    const auto path = (self.parent_path() / place).lexically_normal();
    if (std::filesystem::exists(path, code)) return path.string();
  }
  return {};
}

std::string heartbeat_text(const slurm::SetupStatus& status) {
  const std::string& path = status.state->heartbeat;
  if (path.empty()) return "not looked at";
  if (!status.heartbeat_age) return fmt::format("none in {}: new jobs are not held", path);
  const std::int64_t age = *status.heartbeat_age;
  const bool is_fresh = std::abs(age) <= status.state->patience_seconds;
  return fmt::format("{} s old{}", age, is_fresh ? "" : ": new jobs are not held");
}

std::string status_text(const slurm::SetupStatus& status) {
  std::string text;
  const auto say = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<15} {}\n", name, value);
  };
  say("slurm", status.version.empty() ? "does not answer" : status.version);
  say("slurm.conf", status.conf);
  say("set up", status.state ? fmt::format("yes, gate {}", to_string(status.state->gate)) : "no");
  if (status.state) say("heartbeat", heartbeat_text(status));
  if (status.state && status.state->handed_back) say("gate", "open: the queue was handed back");
  const std::string link = link_program();
  say("link program", link.empty() ? "not found: Slurm's text commands are used" : link);
  if (!status.version.empty())
    say("waiting",
        fmt::format("{} jobs: held by Berth {}, by users {}, by admins {}", status.waiting,
                    status.held_by_berth, status.held_by_users, status.held_by_admins));
  for (const std::string& problem : status.problems) say("problem", problem);
  return text;
}

std::string status_json(const slurm::SetupStatus& status) {
  JsonWriter json;
  json.begin_object().field("version", status.version).field("conf", status.conf);
  json.field("set_up", status.state.has_value());
  json.key("gate");
  if (status.state)
    json.value(to_string(status.state->gate));
  else
    json.null();
  json.key("heartbeat_age");
  if (status.heartbeat_age)
    json.value(*status.heartbeat_age);
  else
    json.null();
  json.field("handed_back", status.state && status.state->handed_back);
  json.field("link_program", link_program()).field("waiting", status.waiting);
  json.field("held_by_berth", status.held_by_berth).field("held_by_users", status.held_by_users);
  json.field("held_by_admins", status.held_by_admins).key("problems").begin_array();
  for (const std::string& problem : status.problems) json.value(problem);
  json.end_array().end_object();
  return json.take() + "\n";
}

Exit run_status(const client::Parsed& given) {
  slurm::InstalledCommands commands(given.value("commands"), given.value("conf"));
  const auto conf = slurm::find_conf(commands, given.value("conf"));
  if (!conf) return complain(Exit::Failure, conf.error());
  const auto status = slurm::setup_status(commands, *conf, std::time(nullptr));
  if (!status) return complain(Exit::Failure, status.error());
  return write_stdout(given.has("json") ? status_json(*status) : status_text(*status));
}

}  // namespace

const SlurmVerb kSlurmStatus{
    .name = "status",
    .summary = "is it set up, does Berth live, who holds which jobs",
    .examples = "berth slurm status",
    .options = kStatusOptions,
    .run = run_status,
};

}  // namespace berth
