#include "step/grant.h"

#include <algorithm>

#include <sched.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/fd.h"

namespace berth {

namespace {

using nlohmann::json;

constexpr std::int64_t kMaxCount = 1'000'000;

/// The cores we may run on.
std::vector<std::int32_t> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<std::int32_t> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (std::int32_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  return cores;
}

/// Nothing: no number within bounds.
std::optional<std::int32_t> bounded_count(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const auto count = value.get<std::int64_t>();
  if (count < 0 || count > kMaxCount) return std::nullopt;
  return static_cast<std::int32_t>(count);
}

}  // namespace

std::string grant_text(const JobGrant& grant) {
  const json body{{"nodes", grant.nodes},
                  {"devices", grant.devices},
                  {"gpu_type", grant.gpu_type},
                  {"cpus", grant.cpus},
                  {"most_tasks", grant.most_tasks}};
  return body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<JobGrant> grant_from(std::string_view text) {
  const json body = json::parse(text, nullptr, false);
  const auto wrong = [] { return fail("is no record of what a job holds"); };
  if (!body.is_object()) return wrong();
  JobGrant grant;
  const auto list = [&](const char* name) {
    const auto found = body.find(name);
    return found != body.end() && found->is_array() ? *found : json();
  };
  const json devices = list("devices"), nodes = list("nodes");
  if (devices.is_null() || nodes.is_null()) return wrong();
  for (const json& device : devices) {
    const auto number = bounded_count(device);
    if (!number) return wrong();
    grant.devices.push_back(*number);
  }
  for (const json& node : nodes) {
    if (!node.is_string()) return wrong();
    grant.nodes.push_back(node.get<std::string>());
  }
  const auto cpus = bounded_count(body.value("cpus", json()));
  const auto tasks = bounded_count(body.value("most_tasks", json()));
  const json type = body.value("gpu_type", json());
  if (!cpus || !tasks || !type.is_string()) return wrong();
  grant.cpus = *cpus;
  grant.most_tasks = *tasks;
  grant.gpu_type = type.get<std::string>();
  return grant;
}

Result<JobGrant> read_grant(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kGrantFile);
  BERTH_TRY(const auto text, get_file(path));
  if (!text) return fail(path + ": what the job holds is not on record");
  auto grant = grant_from(*text);
  if (!grant) return fail(fmt::format("{}: {}", path, grant.error().text()));
  // Cores can be dealt out only if the job is bound to as many as it has.
  const auto cores = own_cores();
  if (grant->cpus > 0 && static_cast<std::int32_t>(cores.size()) == grant->cpus)
    grant->cores = cores;
  return grant;
}

}  // namespace berth
