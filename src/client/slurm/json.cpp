#include "client/slurm/json.h"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "base/split.h"
#include "base/terminal_text.h"
#include "client/moment.h"

namespace berth::client::slurm {

namespace {

constexpr std::int64_t kSecond = 1'000'000;

std::string version_part(std::string_view version, std::size_t place) {
  const auto parts = split(version, '.');
  return place < parts.size() ? std::string(parts[place]) : "0";
}

Json meta_of(std::string_view command, const ClusterView& cluster) {
  const std::string user = [] {
    const char* name = ::getenv("USER");
    return std::string(name != nullptr ? name : "");
  }();
  return {{"plugin",
           {{"type", ""},
            {"name", ""},
            {"data_parser", "data_parser/v0.0.42"},
            {"accounting_storage", "berth"}}},
          {"client", {{"source", ""}, {"user", user}, {"group", ""}}},
          {"command", Json::array({command})},
          {"slurm",
           {{"version",
             {{"major", version_part(cluster.version, 0)},
              {"micro", version_part(cluster.version, 2)},
              {"minor", version_part(cluster.version, 1)}}},
            {"release", "berth " + cluster.version},
            {"cluster", cluster.name}}}};
}

Json state_json(const JobRow& job) { return Json::array({slurm_name(job.state)}); }

Json uid_json(const std::string& figures) {
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(figures.data(), figures.data() + figures.size(), number);
  return error == std::errc{} && end == figures.data() + figures.size() ? Json(number)
                                                                        : Json(nullptr);
}

Json gres_details(const JobRow& job, const NodeTypes& types) {
  Json details = Json::array();
  if (is_waiting(job.state)) return details;
  for (const HeldDevices& held : job.where) {
    if (held.devices.empty()) continue;
    const auto type = types.find(held.node);
    const std::string name = type == types.end() || type->second.empty() ? "" : ":" + type->second;
    details.push_back(
        fmt::format("gpu{}:{}(IDX:{})", name, held.devices.size(), index_ranges(held.devices)));
  }
  return details;
}

Json job_resources(const JobRow& job, const Resources& has) {
  Json allocation = Json::array();
  for (std::size_t i = 0; i < job.where.size(); ++i) {
    const auto cores = job.where[i].cores.size();
    allocation.push_back(
        {{"index", i},
         {"name", job.where[i].node},
         {"cpus",
          {{"count", cores > 0 ? static_cast<std::int64_t>(cores) : has.cpus}, {"used", 0}}},
         {"memory", {{"used", 0}, {"allocated", has.memory_mib}}},
         {"sockets", Json::array()}});
  }
  return {{"select_type", Json::array({"CORE"})},
          {"nodes",
           {{"count", job.where.size()},
            {"select_type", Json::array({job.spec->exclusive ? "ONE_ROW" : "AVAILABLE"})},
            {"list", nodes_of(job)},
            {"whole", job.spec->exclusive},
            {"allocation", allocation}}},
          {"cpus", has.cpus},
          {"threads_per_core", no_number()}};
}

/// Who it is, what it is called, which array it belongs to.
void add_identity(Json& json, const JobRow& job, const std::string& indices) {
  const JobSpec& spec = *job.spec;
  const Account account = account_of(spec.user);
  json["account"] = account_name(job);
  json["array_job_id"] = set_number(static_cast<std::int64_t>(job.array));
  json["array_task_id"] =
      job.array != 0 && indices.empty() ? set_number(job.array_index) : no_number();
  json["array_max_tasks"] = set_number(job.array_at_once);
  json["array_task_string"] = indices;
  json["job_id"] = job.number;
  json["name"] = spec.name;
  json["user_id"] = uid_json(account.uid);
  json["user_name"] = account.user;
  json["group_id"] = uid_json(account.gid);
  json["group_name"] = account.group;
  json["comment"] = spec.comment;
  json["partition"] = partition_of(job);
  json["qos"] = kQos;
}

void add_times(Json& json, const JobRow& job, std::int64_t now) {
  const JobSpec& spec = *job.spec;
  json["submit_time"] = set_moment(job.submitted);
  json["eligible_time"] = set_moment(eligible_of(job));
  json["accrue_time"] = set_moment(eligible_of(job));
  json["start_time"] = set_moment(start_of(job));
  json["end_time"] = set_moment(end_of(job, now));
  json["last_sched_evaluation"] = set_moment(0);
  json["deadline"] = set_number(spec.deadline.value_or(0));
  json["suspend_time"] = set_number(0);
  json["resize_time"] = set_number(0);
  json["preempt_time"] = set_number(0);
  json["preemptable_time"] = set_number(0);
  json["pre_sus_time"] = set_number(0);
  json["time_limit"] =
      spec.time_limit > 0 ? set_number((spec.time_limit + 59) / 60) : infinite_number();
  json["time_minimum"] = set_number(0);
}

void add_resources(Json& json, const JobRow& job, const NodeTypes& types) {
  const JobSpec& spec = *job.spec;
  const Resources asks = requested(job), has = allocated(job, types);
  const bool runs = has.nodes > 0;
  const std::int32_t tasks = tasks_of(job);
  json["cpus"] = set_number(runs ? has.cpus : asks.cpus);
  json["cpus_per_task"] = set_number(std::max(1, asks.cpus / tasks));
  json["node_count"] = set_number(runs ? has.nodes : 1);
  json["nodes"] = runs ? nodes_of(job) : "";
  json["batch_host"] = runs ? job.where.front().node : "";
  json["tasks"] = set_number(tasks);
  json["minimum_cpus_per_node"] = set_number(asks.cpus);
  json["minimum_tmp_disk_per_node"] = set_number(0);
  json["memory_per_cpu"] = no_number();
  json["memory_per_node"] = asks.memory_mib > 0 ? set_number(asks.memory_mib) : no_number();
  json["max_cpus"] = set_number(0);
  json["max_nodes"] = set_number(0);
  json["tasks_per_node"] = set_number(tasks);
  json["tasks_per_core"] = infinite_number();
  json["tasks_per_socket"] = infinite_number();
  json["tasks_per_board"] = set_number(0);
  json["tasks_per_tres"] = set_number(0);
  json["required_nodes"] = folded_hosts(spec.nodes);
  json["excluded_nodes"] = "";
  json["features"] = "";
  json["gres_detail"] = gres_details(job, types);
  json["tres_bind"] = "";
  json["tres_freq"] = "";
  json["tres_per_job"] = "";
  json["tres_per_node"] = gres_request(spec.gpus, spec.gpu_type);
  json["tres_per_socket"] = "";
  json["tres_per_task"] = "";
  json["tres_req_str"] = tres(asks, TresOrder::Table);
  json["tres_alloc_str"] = tres(has, TresOrder::Table);
  json["billable_tres"] = no_number();
  json["contiguous"] = false;
  json["shared"] = spec.exclusive ? Json::array({"none"}) : Json::array();
  json["threads_per_core"] = no_number();
  json["job_resources"] = runs ? job_resources(job, has) : Json(nullptr);
}

void add_state(Json& json, const JobRow& job) {
  const JobSpec& spec = *job.spec;
  json["job_state"] = state_json(job);
  json["state_reason"] = slurm_reason(job);
  json["state_description"] = job.reason;
  json["hold"] = job.state == LiveState::Held;
  json["priority"] = set_number(spec.priority);
  json["nice"] = 0;
  json["requeue"] = spec.requeue;
  json["restart_cnt"] = std::max(0, job.attempts - 1);
  json["exit_code"] = exit_code_json(shown_exit(job).code, shown_exit(job).signal);
  json["derived_exit_code"] = exit_code_json(shown_exit(job).code, 0);
  json["dependency"] =
      spec.dependencies.empty() ? "" : to_text(spec.dependencies, spec.any_dependency);
  json["failed_node"] = "";
  json["flags"] = Json::array();
}

void add_files(Json& json, const JobRow& job) {
  const JobSpec& spec = *job.spec;
  json["batch_flag"] = true;
  json["command"] = command_of(job);
  json["current_working_directory"] = spec.workdir;
  json["standard_output"] = job.output;
  json["standard_error"] = job.error.empty() ? job.output : job.error;
  json["standard_input"] = spec.input.empty() ? "/dev/null" : spec.input;
}

/// Keys of things that are not here, as they are when unset.
void add_unset(Json& json) {
  for (const char* key : {"admin_comment",
                          "allocating_node",
                          "batch_features",
                          "burst_buffer",
                          "burst_buffer_state",
                          "cluster_features",
                          "container",
                          "container_id",
                          "cpus_per_tres",
                          "cron",
                          "extra",
                          "federation_origin",
                          "federation_siblings_active",
                          "federation_siblings_viable",
                          "het_job_id_set",
                          "licenses",
                          "mail_user",
                          "mcs_label",
                          "memory_per_tres",
                          "network",
                          "prefer",
                          "resv_name",
                          "scheduled_nodes",
                          "selinux_context",
                          "system_comment",
                          "wckey"})
    json[key] = "";
  for (const char* key : {"het_job_id", "het_job_offset", "delay_boot"}) json[key] = set_number(0);
  for (const char* key : {"cores_per_socket", "cpu_frequency_minimum", "cpu_frequency_maximum",
                          "cpu_frequency_governor", "sockets_per_node"})
    json[key] = no_number();
  for (const char* key : {"job_size_str", "mail_type", "priority_by_partition"})
    json[key] = Json::array();
  json["profile"] = Json::array({"NOT_SET"});
  json["association_id"] = 0;
  json["reboot"] = false;
  json["required_switches"] = 0;
  json["maximum_switch_wait_time"] = 0;
  json["sockets_per_board"] = 0;
}

}  // namespace

Json set_number(std::int64_t number) {
  return {{"set", true}, {"infinite", false}, {"number", number}};
}
Json no_number() { return {{"set", false}, {"infinite", false}, {"number", 0}}; }
Json infinite_number() { return {{"set", false}, {"infinite", true}, {"number", 0}}; }
Json set_moment(std::int64_t micros) { return set_number(micros / kSecond); }

Json exit_code_json(std::int32_t code, std::int32_t signal) {
  return {{"status", Json::array({signal != 0 ? "SIGNALED"
                                  : code != 0 ? "ERROR"
                                              : "SUCCESS"})},
          {"return_code", set_number(code)},
          {"signal",
           {{"id", signal != 0 ? set_number(signal) : no_number()},
            {"name", signal != 0 ? signal_name(signal) : ""}}}};
}

Json tres_json(const Resources& resources) {
  Json list = Json::array();
  const auto add = [&](const char* type, const std::string& name, int id, std::int64_t count) {
    if (count > 0) list.push_back({{"type", type}, {"name", name}, {"id", id}, {"count", count}});
  };
  add("cpu", "", 1, resources.cpus);
  add("mem", "", 2, resources.memory_mib);
  add("node", "", 4, resources.nodes);
  add("gres", "gpu", 1'001, resources.gpus);
  if (!resources.gpu_type.empty()) add("gres", "gpu:" + resources.gpu_type, 1'002, resources.gpus);
  return list;
}

std::string json_answer(std::string_view key, Json rows, std::string_view command,
                        const ClusterView& cluster, const Json& more) {
  Json answer;
  answer[std::string(key)] = std::move(rows);
  for (const auto& [name, value] : more.items()) answer[name] = value;
  answer["meta"] = meta_of(command, cluster);
  answer["errors"] = Json::array();
  answer["warnings"] = Json::array();
  return harmless_json(answer.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

Json job_json(const JobRow& job, const std::string& indices, std::int64_t now,
              const NodeTypes& types, std::string_view cluster) {
  Json json;
  add_identity(json, job, indices);
  json["cluster"] = cluster;
  add_state(json, job);
  add_times(json, job, now);
  add_resources(json, job, types);
  add_files(json, job);
  add_unset(json);
  return json;
}

Result<void> check_parser(const std::string& name) {
  if (name.empty() || name.find("v0.0.4") != std::string::npos) return {};
  return fail(fmt::format("--json={}: the form here is v0.0.42", name));
}

}  // namespace berth::client::slurm
